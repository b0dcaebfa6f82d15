"""What every model promises: `fit`, `predict`, `effect`, `rank`, `evaluate`."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterator, Mapping, Sequence
from os import PathLike
from typing import Any, Literal, TypeVar

import numpy as np
from jaxtyping import Float64

from counterpath.cohort import Cohort, CohortError, Plan, Schema, Variable
from counterpath.cohort.cuts import outcomes_after
from counterpath.cohort.findings import did_you_mean
from counterpath.predictive import (
    Direction,
    Effect,
    Evaluation,
    Law,
    Prediction,
    Ranking,
    evaluate_prediction,
    join_patients,
)
from counterpath.predictive.progress import patients_done

Fitted = TypeVar("Fitted", bound="Estimator")  # typing.Self is beyond the tests' type checker

SAME_TIME = 1e-6  # of the horizon: a record this near counts as taken at it


class NotFittedError(ValueError):
    """A model was asked before it was fitted."""


class Estimator(ABC):
    """A model of what would happen to a patient under a plan.

    Attributes:
        max_horizon: The longest horizon that may be asked for.
        seed: Of everything random in a fit.
    """

    max_horizon: float
    seed: int = 0
    schema: Schema | None = None
    draws_to_judge = 1_000  # of a model whose draws hold the noise; one with a law of it needs fewer

    @abstractmethod
    def fit(self: Fitted, train: Cohort, validation: Cohort | None = None) -> Fitted:
        """Learn from training patients; `validation` is for choices, never for learning."""

    @abstractmethod
    def laws(
        self, history: Cohort, plan: Plan, horizons: Float64[np.ndarray, " horizons"], draws: int, seed: int
    ) -> Iterator[tuple[Law, ...]]:
        """The law of each outcome that the model predicts, for some patients after the other.

        Histories and horizons have been checked. All patients at once is fine where memory does not matter.
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
            progress: Show it, where it takes long.
        """
        asked = self._checked(history, horizons, draws)
        if keep not in ("draws", "summary"):
            raise CohortError(f"keep={keep!r} is neither 'draws' nor 'summary'.")
        parts = []
        for laws in patients_done(self.laws(history, plan, asked, draws, seed), len(history), shown=progress):
            parts.append([law.summarised() if keep == "summary" else law for law in laws])
        joined = tuple(join_patients(of_outcome) for of_outcome in zip(*parts, strict=True))
        outcomes = history.schema.outcomes[: len(joined)]
        column, frames = history.schema.patient_column, history.frames
        return Prediction(history.patients, asked, outcomes, joined, column, frames, history, plan)

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
        with_plan, without = self._expected(history, [plan, versus], horizons, outcome, draws, seed, progress)
        asked = np.asarray(horizons, dtype=np.float64)
        return Effect(history, plan, versus, asked, self._outcome(history, outcome)[1], with_plan - without)

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
        expected = self._expected(history, list(plans.values()), horizons, outcome, draws, seed, progress)
        asked, variable = np.asarray(horizons, dtype=np.float64), self._outcome(history, outcome)[1]
        return Ranking(history, dict(plans), asked, variable, better, np.stack(expected))

    def _expected(
        self,
        history: Cohort,
        plans: Sequence[Plan],
        horizons: Sequence[float],
        outcome: str | None,
        draws: int,
        seed: int,
        progress: bool,
    ) -> list[Float64[np.ndarray, "draws patients horizons"]]:
        """The expected outcome under each plan, with the same draws of the weights for all."""
        asked = self._checked(history, horizons, draws)
        which, _ = self._outcome(history, outcome)
        found = []
        for plan in plans:
            laws = patients_done(self.laws(history, plan, asked, draws, seed), len(history), shown=progress)
            found.append(np.concatenate([own[which].expected() for own in laws], axis=1))
        return found

    def _outcome(self, history: Cohort, name: str | None) -> tuple[int, Variable]:
        outcomes = history.schema.outcomes
        names = [variable.name for variable in outcomes]
        if name is not None and name not in names:
            raise CohortError(f"{name!r} is no outcome of this model. {did_you_mean(name, names)}")
        which = 0 if name is None else names.index(name)
        return which, outcomes[which]

    def _checked(self, history: Cohort, horizons: Sequence[float], draws: int) -> Float64[np.ndarray, " horizons"]:
        self._require_fitted(history)
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

    def evaluate(
        self,
        cohort: Cohort,
        *,
        at: Any,
        horizons: Sequence[float],
        outcomes: Float64[np.ndarray, "patients horizons"] | None = None,
        scale: float = 1.0,
        draws: int | None = None,
        seed: int = 0,
    ) -> Evaluation:
        """Score predictions made at one time against what happened under what was really given.

        Args:
            cohort: Whole trajectories.
            at: When the prediction is made, as for `cohort.until`.
            horizons: Elapsed times.
            outcomes: The truth, where a simulator knows it for everybody; default: what was recorded.
            scale: Divide outcomes by this, such as the training patients' standard deviation.
            draws: As for `predict`; default: enough for the model.
            seed: Of the draws.
        """
        history = cohort.until(at)
        number = self.draws_to_judge if draws is None else draws
        prediction = self.predict(history, Plan.observed(cohort), horizons=horizons, draws=number, seed=seed)
        if outcomes is None:
            outcomes = recorded_outcomes(cohort, history, prediction.horizons)
        return evaluate_prediction(prediction, outcomes, model=type(self).__name__, scale=scale)

    def save(self, path: str | PathLike[str]) -> None:
        """Write the fitted model to one file, whole or not at all; `cp.load` reads it. No value of a patient is in it.

        Args:
            path: Of the file; by custom it ends in `.safetensors`.
        """
        from counterpath.estimators.model_file import save

        save(self, path)

    def _require_fitted(self, history: Cohort) -> None:
        if self.schema is None:
            raise NotFittedError(f"This {type(self).__name__} has not been fitted. Call fit(train) first.")
        mine, theirs = ([v.name for v in s.outcomes] for s in (self.schema, history.schema))
        if mine != theirs or self.schema.time_unit != history.schema.time_unit:
            raise CohortError(
                f"The model was fitted to {', '.join(mine)} in {self.schema.time_unit}s; this cohort has "
                f"{', '.join(theirs)} in {history.schema.time_unit}s."
            )


def recorded_outcomes(
    cohort: Cohort, history: Cohort, horizons: Float64[np.ndarray, " horizons"]
) -> Float64[np.ndarray, "patients horizons"]:
    """The first outcome as it was recorded at each horizon; NaN where there was no record."""
    later = outcomes_after(cohort, history)
    found = np.full((len(history), len(horizons)), np.nan)
    for i, horizon in enumerate(horizons):
        at = np.abs(later.times - horizon) <= SAME_TIME * horizon
        found[later.patient_of_row[at], i] = later.values[at, 0]
    return found
