"""The physical limit on semi-synthetic outcomes: who knows the equations, their coefficients and the covariates."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
from jaxtyping import Float64

from counterpath.cohort import Cohort, CohortError, Plan
from counterpath.estimators.contract import Estimator
from counterpath.predictive import Draws, Law
from counterpath.simulators.semi_synthetic_truth import BURN_IN, SemiSyntheticTruth, next_of_burn_in, next_outcome

AT_ONCE = 500  # patients, whose paths are in memory


class SemiSyntheticOracle(Estimator):
    """One step ahead under the true equations, given the record: from the last recorded outcome on, with new noise.

    That treatments and records depend on outcomes which were not recorded is ignored: it is of second order. Two steps
    ahead would need covariates that are not known yet, so one step is as far as it looks.

    Attributes:
        truth: Of the patients that it is asked about.
        max_horizon: One step.
    """

    def __init__(self, truth: SemiSyntheticTruth):
        self.truth = truth
        self.max_horizon = 1.0

    def fit(self, train: Cohort, validation: Cohort | None = None) -> SemiSyntheticOracle:
        """Nothing is learnt; the cohort only says what is asked about."""
        self.schema = train.schema
        return self

    def laws(
        self, history: Cohort, plan: Plan, horizons: np.ndarray, draws: int, seed: int
    ) -> Iterator[tuple[Law, ...]]:
        """Draws of the outcome, noise included."""
        if np.any(horizons != self.max_horizon):
            raise CohortError("The oracle of semi-synthetic outcomes looks one step ahead, no less and no more.")
        planned, rng = plan.resolve(history), np.random.default_rng(seed)
        given = np.zeros(len(history), bool)
        given[planned.patient_of_row[(planned.start == 0) & (planned.amount > 0)]] = True
        ends = np.rint(history.history_end).astype(np.int64)
        for begin in range(0, len(history), AT_ONCE):
            some = slice(begin, begin + AT_ONCE)
            truth, end = self.truth.select(history.patients[some]), ends[some]
            rows = np.arange(len(end))
            now = self._present(truth, int(end.max(initial=0)), draws, rng)[:, rows, end]
            following = next_outcome(now, truth.gain[rows, end], given[some]) + self._noise(truth, now.shape, rng)
            yield (Draws(np.repeat(following[:, :, None], horizons.shape[1], axis=2)),)

    def _present(
        self, truth: SemiSyntheticTruth, last: int, draws: int, rng: np.random.Generator
    ) -> Float64[np.ndarray, "draws patients steps"]:
        """Outcomes at all steps: those that were recorded, and what may lie between."""
        path = np.empty((draws, len(truth.ids), last + 1))
        for j in range(last + 1):
            if j == 0:
                path[:, :, j] = 1.0
            elif j <= BURN_IN:
                path[:, :, j] = next_of_burn_in(path[:, :, :j], truth.pull, truth.weights)
            else:
                path[:, :, j] = next_outcome(path[:, :, j - 1], truth.gain[:, j - 1], truth.given[:, j - 1])
            if j:
                path[:, :, j] += self._noise(truth, path.shape[:2], rng)
            path[:, truth.observed[:, j], j] = truth.outcomes_of_steps[truth.observed[:, j], j]
        return path

    def _noise(self, truth: SemiSyntheticTruth, shape: tuple[int, ...], rng: np.random.Generator) -> np.ndarray:
        return truth.noise_std * rng.standard_normal(shape)
