"""The law of one outcome, for many patients and horizons."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any, ClassVar, TypeVar

import numpy as np
from jaxtyping import Float64

PerPatient = Float64[np.ndarray, "patients horizons"]
OfDraws = Float64[np.ndarray, "draws patients horizons"]

KEPT_LEVELS = (0.005, 0.025, 0.05, 0.1, 0.25, 0.5, 0.75, 0.9, 0.95, 0.975, 0.995)

Same = TypeVar("Same", bound="Law")  # typing.Self is beyond the tests' type checker


class NotKeptError(ValueError):
    """A prediction was asked for something that it does not hold."""


@dataclass(frozen=True, eq=False)
class Law(ABC):
    """The law of an outcome at every patient and horizon.

    Attributes:
        patient_axis: Of each array that a kind of law holds.
        arrays_of_draws: Names of those that have draws as their first axis.
    """

    patient_axis: ClassVar[dict[str, int]]
    arrays_of_draws: ClassVar[tuple[str, ...]] = ()

    @property
    def number(self) -> int:
        """Of patients."""
        name, axis = next(iter(self.patient_axis.items()))
        return getattr(self, name).shape[axis]

    @property
    @abstractmethod
    def mean(self) -> PerPatient:
        """The expected outcome."""

    @property
    @abstractmethod
    def model_variance(self) -> PerPatient:
        """Of the expected outcome, over what the model does not know."""

    @property
    @abstractmethod
    def outcome_variance(self) -> PerPatient:
        """Of the outcome about its expectation."""

    @property
    def spread(self) -> PerPatient:
        """Standard deviation of the centres over draws, on the model's own scale; NaN where there is none."""
        return np.full_like(self.mean, np.nan)

    @abstractmethod
    def quantile(self, level: Float64[np.ndarray, "#patients #horizons"]) -> PerPatient:
        """The value below which the outcome lies with this probability."""

    @abstractmethod
    def below(self, value: Float64[np.ndarray, "#patients #horizons"]) -> PerPatient:
        """The probability that the outcome is not above this value."""

    @abstractmethod
    def expected(self) -> OfDraws:
        """The expected outcome, for each draw of what the model does not know."""

    @abstractmethod
    def sample(self, number: int, rng: np.random.Generator) -> OfDraws:
        """Equally likely outcomes."""

    def patients(self: Same, chosen: slice | np.ndarray) -> Same:
        """The same for some patients."""
        return self._with(
            {name: getattr(self, name)[(slice(None),) * axis + (chosen,)] for name, axis in self.patient_axis.items()}
        )

    def _with(self: Same, arrays: dict[str, np.ndarray]) -> Same:
        changed: Any = arrays
        return replace(self, **changed)

    @property
    def kind(self) -> str:
        """Everything but the arrays: laws of one kind can be mixed."""
        others = {name: value for name, value in vars(self).items() if name in self.__dataclass_fields__}
        return repr((type(self), {name: value for name, value in others.items() if name not in self.patient_axis}))

    def summarised(self) -> Kept:
        """The figures that a summary needs, in a hundredth of the memory."""
        quantiles = np.stack([self.quantile(np.full((1, 1), level)) for level in KEPT_LEVELS])
        return Kept(self.mean, self.model_variance, self.outcome_variance, quantiles)


@dataclass(frozen=True, eq=False)
class Kept(Law):
    """What `keep="summary"` keeps: means, variances and some quantiles.

    Attributes:
        means: The expected outcome.
        model_variances: Of the expected outcome.
        outcome_variances: Of the outcome about it.
        quantiles: At `KEPT_LEVELS`.
    """

    means: PerPatient
    model_variances: PerPatient
    outcome_variances: PerPatient
    quantiles: Float64[np.ndarray, "levels patients horizons"]
    patient_axis: ClassVar = {"means": 0, "model_variances": 0, "outcome_variances": 0, "quantiles": 1}

    @property
    def mean(self) -> PerPatient:
        """As it was kept."""
        return self.means

    @property
    def model_variance(self) -> PerPatient:
        """As it was kept."""
        return self.model_variances

    @property
    def outcome_variance(self) -> PerPatient:
        """As it was kept."""
        return self.outcome_variances

    def quantile(self, level: Float64[np.ndarray, "#patients #horizons"]) -> PerPatient:
        """One of those that were kept."""
        near = [np.isclose(level, kept).all() for kept in KEPT_LEVELS]
        if not any(near):
            raise NotKeptError(
                f"Only quantiles at {', '.join(f'{kept:g}' for kept in KEPT_LEVELS)} were kept. "
                "Predict with keep='draws' for others."
            )
        return self.quantiles[int(np.flatnonzero(near)[0])]

    def _not_kept(self, what: str) -> NotKeptError:
        return NotKeptError(f"keep='summary' keeps no {what}. Predict with keep='draws'.")

    def below(self, value: Float64[np.ndarray, "#patients #horizons"]) -> PerPatient:
        """Not kept."""
        raise self._not_kept("probabilities")

    def expected(self) -> OfDraws:
        """Not kept."""
        raise self._not_kept("draws")

    def sample(self, number: int, rng: np.random.Generator) -> OfDraws:
        """Not kept."""
        raise self._not_kept("draws")

    def summarised(self) -> Kept:
        """Itself."""
        return self


def join_patients(laws: Sequence[Law]) -> Law:
    """The law of all patients, from laws of the same kind for some of them each."""
    first = laws[0]
    if len(laws) == 1:
        return first
    axes = first.patient_axis.items()
    return first._with({name: np.concatenate([getattr(law, name) for law in laws], axis=axis) for name, axis in axes})


def join_draws(laws: Sequence[Law]) -> Law:
    """The mixture of several laws of the same points, each as likely as it has draws."""
    first = laws[0]
    if len({law.kind for law in laws}) > 1 or not first.arrays_of_draws:
        raise ValueError("These models work on different scales and cannot be mixed. Fit them to the same patients.")
    return first._with({name: np.concatenate([getattr(law, name) for law in laws]) for name in first.arrays_of_draws})
