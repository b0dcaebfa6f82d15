"""Does the error fall when the patients the model is unsure about are handed to someone else?"""

from dataclasses import dataclass

import numpy as np
from jaxtyping import Float, Int, Real

from counterpath.metrics.checks import aligned_points, finite

SHARES = np.linspace(0, 0.9, 19)
SHARES.setflags(write=False)


@dataclass(frozen=True, eq=False)
class DeferralCurve:
    """Mean error of those kept while the most uncertain are withheld.

    Attributes:
        shares: shares withheld, increasing, between 0 and 1.
        error: mean error of those kept, divided by the mean error of all.
        random: the same when those withheld are chosen at random: 1 everywhere.

    How to read it:
        A useful uncertainty makes `error` fall as `shares` grows. A flat curve at 1 is no better than
        chance; a rising one withholds the wrong patients.
    """

    shares: Float[np.ndarray, " shares"]
    error: Float[np.ndarray, " shares"]
    random: Float[np.ndarray, " shares"]

    @property
    def area(self) -> float:
        """Mean height of the curve over the range of shares, by the trapezoidal rule.

        area = 1/(s_K − s_1) ∫ error(s) ds from the first share s_1 to the last share s_K

        How to read it:
            Without unit; lower is better. Withholding at random has 1. An area of 0.6 means that those kept
            have 40% less error, averaged over the shares. Compare areas over the same shares only.
        """
        below_random = np.trapezoid(self.random - self.error, self.shares)
        return float(1 - below_random / (self.shares[-1] - self.shares[0]))

    def __str__(self) -> str:
        first, last = self.shares[0], self.shares[-1]
        return f"area {self.area:.3f} over shares {first:.2f} to {last:.2f} (random: 1)"


def deferral_curve(
    error: Real[np.ndarray, " points"],
    uncertainty: Real[np.ndarray, " points"],
    shares: Float[np.ndarray, " shares"] = SHARES,
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

    How to read it:
        Without unit, 1 at share 0. Good falls steadily below 1: the model knows where it is wrong. At 1
        the uncertainty is no better than chance, above 1 it points at the wrong patients. `area` sums it up,
        lower is better. Where errors grow with the size of the outcome, an uncertainty that merely ranks
        size looks good too: look at a relative scale as well.
    """
    error, uncertainty = aligned_points(error=error, uncertainty=uncertainty)
    if error.ndim != 1:
        raise ValueError(f"`error` has shape {error.shape} and must be one-dimensional. Ravel both arguments.")
    shares = _checked_shares(shares)
    if error.mean() <= 0:
        raise ValueError("The mean of `error` is not positive, so nothing can be relative to it.")
    # Sorting ties by their error makes even the rounding of sums independent of the order of rows.
    order = np.lexsort((error, uncertainty))
    starts = _tie_starts(uncertainty[order])
    sums = np.add.reduceat(error[order], starts)
    counts = np.diff(starts, append=error.size)
    mean = sums.sum() / error.size
    # Sums of error above the mean: for constant uncertainty exactly 0, so the curve is exactly 1.
    excess = np.concatenate([[0], np.cumsum((sums / counts - mean) * counts)])
    kept = (1 - shares) * error.size
    # Averaged over the orders of its ties, a sum grows linearly from one tie to the next.
    kept_excess = np.interp(kept, np.concatenate([[0], np.cumsum(counts)]), excess)
    return DeferralCurve(shares, 1 + kept_excess / (kept * mean), np.ones_like(shares))


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
