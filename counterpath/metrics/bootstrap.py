"""Compare two methods on the same patients."""

from dataclasses import dataclass

import numpy as np
from jaxtyping import Float, Real, Shaped

from counterpath.metrics.checks import require_level, require_one_shape
from counterpath.metrics.patient_resampling import resampled_patients
from counterpath.metrics.patient_totals import patient_totals


@dataclass(frozen=True)
class Ratio:
    """Mean score of a method divided by that of a reference.

    Attributes:
        value: the ratio, without unit.
        lower: lower end of its bootstrap interval.
        upper: upper end of its bootstrap interval.
        level: nominal probability of the interval.

    How to read it:
        For scores where lower is better, below 1 the method beats the reference, and 1.06 is 6% worse than
        it. While the interval holds 1 the patients cannot tell the two apart.
    """

    value: float
    lower: float
    upper: float
    level: float

    def __str__(self) -> str:
        return f"{self.value:.3f} ({100 * self.level:g}% interval {self.lower:.3f} to {self.upper:.3f})"


def paired_ratio(
    scores: Real[np.ndarray, " points"],
    reference_scores: Real[np.ndarray, " points"],
    patients: Shaped[np.ndarray, " points"] | None = None,
    *,
    resamples: int = 2_000,
    level: float = 0.95,
    seed: int = 0,
) -> Ratio:
    """Ratio of two mean scores with a percentile bootstrap interval over patients.

    ratio = Σ_g S_g / Σ_g R_g, each resample drawing G patients g with replacement,
    the same ones above and below the line

    S_g and R_g are the sums of the two scores over the points of patient g. As both methods meet the same
    patients, a hard patient raises both sums and moves the ratio little.

    Args:
        scores: one score per point.
        reference_scores: the reference's score at the same points, with a positive mean.
        patients: the patient of each point, as numbers or strings. None means one point per patient.
        resamples: number of bootstrap resamples.
        level: nominal probability of the interval.
        seed: seed of the resampling.

    How to read it:
        Without unit. For scores where lower is better, below 1 the method beats the reference; against an
        oracle 1.10 means 10% above what is possible. An interval that excludes 1 is a difference that other
        patients would show too; it says nothing about other training seeds. Use it for scores that are
        never negative (CRPS, errors, widths), not for log scores.
    """
    require_level(level)
    require_one_shape(scores=scores, reference_scores=reference_scores)
    above = patient_totals("scores", scores, patients).sums
    below = patient_totals("reference_scores", reference_scores, patients).sums
    if below.sum() <= 0:
        raise ValueError(
            "The mean of `reference_scores` is not positive, so a ratio to it means nothing. "
            "Compare differences by `mean_by_patient(scores - reference_scores, patients)`."
        )
    ratios = _resampled_ratios(above, below, resamples, seed)
    lower, upper = np.quantile(ratios, [(1 - level) / 2, (1 + level) / 2])
    return Ratio(float(above.sum() / below.sum()), float(lower), float(upper), level)


def _resampled_ratios(
    above: Float[np.ndarray, " patients"],
    below: Float[np.ndarray, " patients"],
    resamples: int,
    seed: int,
) -> Float[np.ndarray, " resamples"]:
    ratios = []
    for drawn in resampled_patients(above.size, resamples, seed):
        denominators = below[drawn].sum(axis=1)
        if (denominators <= 0).any():
            raise ValueError(
                "In some resamples the reference scores add up to 0 or less: too few patients carry them. "
                "Give more patients, or compare differences by `mean_by_patient`."
            )
        ratios.append(above[drawn].sum(axis=1) / denominators)
    return np.concatenate(ratios)
