"""Levels that hold what they say, learned from patients whose outcomes are known."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated, ClassVar

import numpy as np
from jaxtyping import Float64
from pydantic import Field, model_validator

from counterpath.cohort import CohortError
from counterpath.cohort.schema import Strict
from counterpath.predictive.elapsed_bins import elapsed_bins
from counterpath.predictive.law import Law, OfDraws, PerPatient
from counterpath.predictive.points import Points

FEWEST = 39  # outcomes in a bin: with fewer, the ends of a 95% interval lie beyond all of them
MOST_KEPT = 999  # levels of a bin

SMALLEST = 1e-9  # level of a quantile that is still a number; slopes between smaller ones may overflow

Level = Annotated[float, Field(ge=0.0, le=1.0)]


class LevelMap(Strict):
    """For each bin of elapsed time, where in their forecasts so many outcomes fell.

    The guarantee: patients who are exchangeable with those it was learned from, under the plans that they really got,
    have their outcome below the recalibrated quantile of level p with probability p, to 1/(n + 1) for n patients in the
    bin, on average over patients. It says nothing about other plans, subgroups, or patients of another kind.

    Attributes:
        edges: Between bins.
        levels: By bin, for equally spaced levels between 0 and 1: the level of the model that held as many.
        patients: By bin, from how many patients.
    """

    edges: tuple[float, ...]
    levels: tuple[tuple[Level, ...], ...]
    patients: tuple[int, ...]

    @model_validator(mode="after")
    def _consistent(self) -> LevelMap:
        if len(self.levels) != len(self.edges) + 1 or len(self.patients) != len(self.levels):
            raise ValueError("there must be levels for each bin between the edges")
        if any(not own or list(own) != sorted(own) for own in self.levels) or list(self.edges) != sorted(self.edges):
            raise ValueError("edges and levels must increase")
        return self

    def of_model(self, level: np.ndarray, elapsed: np.ndarray) -> Float64[np.ndarray, "patients horizons"]:
        """The model's level that holds what `level` says."""
        return self._through(level, elapsed, lambda own, said, value: np.interp(value, said, own))

    def said(self, level: np.ndarray, elapsed: np.ndarray) -> Float64[np.ndarray, "patients horizons"]:
        """What the model's `level` really holds."""
        return self._through(level, elapsed, lambda own, said, value: np.interp(value, own, said))

    def _through(self, level: np.ndarray, elapsed: np.ndarray, read) -> np.ndarray:
        which = np.searchsorted(self.edges, elapsed, side="left")
        levels = np.broadcast_to(level, elapsed.shape)
        result = np.empty(elapsed.shape)
        for number, own in enumerate(self.levels):
            held = np.concatenate([[0.0], np.where(np.less(own, SMALLEST), 0.0, own), [1.0]])
            spaced = np.linspace(0.0, 1.0, len(held))
            mine = which == number
            result[mine] = read(held, spaced, levels[mine])
        return result

    def __str__(self) -> str:
        if len(set(self.patients)) == 1:
            number = f"{self.patients[0]:,} patients"
        else:
            number = f"{min(self.patients):,} to {max(self.patients):,} patients in each of {len(self.patients)} bins"
        return (
            f"Levels were set on {number}. They hold for patients of the same kind under the plans that they really "
            "got, on average; not for other plans or single subgroups. Draws and effects are as the model gives them."
        )


def fit_levels(points: Points) -> LevelMap:
    """The map from outcomes of patients that the model has not seen, at most one of each patient in a bin.

    Args:
        points: Points and outcomes.
    """
    edges = elapsed_bins(points.elapsed)
    while len(edges) and (numbers := _patients_by_bin(points, edges)).min() < FEWEST:
        edges = np.delete(edges, max(int(np.argmin(numbers)) - 1, 0))  # the smallest is joined with the one before it
    which = np.searchsorted(edges, points.elapsed, side="left")
    levels, patients = [], []
    for number in range(len(edges) + 1):
        pit, who = points.pit[which == number], points.patient[which == number]
        _, first = np.unique(who, return_index=True)
        if len(first) < FEWEST:
            raise CohortError(
                f"Only {len(first)} patients have an outcome within the horizons: too few to set levels on. Give at "
                f"least {FEWEST}, better some hundreds."
            )
        ordered = np.sort(pit[first])
        if len(ordered) > MOST_KEPT:
            spaced = np.arange(1, MOST_KEPT + 1) / (MOST_KEPT + 1)
            ordered = np.interp(spaced, np.arange(1, len(ordered) + 1) / (len(ordered) + 1), ordered)
        levels.append(tuple(ordered.tolist()))
        patients.append(len(first))
    return LevelMap(edges=tuple(edges.tolist()), levels=tuple(levels), patients=tuple(patients))


def _patients_by_bin(points: Points, edges: np.ndarray) -> np.ndarray:
    which = np.searchsorted(edges, points.elapsed, side="left")
    return np.array([len(np.unique(points.patient[which == number])) for number in range(len(edges) + 1)])


@dataclass(frozen=True, eq=False)
class Recalibrated(Law):
    """A law whose quantiles, intervals and probabilities go through a map of levels; draws and means stay.

    Attributes:
        law: As the model gives it.
        levels: The map.
        elapsed: The horizons of each patient.
    """

    law: Law
    levels: LevelMap
    elapsed: Float64[np.ndarray, "patients horizons"]
    patient_axis: ClassVar = {"elapsed": 0}

    @property
    def mean(self) -> PerPatient:
        """The model's."""
        return self.law.mean

    @property
    def model_variance(self) -> PerPatient:
        """The model's."""
        return self.law.model_variance

    @property
    def outcome_variance(self) -> PerPatient:
        """The model's."""
        return self.law.outcome_variance

    def expected(self) -> OfDraws:
        """The model's."""
        return self.law.expected()

    def sample(self, number: int, rng: np.random.Generator) -> OfDraws:
        """The model's."""
        return self.law.sample(number, rng)

    def quantile(self, level: Float64[np.ndarray, "#patients #horizons"]) -> PerPatient:
        """At the model's level that holds as much."""
        inside = np.clip(self.levels.of_model(level, self.elapsed), SMALLEST, 1 - SMALLEST)
        return self.law.quantile(inside)

    def below(self, value: Float64[np.ndarray, "#patients #horizons"]) -> PerPatient:
        """What the model's probability really holds."""
        return self.levels.said(self.law.below(value), self.elapsed)

    def patients(self, chosen: slice | np.ndarray) -> Recalibrated:
        """Of some patients."""
        return Recalibrated(self.law.patients(chosen), self.levels, self.elapsed[chosen])
