"""How wide is the interval?"""

import numpy as np
from jaxtyping import Float

from counterpath.metrics.checks import aligned_points, ordered_interval


def interval_width(
    lower: Float[np.ndarray, "*points"], upper: Float[np.ndarray, "*points"]
) -> Float[np.ndarray, "*points"]:
    """Width of each interval.

    width = upper − lower

    Args:
        lower: lower ends, in outcome units.
        upper: upper ends, in outcome units, nowhere below `lower`.

    How to read it:
        In outcome units. Narrow is good only while coverage stays at the nominal level: a narrow interval
        that misses the outcome is a false promise, a wide one says little. Compare widths of methods with
        equal coverage. The median over points is not ruled by a few hard patients; the mean is.
    """
    lower, upper = aligned_points(lower=lower, upper=upper)
    lower, upper = ordered_interval(lower, upper)
    return np.asarray(upper - lower)
