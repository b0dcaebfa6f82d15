"""What only the simulator of semi-synthetic outcomes knows: both choices at every step, and every other future."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np
import polars as pl
from jaxtyping import Bool, Float64, Int64

from counterpath.cohort import Cohort, CohortError, Plan

BURN_IN = 5  # steps before the first treatment
EXPLODED = 100.0  # with bounded weights no outcome can come near it
ROUNDING = 1e-6  # of a step

Steps = Float64[np.ndarray, "patients steps"]


@dataclass(frozen=True, eq=False)
class SemiSyntheticTruth:
    """The truth behind the records; it is no part of the cohort. Steps after a patient's last are NaN or false.

    Attributes:
        ids: Patients, in the order of everything here.
        noise_std: Of the outcome, at each step.
        outcomes_of_steps: y at every step, seen or not.
        potential: y of the next step without and with treatment at this one, from this one's state.
        given: Treatment at every step.
        chance: Of treatment.
        gain: What the outcome is multiplied by, without its sign.
        pull: tanh(½ Σ β_k X(k)) of every step, of which the gain is a weighted sum.
        weights: Of the last steps' pulls in it.
        noise: ε at every step, of the next step's outcome: the common random numbers of all futures.
        observed: Steps at which the outcome was recorded.
    """

    ids: pl.Series
    noise_std: float
    outcomes_of_steps: Steps
    potential: Float64[np.ndarray, "patients steps choices"]
    given: Bool[np.ndarray, "patients steps"]
    chance: Steps
    gain: Steps
    pull: Steps
    weights: tuple[float, ...]
    noise: Steps
    observed: Bool[np.ndarray, "patients steps"]

    @property
    def exploded(self) -> float:
        """Share of patients whose outcome leaves ±100, which only the literal equations do."""
        return float((np.nanmax(np.abs(self.outcomes_of_steps), axis=1) > EXPLODED).mean())

    def select(self, ids: pl.Series) -> SemiSyntheticTruth:
        """The truth about some of the patients."""
        place = {patient: i for i, patient in enumerate(self.ids)}
        rows = np.array([place[patient] for patient in ids], dtype=np.int64)
        arrays = {name: value[rows] for name, value in vars(self).items() if isinstance(value, np.ndarray)}
        return replace(self, ids=self.ids.gather(rows), **arrays)

    def outcomes(
        self, history: Cohort, plan: Plan, horizons: Sequence[float] | Float64[np.ndarray, " horizons"]
    ) -> Float64[np.ndarray, "patients horizons"]:
        """Each patient's outcome under a plan: same history, same noise, another future; NaN after the records end.

        Args:
            history: Patients at the time of the decision, which is a whole number of steps after the burn-in.
            plan: What is given from then on: doses at whole steps.
            horizons: Elapsed steps.
        """
        truth, ahead = self.select(history.patients), _whole(np.asarray(horizons, dtype=np.float64))
        start, rows = _whole(history.history_end), np.arange(len(history))
        if np.any(start < BURN_IN):
            raise CohortError(f"Nothing is given in the first {BURN_IN} steps. Decide later.")
        last = int(ahead.max(initial=0))
        planned = plan.resolve(history)
        if not planned.is_dose.all():
            raise CohortError("Treatment is a single dose at a step; a plan with an infusion has no meaning here.")
        given, step = np.zeros((len(rows), last), bool), _whole(planned.start)
        soon = step < last
        given[planned.patient_of_row[soon], step[soon]] = planned.amount[soon] > 0
        steps = truth.gain.shape[1]
        path = np.full((len(rows), last + 1), np.nan)
        path[:, 0] = truth.outcomes_of_steps[rows, start]
        for j in range(last):
            now = start + j
            known = now < steps
            at = np.minimum(now, steps - 1)
            following = next_outcome(path[:, j], truth.gain[rows, at], given[:, j]) + truth.noise[rows, at]
            path[:, j + 1] = np.where(known, following, np.nan)
        return path[:, ahead]


def next_of_burn_in(
    so_far: Float64[np.ndarray, "*draws patients known"], pull: Steps, weights: tuple[float, ...]
) -> Float64[np.ndarray, "*draws patients"]:
    """− Σ w_h pull_{H−h} y_h, before noise, of all outcomes so far."""
    known = so_far.shape[-1]
    return -np.sum(np.array(weights[:known]) * pull[:, :known][:, ::-1] * so_far, axis=-1)


def next_outcome(now: np.ndarray, gain: np.ndarray, given: np.ndarray) -> np.ndarray:
    """− gain · y + cos(y a), before noise."""
    return -gain * now + np.cos(now * given)


def _whole(times: Float64[np.ndarray, "*any"]) -> Int64[np.ndarray, "*any"]:
    steps = np.rint(times)
    if np.any(np.abs(steps - times) > ROUNDING):
        raise CohortError("This world knows whole steps only.")
    return steps.astype(np.int64)
