"""What every model promises: to be fitted, to answer, to be judged, to be kept."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from os import PathLike
from typing import Any, Literal, TypeVar

import numpy as np
from jaxtyping import Bool, Float64

from counterpath.cohort import Cohort, CohortError, Plan
from counterpath.cohort.subgroups import subgroups
from counterpath.estimators.answers import Answers, NotFittedError
from counterpath.estimators.what_followed import (
    histories_along,
    history_at_random,
    later_outcomes,
    recorded_outcomes,
)
from counterpath.predictive import Evaluation, Points, evaluate_points, fit_levels, points_of

__all__ = ["Estimator", "NotFittedError"]

Judged = TypeVar("Judged", bound="Estimator")  # typing.Self is beyond the tests' type checker


class Estimator(Answers):
    """A model of what would happen to a patient under a plan: the one contract of all."""

    def evaluate(
        self,
        cohort: Cohort,
        *,
        at: Any = None,
        horizons: Sequence[float] | None = None,
        outcome: str | None = None,
        by: str | Mapping[str, Bool[np.ndarray, " patients"]] | None = None,
        truth: Float64[np.ndarray, "patients horizons"] | None = None,
        ended: Literal["error", "drop"] = "error",
        cuts: int = 5,
        scale: float = 1.0,
        draws: int | None = None,
        seed: int = 0,
        recalibrated: bool | None = None,
        progress: bool = True,
    ) -> Evaluation:
        """Score predictions against what happened under what was really given.

        Args:
            cohort: Whole trajectories of patients that the model has not seen.
            at: When predictions are made, as for `cohort.until`; default: at some records of each patient.
            horizons: Elapsed times; default: whenever an outcome was recorded, up to `max_horizon`.
            outcome: Which; default: the first.
            by: Subgroups: a static covariate, or a mask of patients for each name.
            truth: Where a simulator knows it for everybody; needs `at` and `horizons`. Default: what was recorded.
            ended: With `at`: what to do with patients who were not under observation then.
            cuts: Where `at` is not given: predictions per patient, at most.
            scale: Divide outcomes by this, such as the training patients' standard deviation.
            draws: As for `predict`; default: enough for the model.
            seed: Of the draws.
            recalibrated: As for `predict`. The CRPS is always that of the model's own draws.
            progress: Show it, where it takes long.
        """
        which, variable = self._outcome(cohort, outcome)
        asked = None if horizons is None else self._checked(cohort, horizons, 2)
        self._require_fitted(cohort)
        if truth is not None and (at is None or asked is None):
            raise CohortError("truth is for given times: give `at` and `horizons` as well.")
        number = self.draws_to_judge if draws is None else draws
        rng = np.random.default_rng(seed)
        parts = []
        histories = [cohort.until(at, ended=ended)] if at is not None else None
        for history in histories or histories_along(cohort, self.max_horizon, cuts):
            if asked is None:
                elapsed, outcomes = later_outcomes(cohort, history, self.max_horizon, which)
            else:
                elapsed = np.tile(asked, (len(history), 1))
                known = None if truth is None else truth[cohort.positions(history.patients)]
                outcomes = recorded_outcomes(cohort, history, asked, which) if known is None else known
            if np.isnan(outcomes).all():
                continue
            laws = self._laws_of_all(history, Plan.observed(cohort), elapsed, number, seed, progress)
            law = self._with_levels(laws, cohort.schema, elapsed, recalibrated)[which]
            parts.append(points_of(law, cohort.positions(history.patients), elapsed, outcomes, rng=rng))
        if not parts:
            raise CohortError("No outcome follows within the horizons, so there is nothing to judge.")
        found = evaluate_points(
            Points.join(parts),
            model=type(self).__name__,
            outcome=variable,
            time_unit=cohort.schema.time_unit,
            subgroups=None if by is None else subgroups(cohort, by),
            scale=scale,
            frames=cohort.frames,
        )
        return replace(found, estimator=self, cohort=cohort)

    def calibrate(
        self: Judged, cohort: Cohort, *, draws: int | None = None, seed: int = 0, progress: bool = True
    ) -> Judged:
        """Set the levels of quantiles, intervals and probabilities on patients that the model has not seen.

        Each patient is cut once, at random. Draws, means and effects stay as they are. See `LevelMap` for what is
        guaranteed, and for whom.

        Args:
            cohort: Whole trajectories, of patients that were used neither to fit nor to judge.
            draws: As for `predict`; default: enough for the model.
            seed: Of cuts and draws.
            progress: Show it, where it takes long.
        """
        self._require_fitted(cohort)
        rng = np.random.default_rng(seed)
        history = history_at_random(cohort, self.max_horizon, rng)
        number = self.draws_to_judge if draws is None else draws
        found = {}
        for which, variable in enumerate(cohort.schema.outcomes[: self.outcomes_predicted]):
            elapsed, outcomes = later_outcomes(cohort, history, self.max_horizon, which)
            law = self._laws_of_all(history, Plan.observed(cohort), elapsed, number, seed, progress)[which]
            points = points_of(law, cohort.positions(history.patients), elapsed, outcomes, rng=rng)
            found[variable.name] = fit_levels(points.in_order(rng.permutation(len(points))))
        self.levels_ = found
        return self

    def save(self, path: str | PathLike[str]) -> None:
        """Write the fitted model to one file, whole or not at all; `cp.load` reads it. No value of a patient is in it.

        Args:
            path: Of the file; by custom it ends in `.safetensors`.
        """
        from counterpath.estimators.model_file import save

        save(self, path)
