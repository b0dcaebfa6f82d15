"""Sums of scores per patient: patients are the independent units, their points are not."""

from dataclasses import dataclass

import numpy as np
from jaxtyping import Bool, Float, Int, Real, Shaped

from counterpath.metrics.checks import finite


@dataclass(frozen=True, eq=False)
class PatientTotals:
    """Sum of scores and number of points of each patient.

    Attributes:
        sums: sum of the scores of each patient.
        counts: number of points of each patient.
    """

    sums: Float[np.ndarray, " patients"]
    counts: Int[np.ndarray, " patients"]


def patient_totals(
    name: str,
    scores: Real[np.ndarray, " points"] | Bool[np.ndarray, " points"],
    patients: Shaped[np.ndarray, " points"] | None,
) -> PatientTotals:
    """Add up scores per patient.

    Args:
        name: how error messages call the scores.
        scores: one score per point.
        patients: the patient of each point, as numbers or strings. None means one point per patient.
    """
    values = finite(name, scores)
    if values.ndim != 1:
        raise ValueError(
            f"`{name}` has shape {values.shape} and must be one-dimensional. "
            "Ravel it, and repeat the patient labels alike."
        )
    if patients is None:
        return PatientTotals(values, np.ones(values.size, dtype=np.int64))
    which = patient_numbers(name, values, patients)
    return PatientTotals(np.bincount(which, weights=values), np.bincount(which))


def patient_numbers(
    name: str, scores: Real[np.ndarray, " points"], patients: Shaped[np.ndarray, " points"]
) -> Int[np.ndarray, " points"]:
    """Number the patients from 0 on, in the order of their labels, once every point has one.

    Args:
        name: how error messages call the scores.
        scores: one score per point.
        patients: the patient of each point, as numbers or strings.
    """
    labels = np.asarray(patients)
    if labels.shape != scores.shape:
        raise ValueError(
            f"`patients` has shape {labels.shape} and `{name}` has {scores.shape}. "
            "Give the patient of every point, in the same order."
        )
    missing = labels != labels  # NaN and NaT differ from themselves
    if labels.dtype == object:
        missing |= np.array([label is None for label in labels])
    if missing.any():
        raise ValueError(f"`patients` has {missing.sum()} missing labels. Drop those points, or name them.")
    return np.unique(labels, return_inverse=True)[1]
