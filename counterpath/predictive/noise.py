"""The noise of an outcome about its mean: standard normal, or Student's t for heavier tails."""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache
from typing import Literal

import numpy as np
from jaxtyping import Float64
from scipy.special import ndtr, ndtri, stdtr, stdtrit

NODES = 40  # of the quadrature: means of the transforms are right to a thousandth of the spread, and mostly far better

NoiseKind = Literal["normal", "student_t"]


@dataclass(frozen=True)
class Noise:
    """A standard law that is symmetric about 0.

    Attributes:
        kind: `normal` or `student_t`.
        degrees: Of freedom, of Student's t.
    """

    kind: NoiseKind = "normal"
    degrees: float = 5.0

    def below(self, value: Float64[np.ndarray, "*values"]) -> Float64[np.ndarray, "*values"]:
        """Probability of less."""
        return ndtr(value) if self.kind == "normal" else stdtr(self.degrees, value)

    def quantile(self, level: Float64[np.ndarray, "*values"]) -> Float64[np.ndarray, "*values"]:
        """The value with this probability below it."""
        return ndtri(level) if self.kind == "normal" else stdtrit(self.degrees, level)

    def nodes(self) -> tuple[Float64[np.ndarray, " nodes"], Float64[np.ndarray, " nodes"]]:
        """Values and weights that sum to one: the mean of f(noise) is Σ weight · f(value)."""
        return _nodes(self.kind, self.degrees)


@lru_cache
def _nodes(kind: NoiseKind, degrees: float) -> tuple[np.ndarray, np.ndarray]:
    if kind == "normal":
        values, weights = np.polynomial.hermite_e.hermegauss(NODES)
    else:
        # With x = √ν tan θ the density is cos(θ)^(ν − 1) on (−π/2, π/2): smooth, and no tail is cut off.
        angle, weights = np.polynomial.legendre.leggauss(NODES)
        values = np.sqrt(degrees) * np.tan(angle * np.pi / 2)
        weights = weights * np.cos(angle * np.pi / 2) ** (degrees - 1)
    return values, weights / weights.sum()
