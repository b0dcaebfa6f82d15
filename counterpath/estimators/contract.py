"""What every model promises: `fit`, `predict`, `evaluate`."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from typing import Any, TypeVar

import numpy as np
from jaxtyping import Float64

from counterpath.cohort import Cohort, CohortError, Plan, Schema, Variable
from counterpath.cohort.cuts import outcomes_after
from counterpath.predictive import Evaluation, Prediction, evaluate_prediction

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

    @abstractmethod
    def fit(self: Fitted, train: Cohort, validation: Cohort | None = None) -> Fitted:
        """Learn from training patients; `validation` is for choices, never for learning."""

    @abstractmethod
    def _draw(
        self, history: Cohort, plan: Plan, horizons: Float64[np.ndarray, " horizons"], draws: int, seed: int
    ) -> Float64[np.ndarray, "draws patients horizons"]:
        """Draws of the outcome, for histories and horizons that have been checked."""

    def predict(
        self, history: Cohort, plan: Plan, *, horizons: Sequence[float], draws: int = 100, seed: int = 0
    ) -> Prediction:
        """The predictive distribution of each patient's outcome under a plan.

        Args:
            history: Patients as they are known now; `cohort.until(t)` makes one.
            plan: What is given from now on.
            horizons: Elapsed times, up to `max_horizon`.
            draws: How many equally likely values.
            seed: The same seed gives the same draws.
        """
        outcome = self._require_fitted(history)
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
        drawn = self._draw(history, plan, asked, draws, seed)
        return Prediction(history.patients, asked, outcome, drawn, history.schema.patient_column, history.frames)

    def evaluate(
        self,
        cohort: Cohort,
        *,
        at: Any,
        horizons: Sequence[float],
        outcomes: Float64[np.ndarray, "patients horizons"] | None = None,
        scale: float = 1.0,
        draws: int = 1_000,
        seed: int = 0,
    ) -> Evaluation:
        """Score predictions made at one time against what happened under what was really given.

        Args:
            cohort: Whole trajectories.
            at: When the prediction is made, as for `cohort.until`.
            horizons: Elapsed times.
            outcomes: The truth, where a simulator knows it for everybody; default: what was recorded.
            scale: Divide outcomes by this, such as the training patients' standard deviation.
            draws: Of the predictive distribution.
            seed: Of the draws.
        """
        history = cohort.until(at)
        prediction = self.predict(history, Plan.observed(cohort), horizons=horizons, draws=draws, seed=seed)
        if outcomes is None:
            outcomes = recorded_outcomes(cohort, history, prediction.horizons)
        return evaluate_prediction(prediction, outcomes, model=type(self).__name__, scale=scale)

    def _require_fitted(self, history: Cohort) -> Variable:
        if self.schema is None:
            raise NotFittedError(f"This {type(self).__name__} has not been fitted. Call fit(train) first.")
        mine, theirs = ([v.name for v in s.outcomes] for s in (self.schema, history.schema))
        if mine != theirs or self.schema.time_unit != history.schema.time_unit:
            raise CohortError(
                f"The model was fitted to {', '.join(mine)} in {self.schema.time_unit}s; this cohort has "
                f"{', '.join(theirs)} in {history.schema.time_unit}s."
            )
        return self.schema.outcomes[0]


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
