"""A mean over points that knows how far chance in the choice of patients may have moved it."""

import math
from dataclasses import dataclass

import numpy as np
from jaxtyping import Bool, Real, Shaped

from counterpath.metrics.patient_totals import patient_totals


@dataclass(frozen=True)
class Estimate:
    """A number estimated from a sample of patients.

    Attributes:
        value: the estimate, in the unit of the scores.
        standard_error: its standard error, in the same unit; infinite for a single patient, who says
            nothing about the others.
        patients: number of patients it rests on.

    How to read it:
        `0.0123 ± 0.0004` is the value and one standard error: another sample of as many patients would land
        within two of them in about 95 of 100 cases. Two methods on the same patients share most of this
        error, so do not compare them by overlap: use `paired_ratio`.
    """

    value: float
    standard_error: float
    patients: int

    def __str__(self) -> str:
        if not math.isfinite(self.standard_error):
            return f"{self.value:.3g} ± unknown (one patient)"
        if self.standard_error == 0:
            return f"{self.value:.4g} ± 0"
        decimals = max(0, -math.floor(math.log10(self.standard_error)))
        if decimals > 6:
            return f"{self.value:.3g} ± {self.standard_error:.1g}"
        return f"{self.value:.{decimals}f} ± {self.standard_error:.{decimals}f}"


def mean_by_patient(
    scores: Real[np.ndarray, " points"] | Bool[np.ndarray, " points"],
    patients: Shaped[np.ndarray, " points"] | None = None,
) -> Estimate:
    """Mean over all points with a standard error that treats patients as the independent units.

    mean = Σ_g S_g / N,  SE² = G/(G − 1) Σ_g (S_g − mean · n_g)² / N²,  N = Σ_g n_g

    with S_g the sum of the scores and n_g the number of points of patient g, of G. With one point per
    patient this is the usual standard deviation over √n.

    Args:
        scores: one score per point, e.g. from `crps_draws`; booleans such as `covered` count as 0 and 1.
        patients: the patient of each point, as numbers or strings. None means one point per patient.

    How to read it:
        In the unit of the scores. Every point weighs the same, so patients with more points weigh more. The
        standard error is larger than one that forgets the patients when points of a patient agree with each
        other. It is trustworthy from about 30 patients on, and later when few patients carry most of the
        mean.
    """
    totals = patient_totals("scores", scores, patients)
    points, number = totals.counts.sum(), totals.counts.size
    mean = totals.sums.sum() / points
    if number == 1:
        return Estimate(float(mean), math.inf, 1)
    residuals = totals.sums - mean * totals.counts
    variance = number / (number - 1) * np.square(residuals).sum() / points**2
    return Estimate(float(mean), float(np.sqrt(variance)), number)
