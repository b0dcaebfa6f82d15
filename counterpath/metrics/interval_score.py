"""One number for an interval: its width and its misses."""

import numpy as np
from jaxtyping import Float

from counterpath.metrics.checks import aligned_points, ordered_interval, require_level


def interval_score(
    outcome: Float[np.ndarray, "*points"],
    lower: Float[np.ndarray, "*points"],
    upper: Float[np.ndarray, "*points"],
    level: float,
) -> Float[np.ndarray, "*points"]:
    """Width of each interval plus a penalty for the distance by which it misses the outcome.

    score = (u − l) + (2/α) (l − y)₊ + (2/α) (y − u)₊,  α = 1 − level

    Gneiting & Raftery (2007), Strictly proper scoring rules, prediction, and estimation, equation 43.

    Args:
        outcome: what happened, in outcome units.
        lower: lower ends l, in outcome units.
        upper: upper ends u, in outcome units.
        level: nominal probability of the intervals, e.g. 0.95.

    How to read it:
        In outcome units; lower is better. Its mean is smallest for the true central interval (the α/2 and
        1 − α/2 quantiles), so neither widening nor narrowing can cheat it. A score far above the width
        means misses; a score equal to the width means that the outcome was covered. Only scores at the
        same level can be compared.
    """
    require_level(level)
    outcome, lower, upper = aligned_points(outcome=outcome, lower=lower, upper=upper)
    lower, upper = ordered_interval(lower, upper)
    miss = np.maximum(lower - outcome, 0) + np.maximum(outcome - upper, 0)
    return np.asarray((upper - lower) + 2 / (1 - level) * miss)
