"""Does the interval hold the outcome?"""

import numpy as np
from jaxtyping import Bool, Float

from counterpath.metrics.checks import aligned_points, ordered_interval, require_one_shape


def covered(
    outcome: Float[np.ndarray, "*points"],
    lower: Float[np.ndarray, "*points"],
    upper: Float[np.ndarray, "*points"],
) -> Bool[np.ndarray, "*points"]:
    """Whether each outcome lies inside its interval, both ends included.

    covered = 1{lower ≤ y ≤ upper}

    Args:
        outcome: what happened, in outcome units.
        lower: lower ends, in outcome units; −∞ is allowed.
        upper: upper ends, in outcome units; +∞ is allowed.

    How to read it:
        The mean over points is the coverage, a share between 0 and 1; `mean_by_patient` gives it with its
        standard error. Good is near the nominal level: about 0.95 for 95% intervals. Below nominal the
        forecaster is too sure of itself; above nominal the intervals are wider than they need to be. Read it
        together with `interval_width`, as an endless interval covers everything.
    """
    (outcome,) = aligned_points(outcome=outcome)
    require_one_shape(outcome=outcome, lower=lower, upper=upper)
    lower, upper = ordered_interval(lower, upper)
    return np.asarray((lower <= outcome) & (outcome <= upper))
