"""What every model answers when it is asked: `predict`, `effect`, `rank`."""

from __future__ import annotations

import warnings
from abc import ABC, abstractmethod
from collections.abc import Iterator, Mapping, Sequence
from types import MappingProxyType
from typing import Literal, TypeVar

import numpy as np
from jaxtyping import Float64

from counterpath.cohort import Cohort, CohortError, Plan, Schema, Variable
from counterpath.cohort.findings import did_you_mean
from counterpath.predictive import (
    Direction,
    Effect,
    Experience,
    Law,
    LevelMap,
    Prediction,
    Ranking,
    Recalibrated,
    Support,
    UnsupportedPlanWarning,
    join_patients,
    support_of,
)
from counterpath.predictive.progress import patients_done

Fitted = TypeVar("Fitted", bound="Answers")  # typing.Self is beyond the tests' type checker


class NotFittedError(ValueError):
    """A model was asked before it was fitted."""


class Answers(ABC):
    """A model of what would happen to a patient under a plan.

    Attributes:
        max_horizon: The longest horizon that may be asked for.
        seed: Of everything random in a fit.
    """

    max_horizon: float
    seed: int = 0
    schema: Schema | None = None
    experience_: Experience | None = None  # of a model that learned from patients
    draws_to_judge = 1_000  # of a model whose draws hold the noise; one with a law of it needs fewer
    levels_: Mapping[str, LevelMap] = MappingProxyType({})  # set by `calibrate`, by outcome

    @property
    def outcomes_predicted(self) -> int:
        """How many of the cohort's outcomes the model predicts, from the first on."""
        return 1

    def even_horizons(self, number: int = 5) -> list[float]:
        """So many, in even steps up to the longest."""
        return np.linspace(0.0, self.max_horizon, number + 1)[1:].tolist()

    @abstractmethod
    def fit(self: Fitted, train: Cohort, validation: Cohort | None = None) -> Fitted:
        """Learn from training patients; `validation` is for choices, never for learning."""

    @abstractmethod
    def laws(
        self, history: Cohort, plan: Plan, horizons: Float64[np.ndarray, "patients horizons"], draws: int, seed: int
    ) -> Iterator[tuple[Law, ...]]:
        """The law of each outcome that the model predicts, for some patients after the other.

        Histories and horizons have been checked; each patient has horizons of their own. All patients at once is fine
        where memory does not matter.
        """

    def predict(
        self,
        history: Cohort,
        plan: Plan,
        *,
        horizons: Sequence[float],
        draws: int = 100,
        seed: int = 0,
        keep: Literal["draws", "summary"] = "draws",
        recalibrated: bool | None = None,
        progress: bool = True,
    ) -> Prediction:
        """The predictive distribution of each patient's outcomes under a plan.

        Args:
            history: Patients as they are known now; `cohort.until(t)` makes one.
            plan: What is given from now on: for all, or `Plan.per_patient`.
            horizons: Elapsed times, up to `max_horizon`.
            draws: Of what the model does not know. Noise about them is exact where the model gives its law.
            seed: The same seed gives the same draws.
            keep: `draws`, or `summary` for many patients: means, uncertainties and the usual intervals only.
            recalibrated: Whether quantiles, intervals and probabilities have the levels that `calibrate` has set;
                default: if it has.
            progress: Show it, where it takes long.
        """
        asked = self._checked(history, horizons, draws)
        if keep not in ("draws", "summary"):
            raise CohortError(f"keep={keep!r} is neither 'draws' nor 'summary'.")
        parts, spread = [], []
        each = np.tile(asked, (len(history), 1))
        for laws in patients_done(self.laws(history, plan, each, draws, seed), len(history), shown=progress):
            spread.append(np.stack([law.spread for law in laws], axis=-1))
            if keep == "summary":
                laws = self._with_levels(laws, history.schema, each[: laws[0].number], recalibrated)
                laws = [law.summarised() for law in laws]
            parts.append(laws)
        joined = tuple(join_patients(of_outcome) for of_outcome in zip(*parts, strict=True))
        if keep == "draws":
            joined = self._with_levels(joined, history.schema, each, recalibrated)
        outcomes = history.schema.outcomes[: len(joined)]
        column, frames = history.schema.patient_column, history.frames
        support = self._support(history, plan, asked, np.concatenate(spread))
        return Prediction(history.patients, asked, outcomes, joined, column, frames, history, plan, support)

    def effect(
        self,
        history: Cohort,
        plan: Plan,
        *,
        versus: Plan,
        horizons: Sequence[float],
        outcome: str | None = None,
        draws: int = 100,
        seed: int = 0,
        progress: bool = True,
    ) -> Effect:
        """What a plan changes against another, in expectation, for each patient.

        Args:
            history: Patients as they are known now.
            plan: What is asked about.
            versus: What it is compared with, such as `Plan.none()`.
            horizons: Elapsed times.
            outcome: Which; default: the first.
            draws: Of the weights, the same for both plans.
            seed: Of the draws.
            progress: Show it, where it takes long.
        """
        expected, support = self._expected(history, [plan, versus], horizons, outcome, draws, seed, progress)
        both = None if support[0] is None or support[1] is None else support[0].weaker(support[1])
        if both is not None and both.warning:
            warnings.warn(f"The effect is extrapolated; {both.warning}. See effect.support.", UnsupportedPlanWarning, 2)
        asked, variable = np.asarray(horizons, dtype=np.float64), self._outcome(history, outcome)[1]
        return Effect(history, plan, versus, asked, variable, expected[0] - expected[1], both)

    def rank(
        self,
        history: Cohort,
        plans: Mapping[str, Plan],
        *,
        better: Direction,
        horizons: Sequence[float],
        outcome: str | None = None,
        draws: int = 100,
        seed: int = 0,
        progress: bool = True,
    ) -> Ranking:
        """Which plan is best in expectation for each patient, and with what probability.

        Args:
            history: Patients as they are known now.
            plans: Two or more, by name.
            better: Whether `lower` or `higher` outcomes are.
            horizons: Elapsed times.
            outcome: Which; default: the first.
            draws: Of the weights, the same for all plans.
            seed: Of the draws.
            progress: Show it, where it takes long.
        """
        if len(plans) < 2:
            raise CohortError("One plan is always the best of one. Give two or more, by name.")
        if better not in ("lower", "higher"):
            raise CohortError(f"better={better!r}: say whether 'lower' or 'higher' outcomes are better.")
        expected, support = self._expected(history, list(plans.values()), horizons, outcome, draws, seed, progress)
        for name, of_plan in zip(plans, support, strict=True):
            if of_plan is not None and of_plan.warning:
                warnings.warn(f"Plan {name!r} was {of_plan.warning}. See ranking.support.", UnsupportedPlanWarning, 2)
        asked, variable = np.asarray(horizons, dtype=np.float64), self._outcome(history, outcome)[1]
        return Ranking(history, dict(plans), asked, variable, better, np.stack(expected), tuple(support))

    def _expected(
        self,
        history: Cohort,
        plans: Sequence[Plan],
        horizons: Sequence[float],
        outcome: str | None,
        draws: int,
        seed: int,
        progress: bool,
    ) -> tuple[list[Float64[np.ndarray, "draws patients horizons"]], list[Support | None]]:
        """The expected outcome under each plan, with the same draws of the weights for all; and what supports it."""
        asked = self._checked(history, horizons, draws)
        which, _ = self._outcome(history, outcome)
        each = np.tile(asked, (len(history), 1))
        expected, support = [], []
        for plan in plans:
            laws = patients_done(self.laws(history, plan, each, draws, seed), len(history), shown=progress)
            means, spreads = zip(*((own[which].expected(), own[which].spread) for own in laws), strict=True)
            expected.append(np.concatenate(means, axis=1))
            support.append(self._support(history, plan, asked, np.concatenate(spreads)[..., None]))
        return expected, support

    def _support(
        self,
        history: Cohort,
        plan: Plan,
        horizons: Float64[np.ndarray, " horizons"],
        spread: Float64[np.ndarray, "patients horizons outcomes"],
    ) -> Support | None:
        if self.experience_ is None or self.schema is None:
            return None
        mine, theirs = ([treatment.name for treatment in s.treatments] for s in (self.schema, history.schema))
        if mine != theirs:  # a model that looks at treatments has refused already
            return None
        return support_of(self.experience_, self.schema, history, plan, horizons, spread)

    def _outcome(self, history: Cohort, name: str | None) -> tuple[int, Variable]:
        outcomes = history.schema.outcomes
        names = [variable.name for variable in outcomes]
        if name is not None and name not in names:
            raise CohortError(f"{name!r} is no outcome of this model. {did_you_mean(name, names)}")
        which = 0 if name is None else names.index(name)
        return which, outcomes[which]

    def _checked(self, history: Cohort, horizons: Sequence[float], draws: int) -> Float64[np.ndarray, " horizons"]:
        self._require_fitted(history)
        if not len(history):
            raise CohortError("There is no patient in this cohort to ask about.")
        asked = np.asarray(horizons, dtype=np.float64)
        if asked.ndim != 1 or not len(asked):
            raise CohortError("horizons is a list of elapsed times, such as [1, 3, 5].")
        if not (np.all(asked > 0) and np.all(asked <= self.max_horizon)):
            raise CohortError(
                f"Horizons must lie above 0 and up to max_horizon={self.max_horizon:g}; {asked.tolist()} do not. "
                f"Fit {type(self).__name__}(max_horizon=…) for longer ones."
            )
        if draws < 2:
            raise CohortError(f"draws={draws} is no distribution. Use 2 or more.")
        return asked

    def _laws_of_all(
        self, history: Cohort, plan: Plan, horizons: np.ndarray, draws: int, seed: int, progress: bool
    ) -> tuple[Law, ...]:
        done = patients_done(self.laws(history, plan, horizons, draws, seed), len(history), shown=progress)
        return tuple(join_patients(of_outcome) for of_outcome in zip(*done, strict=True))

    def _with_levels(
        self, laws: Sequence[Law], schema: Schema, horizons: np.ndarray, recalibrated: bool | None
    ) -> tuple[Law, ...]:
        if recalibrated and not self.levels_:
            raise NotFittedError(f"This {type(self).__name__} was not calibrated. Call calibrate(cohort) first.")
        if recalibrated is False or not self.levels_:
            return tuple(laws)
        named = zip(laws, schema.outcomes, strict=False)
        return tuple(Recalibrated(law, self.levels_[variable.name], horizons) for law, variable in named)

    def _require_fitted(self, history: Cohort) -> None:
        if self.schema is None:
            raise NotFittedError(f"This {type(self).__name__} has not been fitted. Call fit(train) first.")
        mine, theirs = ([v.name for v in s.outcomes] for s in (self.schema, history.schema))
        if mine != theirs or self.schema.time_unit != history.schema.time_unit:
            raise CohortError(
                f"The model was fitted to {', '.join(mine)} in {self.schema.time_unit}s; this cohort has "
                f"{', '.join(theirs)} in {history.schema.time_unit}s."
            )
