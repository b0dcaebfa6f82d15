"""Does the error fall when the patients the model is unsure about are handed to someone else?"""

from dataclasses import dataclass

import numpy as np
from jaxtyping import Float, Int, Real, Shaped

from counterpath.metrics.checks import aligned_points, finite, require_level
from counterpath.metrics.patient_resampling import resampled_patients
from counterpath.metrics.patient_totals import patient_numbers

SHARES = np.linspace(0, 0.9, 19)
SHARES.setflags(write=False)


@dataclass(frozen=True, eq=False)
class DeferralCurve:
    """Mean error of those kept while the most uncertain are withheld.

    Attributes:
        shares: shares withheld, increasing, between 0 and 1.
        error: mean error of those kept, divided by the mean error of all.
        random: the same when those withheld are chosen at random: 1 everywhere.
        resampled: the curve for each bootstrap sample of patients; None if the patients were not given.

    How to read it:
        A useful uncertainty makes `error` fall as `shares` grows. A flat curve at 1 is no better than
        chance; a rising one withholds the wrong patients. While `area_interval` holds 1, the patients cannot
        tell the uncertainty from chance.
    """

    shares: Float[np.ndarray, " shares"]
    error: Float[np.ndarray, " shares"]
    random: Float[np.ndarray, " shares"]
    resampled: Float[np.ndarray, "resamples shares"] | None = None

    @property
    def area(self) -> float:
        """Mean height of the curve over the range of shares, by the trapezoidal rule.

        area = 1/(s_K − s_1) ∫ error(s) ds from the first share s_1 to the last share s_K

        How to read it:
            Without unit; lower is better. Withholding at random has 1. An area of 0.6 means that those kept
            have 40% less error, averaged over the shares. Compare areas over the same shares only.
        """
        return float(self._area(self.error))

    def interval(self, level: float = 0.95) -> tuple[Float[np.ndarray, " shares"], Float[np.ndarray, " shares"]]:
        """Lower and upper ends of a percentile bootstrap interval at each share.

        Args:
            level: nominal probability of the interval, at each share by itself.

        How to read it:
            Where it lies below 1, other patients would show a gain over withholding at random too. The
            shares of one curve go up and down together: sum them up by `area_interval`.
        """
        lower, upper = _percentiles(self._resampled(), level)
        return lower, upper

    def area_interval(self, level: float = 0.95) -> tuple[float, float]:
        """Lower and upper end of a percentile bootstrap interval of the area.

        Args:
            level: nominal probability of the interval.

        How to read it:
            While it holds 1, the patients cannot tell the uncertainty from chance.
        """
        lower, upper = _percentiles(self._area(self._resampled()), level)
        return float(lower), float(upper)

    def __str__(self) -> str:
        first, last = self.shares[0], self.shares[-1]
        interval = ""
        if self.resampled is not None:
            lower, upper = self.area_interval()
            interval = f" (95% interval {lower:.3f} to {upper:.3f})"
        return f"area {self.area:.3f}{interval} over shares {first:.2f} to {last:.2f} (random: 1)"

    def _area(self, error: Float[np.ndarray, "*resamples shares"]) -> Float[np.ndarray, "*resamples"]:
        below_random = np.trapezoid(self.random - error, self.shares, axis=-1)
        return np.asarray(1 - below_random / (self.shares[-1] - self.shares[0]))

    def _resampled(self) -> Float[np.ndarray, "resamples shares"]:
        if self.resampled is None:
            raise ValueError(
                "This curve has no interval, as its patients are not known. "
                "Pass `patients` to `deferral_curve`; np.arange(len(error)) if each point is a patient."
            )
        return self.resampled


def deferral_curve(
    error: Real[np.ndarray, " points"],
    uncertainty: Real[np.ndarray, " points"],
    shares: Float[np.ndarray, " shares"] = SHARES,
    patients: Shaped[np.ndarray, " points"] | None = None,
    *,
    resamples: int = 500,
    seed: int = 0,
) -> DeferralCurve:
    """Mean error of those kept while the most uncertain share is withheld, relative to keeping all.

    error(s) = (1/k) Σ_{i ≤ k} e_(i) / ((1/n) Σ_i e_i),  k = (1 − s) n

    with errors e_(i) in order of increasing uncertainty. Points of equal uncertainty count with their mean
    error, which is the average over all orders among them; if k is not whole, the last point counts with
    its fraction. The order of rows therefore never matters.

    Args:
        error: error of each point, e.g. from `squared_error`, with a positive mean.
        uncertainty: anything that is larger where the model is less sure; only its order matters.
        shares: shares to withhold, increasing, at least 0 and below 1. Two or more.
        patients: the patient of each point, as numbers or strings, for intervals by a bootstrap over patients.
            None leaves the intervals out, which is faster.
        resamples: number of bootstrap resamples.
        seed: seed of the resampling, the same patients as in `paired_ratio`.

    How to read it:
        Without unit, 1 at share 0. Good falls steadily below 1: the model knows where it is wrong. At 1
        the uncertainty is no better than chance, above 1 it points at the wrong patients. `area` sums it up,
        lower is better; `area_interval` tells whether it may be chance. Where errors grow with the size of
        the outcome, an uncertainty that merely ranks size looks good too: look at a relative scale as well.
    """
    error, uncertainty = aligned_points(error=error, uncertainty=uncertainty)
    if error.ndim != 1:
        raise ValueError(f"`error` has shape {error.shape} and must be one-dimensional. Ravel both arguments.")
    shares = _checked_shares(shares)
    if error.mean() <= 0:
        raise ValueError("The mean of `error` is not positive, so nothing can be relative to it.")
    # Sorting ties by their error makes even the rounding of sums independent of the order of rows.
    order = np.lexsort((error, uncertainty))
    ordered, starts = error[order], _tie_starts(uncertainty[order])
    curve = _relative_error(np.add.reduceat(ordered, starts), np.diff(starts, append=error.size), shares)
    resampled = None
    if patients is not None:
        patient = patient_numbers("error", error, patients)[order]
        resampled = _resampled_curves(ordered, starts, patient, shares, resamples, seed)
    return DeferralCurve(shares, curve, np.ones_like(shares), resampled)


def _relative_error(
    sums: Float[np.ndarray, " ties"], counts: Int[np.ndarray, " ties"], shares: Float[np.ndarray, " shares"]
) -> Float[np.ndarray, " shares"]:
    """The curve from the sum of errors and the number of points at each value of the uncertainty."""
    points = counts.sum()
    mean = sums.sum() / points
    # Sums of error above the mean: for constant uncertainty exactly 0, so the curve is exactly 1.
    excess = np.concatenate([[0], np.cumsum((sums / np.maximum(counts, 1) - mean) * counts)])
    kept = (1 - shares) * points
    # Averaged over the orders of its ties, a sum grows linearly from one tie to the next.
    kept_excess = np.interp(kept, np.concatenate([[0], np.cumsum(counts)]), excess)
    return 1 + kept_excess / (kept * mean)


def _resampled_curves(
    error: Float[np.ndarray, " points"],
    starts: Int[np.ndarray, " ties"],
    patient: Int[np.ndarray, " points"],
    shares: Float[np.ndarray, " shares"],
    resamples: int,
    seed: int,
) -> Float[np.ndarray, "resamples shares"]:
    """A patient drawn twice brings all points twice: the points stay sorted and only their numbers change."""
    number = int(patient.max()) + 1
    curves = []
    for chunk in resampled_patients(number, resamples, seed):
        for drawn in chunk:
            times = np.bincount(drawn, minlength=number)[patient]
            sums, counts = np.add.reduceat(times * error, starts), np.add.reduceat(times, starts)
            if sums.sum() <= 0:
                raise ValueError(
                    "In some resamples the errors add up to 0 or less: too few patients carry them. "
                    "Give more patients, or leave `patients` out."
                )
            curves.append(_relative_error(sums, counts, shares))
    return np.stack(curves)


def _percentiles(resampled: Float[np.ndarray, "resamples *rest"], level: float) -> Float[np.ndarray, "2 *rest"]:
    require_level(level)
    return np.quantile(resampled, [(1 - level) / 2, (1 + level) / 2], axis=0)


def _tie_starts(ordered: Float[np.ndarray, " points"]) -> Int[np.ndarray, " ties"]:
    return np.flatnonzero(np.concatenate([[True], ordered[1:] != ordered[:-1]]))


def _checked_shares(shares: Float[np.ndarray, " shares"]) -> Float[np.ndarray, " shares"]:
    values = finite("shares", shares).copy()  # the result keeps it
    increasing = values.ndim == 1 and values.size > 1 and bool((np.diff(values) > 0).all())
    if not increasing or values[0] < 0 or values[-1] >= 1:
        raise ValueError(
            "`shares` must be two or more increasing numbers, at least 0 and below 1. Try np.linspace(0, 0.9, 19)."
        )
    return values
