"""Transforms of an outcome on which a normal likelihood is fair, and whose way back cannot explode.

A Gaussian on a plain log scale lets the mean of a few patients reach 1e11 while their median is fine. Every inverse
here grows at most quadratically, so means and variances stay of the size of the data.
"""

from __future__ import annotations

import math
from abc import abstractmethod
from typing import Annotated, Literal

import numpy as np
from jaxtyping import Float64
from pydantic import Field

from counterpath.cohort.findings import CohortError
from counterpath.cohort.rounding import rounded, rounded_up
from counterpath.cohort.schema import Strict

# Of the training outcomes: so many of the smallest are told apart by their difference, not by their ratio. Without it a
# tumour that is gone (1e-8 of one) would be further from a small one than that from the largest.
FOOT_SHARE = 0.05

DIGITS = 2  # of constants that would otherwise be a patient's value

TransformName = Literal["standard", "log", "robust", "auto"]

_Values = Float64[np.ndarray, "*values"]


class Transform(Strict):
    """A smooth increasing map from outcome to model scale, with its inverse and slope."""

    @abstractmethod
    def forward(self, outcome: _Values) -> _Values:
        """To the model's scale."""

    @abstractmethod
    def inverse(self, transformed: _Values) -> _Values:
        """Back to the outcome's own unit. Increasing, so quantiles go through it as they are."""

    @abstractmethod
    def log_slope(self, outcome: _Values) -> _Values:
        """Log of the derivative of `forward`: what a log density gains on the way."""


class Standard(Transform):
    """z = y."""

    name: Literal["standard"] = "standard"

    def forward(self, outcome: _Values) -> _Values:
        """Z = y."""
        return outcome

    def inverse(self, transformed: _Values) -> _Values:
        """Y = z."""
        return transformed

    def log_slope(self, outcome: _Values) -> _Values:
        """0."""
        return np.zeros_like(outcome)


class Log(Transform):
    """z = log(v / knee) between foot and knee, a straight line with the same slope on either side; v = y − lower.

    The knee is the largest training value, rounded up, and about a twentieth of them lie below the foot. Relative
    changes count between the two. Above, the line keeps the mean of a wide forecast sane; below, it reaches the bound
    itself, so that a patient at or near zero does not rule the scale.
    """

    name: Literal["log"] = "log"
    lower: float = 0.0
    foot: Annotated[float, Field(gt=0.0)]
    knee: Annotated[float, Field(gt=0.0)]

    def forward(self, outcome: _Values) -> _Values:
        """Logarithmic in the middle, linear outside."""
        v = outcome - self.lower
        middle = np.log(np.clip(v, self.foot, self.knee) / self.knee)
        return middle + np.maximum(v / self.knee - 1, 0.0) + np.minimum(v / self.foot - 1, 0.0)

    def inverse(self, transformed: _Values) -> _Values:
        """Exponential in the middle, linear outside, never below `lower`."""
        bottom = math.log(self.foot / self.knee)
        middle = self.knee * np.exp(np.clip(transformed, bottom, 0.0))
        v = middle + self.knee * np.maximum(transformed, 0.0) + self.foot * np.minimum(transformed - bottom, 0.0)
        return self.lower + np.maximum(v, 0.0)

    def log_slope(self, outcome: _Values) -> _Values:
        """−log v in the middle."""
        return -np.log(np.clip(outcome - self.lower, self.foot, self.knee))


class Robust(Transform):
    """z = sign(u) · 2 (√(1 + |u|) − 1) with u = (y − centre) / scale: linear in the middle, square root in the tails.

    Outliers are drawn in, and the inverse is quadratic, so every moment of a Gaussian on this scale exists.
    """

    name: Literal["robust"] = "robust"
    centre: float
    scale: Annotated[float, Field(gt=0.0)]

    def forward(self, outcome: _Values) -> _Values:
        """Tails drawn in."""
        u = (outcome - self.centre) / self.scale
        return np.sign(u) * 2 * np.abs(u) / (np.sqrt(1 + np.abs(u)) + 1)  # stable form of √(1 + |u|) − 1

    def inverse(self, transformed: _Values) -> _Values:
        """The way back: u = sign(z) (|z| + z² / 4)."""
        size = np.abs(transformed)
        return self.centre + self.scale * np.sign(transformed) * (size + size**2 / 4)

    def log_slope(self, outcome: _Values) -> _Values:
        """−½ log(1 + |u|) − log scale."""
        return -0.5 * np.log1p(np.abs(outcome - self.centre) / self.scale) - math.log(self.scale)


AnyTransform = Annotated[Standard | Log | Robust, Field(discriminator="name")]


def fit_transform(name: TransformName, outcome: Float64[np.ndarray, " values"], lower: float | None) -> AnyTransform:
    """The named transform with its constants from training outcomes; `auto` takes the one that fits best.

    `auto` compares the likelihood of the training outcomes as one normal on each scale, with the slope of the map
    counted (the principle of Box and Cox), and so does not depend on the outcome's unit.

    Args:
        name: `standard`, `log`, `robust` or `auto`.
        outcome: Training outcomes, without gaps.
        lower: The outcome's lower bound, from which the log is taken; 0 where there is none.
    """
    if not len(outcome):
        raise CohortError("There is no outcome to fit a transform to.")
    floor = 0.0 if lower is None else lower
    if name == "standard":
        return Standard()
    if name == "log":
        if np.min(outcome) <= floor:
            raise CohortError(
                f"The log transform needs training outcomes above {floor:g}, and {np.sum(outcome <= floor):,} are not. "
                "Use transform='robust' or 'standard'."
            )
        foot = rounded(float(np.quantile(outcome, FOOT_SHARE)) - floor, DIGITS)
        return Log(lower=floor, foot=foot, knee=rounded_up(float(np.max(outcome) - floor), DIGITS))
    if name == "robust":
        quartiles = np.quantile(outcome, [0.25, 0.75])
        spread = float(quartiles[1] - quartiles[0]) / 1.349 or float(np.std(outcome)) or 1.0
        return Robust(centre=rounded(float(np.median(outcome)), DIGITS + 1), scale=spread)
    candidates = [fit_transform("standard", outcome, lower), fit_transform("robust", outcome, lower)]
    if np.min(outcome) > floor:
        candidates.append(fit_transform("log", outcome, lower))
    return max(candidates, key=lambda transform: normal_log_likelihood(transform, outcome))


def normal_log_likelihood(transform: Transform, outcome: Float64[np.ndarray, " values"]) -> float:
    """Mean log density of outcomes that are normal on the transform's scale, with fitted mean and std."""
    transformed = transform.forward(outcome)
    std = float(np.std(transformed))
    if std == 0:
        return -math.inf if not isinstance(transform, Standard) else 0.0
    return float(-math.log(std) + np.mean(transform.log_slope(outcome)))
