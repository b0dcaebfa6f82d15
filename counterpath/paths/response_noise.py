"""Noise about a linear response: where it comes from, and how much each source adds.

    variance of a change = measured + rate(level) · time + Σ_k share_k · (what treatment k did)²

Some of it is measured along with the outcome, some grows with time, faster at some levels than at others, and some
comes with what is given: the same dose does not do quite the same again.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
from jaxtyping import Float64

LEVELS = (0.05, 0.35, 0.65, 0.95)  # quantiles of the outcomes between which the rate is interpolated
FIRST_SHARE = 0.01  # of what a treatment does, squared: before anything is learned
PSEUDO_RECORDS = 10.0  # that a level of its own must outweigh
SMALLEST = 1e-12  # variance, on a scale where outcomes have 1


@dataclass(frozen=True, eq=False)
class ResponseNoise:
    """How much each source adds.

    Attributes:
        measured: Variance, whatever the gap.
        rates: Variance per usual gap, at each level.
        shares: Of the square of what each treatment does.
        levels: Values of the outcome, on the model's scale, in ascending order.
    """

    measured: float
    rates: Float64[np.ndarray, " levels"]
    shares: Float64[np.ndarray, " treatments"]
    levels: Float64[np.ndarray, " levels"]

    @classmethod
    def before_learning(cls, variance: float, levels: Float64[np.ndarray, " levels"], treatments: int) -> ResponseNoise:
        """Half measured and half growing with time, alike at all levels."""
        half = max(0.5 * variance, SMALLEST)
        return cls(half, np.full(len(levels), half), np.full(treatments, FIRST_SHARE), levels)

    @property
    def usual_std(self) -> float:
        """Over a usual gap in which nothing is given."""
        return float(np.sqrt(self.measured + np.median(self.rates)))

    def variance(
        self,
        time: Float64[np.ndarray, "*#changes"],
        level: Float64[np.ndarray, "*#changes"],
        done: Float64[np.ndarray, "*#changes treatments"],
    ) -> Float64[np.ndarray, "*changes"]:
        """Of a change.

        Args:
            time: That it took, in usual gaps.
            level: That it started from.
            done: What each treatment is thought to have done meanwhile.
        """
        return self.measured + time * np.interp(level, self.levels, self.rates) + (done**2 * self.shares).sum(axis=-1)

    def learned(
        self,
        time: Float64[np.ndarray, " changes"],
        level: Float64[np.ndarray, " changes"],
        done: Float64[np.ndarray, "changes treatments"],
        counted: Float64[np.ndarray, " changes"],
    ) -> ResponseNoise:
        """Nearer to the likeliest: each source grows by as much as errors exceed what is expected where it matters.

        Args:
            time: Of each change, in usual gaps.
            level: Where it started from.
            done: What each treatment is thought to have done.
            counted: Its squared error, an outlier's less.
        """
        expected = self.variance(time, level, done)
        near = np.stack([np.interp(level, self.levels, own) for own in np.eye(len(self.levels))], axis=-1)
        sources = np.concatenate([np.ones((len(time), 1)), time[:, None] * near, done**2], axis=1)
        too_large = (sources / expected[:, None] * (counted / expected)[:, None]).sum(axis=0)
        factor = too_large / np.maximum((sources / expected[:, None]).sum(axis=0), SMALLEST)
        ends = 1, 1 + len(self.levels)
        rates, records = self.rates * factor[ends[0] : ends[1]], near.sum(axis=0)
        everywhere = float(records @ rates / max(records.sum(), 1.0))
        return replace(
            self,
            measured=max(float(self.measured * factor[0]), SMALLEST),
            rates=np.maximum((records * rates + PSEUDO_RECORDS * everywhere) / (records + PSEUDO_RECORDS), SMALLEST),
            shares=self.shares * factor[ends[1] :],
        )
