"""The noise of an outcome about its centre: normal, or Student's t for heavier tails; alike on both sides, or not.

Below the centre it is half of a bell, above it half of another, and they meet at the same height. So the side below has
a share s₋ / (s₋ + s₊) of the probability, where s₋ and s₊ are the widths of the two.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache
from typing import Literal

import numpy as np
from jaxtyping import Float, Float64
from scipy.special import gamma, ndtr, ndtri, stdtr, stdtrit

NODES = 20  # of the quadrature, on each side: means are right to a thousandth of the spread, and mostly far better
FARTHEST = 9.0  # standard deviations of a normal: what lies beyond does not count in double precision

NoiseKind = Literal["normal", "student_t"]
Sides = Float[np.ndarray, "*values sides"]


@dataclass(frozen=True)
class Noise:
    """A law about 0.

    Attributes:
        kind: Of both halves: `normal` or `student_t`.
        degrees: Of freedom, of Student's t.
    """

    kind: NoiseKind = "normal"
    degrees: float = 5.0

    def below(self, value: Float64[np.ndarray, "*values"], sides: Sides) -> Float64[np.ndarray, "*values"]:
        """Probability of less.

        Args:
            value: Of the noise.
            sides: Widths below and above 0, or one for both.
        """
        low, high = sides[..., 0], sides[..., -1]
        own = np.where(value < 0, low, high)
        tail = 2 * own / (low + high) * self._below(-np.abs(value) / own)
        return np.where(value < 0, tail, 1 - tail)

    def quantile(self, level: Float64[np.ndarray, "#*values"], sides: Sides) -> Float64[np.ndarray, "*values"]:
        """The value with this probability below it.

        Args:
            level: The probability.
            sides: Widths below and above 0, or one for both.
        """
        low, high = sides[..., 0].astype(np.float64), sides[..., -1].astype(np.float64)
        is_low = level * (low + high) < low
        own = np.where(is_low, low, high)
        tail = np.where(is_low, level, 1 - level) * (low + high) / (2 * own)
        away = own * self._quantile(np.minimum(tail, 0.5))
        return np.where(is_low, away, -away)

    def moments(self, sides: Sides) -> tuple[Float[np.ndarray, "*values"], Float[np.ndarray, "*values"]]:
        """Mean and standard deviation, the latter in units of that of the bell itself."""
        low, high = sides[..., 0], sides[..., -1]
        first, second = _moments(self.kind, self.degrees)
        variance = low**2 - low * high + high**2 - first**2 / second * (high - low) ** 2
        return first * (high - low), np.sqrt(variance)

    def half_nodes(self) -> tuple[Float64[np.ndarray, " nodes"], Float64[np.ndarray, " nodes"]]:
        """Positive values and weights that sum to one: the mean of f(|bell|) is Σ weight · f(value)."""
        return _half_nodes(self.kind, self.degrees)

    def _below(self, value: np.ndarray) -> np.ndarray:
        return ndtr(value) if self.kind == "normal" else stdtr(self.degrees, value)

    def _quantile(self, level: np.ndarray) -> np.ndarray:
        return ndtri(level) if self.kind == "normal" else stdtrit(self.degrees, level)


@lru_cache
def _half_nodes(kind: NoiseKind, degrees: float) -> tuple[np.ndarray, np.ndarray]:
    place, weights = np.polynomial.legendre.leggauss(NODES)
    place = (place + 1) / 2
    if kind == "normal":
        values = FARTHEST * place
        weights = weights * np.exp(-0.5 * values**2)
    else:
        # With x = √ν tan θ the density is cos(θ)^(ν − 1) on (0, π/2): smooth, and no tail is cut off.
        values = np.sqrt(degrees) * np.tan(place * np.pi / 2)
        weights = weights * np.cos(place * np.pi / 2) ** (degrees - 1)
    return values, weights / weights.sum()


@lru_cache
def _moments(kind: NoiseKind, degrees: float) -> tuple[float, float]:
    """Of the bell: mean of its absolute value, and variance."""
    if kind == "normal":
        return float(np.sqrt(2 / np.pi)), 1.0
    first = 2 * np.sqrt(degrees / np.pi) * gamma((degrees + 1) / 2) / (gamma(degrees / 2) * (degrees - 1))
    return float(first), degrees / (degrees - 2)
