"""What only the simulator knows: latent volumes, parameters, and every other future."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np
import polars as pl
from jaxtyping import Bool, Float64, Int64

from counterpath.cohort import Cohort, CohortError, Plan, Schema, TreatmentEvents
from counterpath.simulators.tumor_assignment import TREATMENTS, Assignment
from counterpath.simulators.tumor_dynamics import CHEMO_DOSE, HALF_LIFE_DAYS, decay, grow
from counterpath.simulators.tumor_patients import TumorPatients


@dataclass(frozen=True)
class TumorSettings:
    """The world's constants.

    Attributes:
        assignment: Who is treated when.
        continuous: Steps of `step_days` instead of whole days.
        step_days: 1 for the daily map.
        days: Length of the study; the last record can be on day `days` − 1.
        noise_std: Of the growth, per day.
        observation_gamma: How strongly visits follow size.
        treatment_gamma: How strongly treatment follows size, where it does.
    """

    assignment: Assignment = "randomised"
    continuous: bool = False
    step_days: float = 1.0
    days: int = 60
    noise_std: float = 0.01
    observation_gamma: float = 1.0
    treatment_gamma: float = 5.0

    @property
    def steps(self) -> int:
        """Number of times at which volumes are known."""
        return round((self.days - 1) / self.step_days) + 1

    def step_of(self, time_days: Float64[np.ndarray, "*any"]) -> Int64[np.ndarray, "*any"]:
        """The number of the step at a time; an error where there is none."""
        step = np.rint(np.asarray(time_days) / self.step_days)
        if np.any(np.abs(step * self.step_days - time_days) > 1e-6):
            raise CohortError(f"This world knows times that are multiples of {self.step_days:g} days only.")
        return step.astype(np.int64)


@dataclass(frozen=True, eq=False)
class TumorTruth:
    """The truth behind a simulated cohort. It is no part of the cohort, so that no model can see it by accident.

    Attributes:
        settings: The world.
        ids: Patients, in the order of everything here.
        patients: Their parameters.
        volumes_cm3: The tumour at every step.
        given: What was given at every step.
        observed: Steps with a visit.
        visit_chance: ζ: the probability of a visit, per day.
        arm: Of the paper's arms; -1 elsewhere.
        noise: Standard normal, one per step: the common random numbers of all futures.
        gone: Uniform, one per step.
    """

    settings: TumorSettings
    ids: pl.Series
    patients: TumorPatients
    volumes_cm3: Float64[np.ndarray, "patients steps"]
    given: Bool[np.ndarray, "patients steps treatments"]
    observed: Bool[np.ndarray, "patients steps"]
    visit_chance: Float64[np.ndarray, "patients steps"]
    arm: Int64[np.ndarray, " patients"]
    noise: Float64[np.ndarray, "patients steps"]
    gone: Float64[np.ndarray, "patients steps"]

    @property
    def times_days(self) -> Float64[np.ndarray, " steps"]:
        """The time of each step."""
        return np.arange(self.settings.steps) * self.settings.step_days

    def select(self, ids: pl.Series) -> TumorTruth:
        """The truth about some of the patients."""
        place = {patient: i for i, patient in enumerate(self.ids)}
        rows = np.array([place[patient] for patient in ids], dtype=np.int64)
        people = {name: column[rows] for name, column in vars(self.patients).items()}
        columns = ("volumes_cm3", "given", "observed", "visit_chance", "arm", "noise", "gone")
        chosen = {name: getattr(self, name)[rows] for name in columns}
        return replace(self, ids=self.ids.gather(rows), patients=TumorPatients(**people), **chosen)

    def outcomes(
        self, history: Cohort, plan: Plan, horizons: Sequence[float] | Float64[np.ndarray, " horizons"]
    ) -> Float64[np.ndarray, "patients horizons"]:
        """The volume of each patient under a plan: same history, same noise, another future (`branching`).

        Args:
            history: Patients at the time of the decision.
            plan: What is given from then on.
            horizons: Elapsed days.
        """
        return self.select(history.patients)._futures(history, plan, np.asarray(horizons, dtype=np.float64))

    def _futures(self, history: Cohort, plan: Plan, horizons: np.ndarray) -> Float64[np.ndarray, "patients horizons"]:
        settings = self.settings
        start = settings.step_of(history.history_end)
        ahead = settings.step_of(horizons)
        last = int(ahead.max(initial=0))
        if np.any(start + last >= settings.steps):
            raise CohortError(f"The world ends on day {settings.days - 1}; ask for an earlier horizon.")
        doses = planned_doses(plan.resolve(history), history.schema, settings, last)
        rows = np.arange(len(self.patients))
        # Before a decision nothing of that step has been given yet.
        concentration = self._concentration_before(start)
        volume = self.volumes_cm3[rows, start]
        path = np.empty((len(rows), last + 1))
        path[:, 0] = volume
        for step in range(last):
            concentration = concentration + doses[:, step, 0]
            volume = grow(
                volume,
                patients=self.patients,
                concentration=concentration,
                radio_gy=doses[:, step, 1],
                noise=settings.noise_std * np.sqrt(settings.step_days) * self.noise[rows, start + step],
                gone=self.gone[rows, start + step],
                step_days=settings.step_days,
                daily=not settings.continuous,
            )
            concentration = decay(concentration, settings.step_days)
            path[:, step + 1] = volume
        return path[:, ahead]

    def _concentration_before(self, start: Int64[np.ndarray, " patients"]) -> Float64[np.ndarray, " patients"]:
        """What is left, at a step, of chemotherapy given before it."""
        steps = np.arange(self.given.shape[1])
        age_days = (start[:, None] - steps) * self.settings.step_days
        left = np.where(age_days > 0, CHEMO_DOSE * 0.5 ** (np.maximum(age_days, 0.0) / HALF_LIFE_DAYS), 0.0)
        return np.sum(left * self.given[:, :, 0], axis=1)


def planned_doses(
    planned: TreatmentEvents, schema: Schema, settings: TumorSettings, steps: int
) -> Float64[np.ndarray, "patients steps treatments"]:
    """Planned amounts on the world's steps: concentration added by chemotherapy, Gy of radiotherapy."""
    if not planned.is_dose.all():
        raise CohortError("Tumours are treated with single doses; a plan with an infusion has no meaning here.")
    doses = np.zeros((planned.patients, steps, len(TREATMENTS)))
    step = settings.step_of(planned.start)
    inside = step < steps
    kind = np.array([TREATMENTS.index(treatment.name) for treatment in schema.treatments], dtype=np.int64)
    where = (planned.patient_of_row[inside], step[inside], kind[planned.treatment[inside]])
    np.add.at(doses, where, planned.amount[inside])
    return doses
