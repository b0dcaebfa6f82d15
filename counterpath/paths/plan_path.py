"""A plan as a path: elapsed time, and what will have been given."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from counterpath.cohort import Cohort, Grid, Plan, Scaler
from counterpath.paths.channels import Channel, plan_channels
from counterpath.paths.control_path import ControlPath
from counterpath.paths.ragged_search import PathValues, QueryTimes
from counterpath.paths.treatment_channels import TreatmentPath


@dataclass(frozen=True, eq=False)
class PlanPath(ControlPath):
    """Elapsed time and planned treatments; a dose at 0 enters with the first step.

    Attributes:
        treatments: What is planned, in elapsed time.
    """

    treatments: TreatmentPath

    @property
    def layout(self) -> tuple[Channel, ...]:
        """What each channel is, in order."""
        return plan_channels(self.treatments.schema)

    @property
    def time_scale(self) -> float:
        """The clock runs from 0 to 1 over the longest horizon."""
        return self.treatments.grid.lookback

    def values(self, times: QueryTimes) -> PathValues:
        """The channels at elapsed times."""
        return np.concatenate([(times / self.time_scale)[..., None], self.treatments.values(times)], axis=-1)


def plan_path(plan: Plan, history: Cohort, scaler: Scaler, *, grid: Grid) -> PlanPath:
    """The path of a plan for every patient of a history.

    Args:
        plan: What will be given.
        history: Patients at the time of the decision.
        scaler: Fitted on training patients.
        grid: Cells of the plan, up to the longest horizon of the model.
    """
    scaler.require_same(history.schema)
    return PlanPath(TreatmentPath(history.schema, scaler, plan.resolve(history), grid, np.zeros(len(history))))
