"""Are PIT values spread evenly?"""

from dataclasses import dataclass

import numpy as np
from jaxtyping import Float
from scipy.stats import kstest

from counterpath.metrics.checks import finite


@dataclass(frozen=True)
class Uniformity:
    """How far PIT values are from uniform.

    Attributes:
        distance: largest gap between their distribution function and the diagonal, between 0 and 1.
        p_value: probability of at least this gap if the values were independent and uniform.
        points: number of values.

    How to read it:
        The distance is the largest error of any one-sided coverage statement: 0.03 means that no predicted
        quantile is off by more than 3 points. A small p-value says that the distance is not chance.
    """

    distance: float
    p_value: float
    points: int

    def __str__(self) -> str:
        return f"distance from uniform {self.distance:.3f} (p = {self.p_value:.2g}, {self.points} points)"


def pit_uniformity(pit: Float[np.ndarray, "*points"]) -> Uniformity:
    """Kolmogorov-Smirnov test of PIT values against the uniform distribution.

    distance = max_u |#{PIT ≤ u}/n − u|

    Args:
        pit: PIT values. The p-value takes them as independent: pass one point per patient, such as one
            horizon at a time. The distance needs no independence.

    How to read it:
        Distance without unit; lower is better, and 0 is perfect calibration at every level at once. Even a
        perfect forecast has about 0.9/√n with n points. A p-value below 0.01 says that calibration is off,
        not that it is off by much: with many points judge the distance.
    """
    values = finite("pit", pit).ravel()
    if (values < 0).any() or (values > 1).any():
        raise ValueError("`pit` must lie between 0 and 1. Compute it with `pit_draws` or its siblings.")
    test = kstest(values, "uniform")
    return Uniformity(float(test.statistic), float(test.pvalue), values.size)
