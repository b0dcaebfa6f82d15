"""Equally likely outcomes."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np
from jaxtyping import Float64

from counterpath.predictive.law import Law, OfDraws, PerPatient


@dataclass(frozen=True, eq=False)
class Draws(Law):
    """Equally likely outcomes.

    Attributes:
        draws: In the outcome's unit.
        of_weights: Whether a draw is what one draw of the weights expects, and there is no noise; otherwise draws mix
            what is not known of the model with the noise, and the two cannot be told apart.
    """

    draws: OfDraws
    of_weights: bool = False
    patient_axis: ClassVar = {"draws": 1}
    arrays_of_draws: ClassVar = ("draws",)

    def expected(self) -> OfDraws:
        """The draws themselves, or their mean where they hold noise."""
        return self.draws if self.of_weights else self.mean[None]

    @property
    def mean(self) -> PerPatient:
        """Of the draws."""
        return self.draws.mean(axis=0)

    @property
    def model_variance(self) -> PerPatient:
        """Of the draws, where there is no noise in them; otherwise not known."""
        return self.draws.var(axis=0) if self.of_weights else np.full(self.draws.shape[1:], np.nan)

    @property
    def outcome_variance(self) -> PerPatient:
        """None, or not known."""
        return np.full(self.draws.shape[1:], 0.0 if self.of_weights else np.nan)

    def quantile(self, level: Float64[np.ndarray, "#patients #horizons"]) -> PerPatient:
        """Order statistic number level · (n + 1).

        An interval between two of them holds an exchangeable outcome exactly as often as it says. The usual
        interpolation, level · (n − 1) + 1, is too narrow by 0.2 points at 99% of 1,000 draws.
        """
        if level.size == 1:
            return np.quantile(self.draws, level.item(), axis=0, method="weibull")
        ordered = np.sort(self.draws, axis=0)
        place = np.clip(np.broadcast_to(level, ordered.shape[1:]) * (len(ordered) + 1) - 1, 0, len(ordered) - 1)
        low = np.floor(place).astype(np.int64)
        high = np.minimum(low + 1, len(ordered) - 1)
        lower, upper = (np.take_along_axis(ordered, at[None], axis=0)[0] for at in (low, high))
        return lower + (place - low) * (upper - lower)

    def below(self, value: Float64[np.ndarray, "#patients #horizons"]) -> PerPatient:
        """The share of draws."""
        return (self.draws <= value).mean(axis=0)

    def sample(self, number: int, rng: np.random.Generator) -> OfDraws:
        """The draws, or so many of them: each equally often, as far as the number allows."""
        if number == len(self.draws):
            return self.draws
        rounds = -(-number // len(self.draws))
        order = np.concatenate([rng.permutation(len(self.draws)) for _ in range(rounds)])
        return self.draws[order[:number]]
