"""A plan: everything given from now on, in time elapsed since the end of the history, on [0, Δ)."""

from __future__ import annotations

import json
import math
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
from pydantic import PrivateAttr, ValidationError

from counterpath.cohort.findings import PlanError
from counterpath.cohort.frames import FrameKind, to_kind
from counterpath.cohort.plan_events import resolve_plan
from counterpath.cohort.plan_parts import KeptRunning, PatientId, PlannedDose, PlannedInfusion
from counterpath.cohort.records import TreatmentEvents
from counterpath.cohort.schema import Strict, in_plain_words
from counterpath.cohort.units import TimeUnit, units_per

if TYPE_CHECKING:
    from counterpath.cohort.cohort import Cohort


class Plan(Strict):
    """What will be given from now on. Time 0 is the decision taken now.

    An empty plan (`Plan.none()`) also ends what is running. Plans add up: `Plan.continued() + Plan.dose("aspirin")`.

    Attributes:
        doses: Single doses.
        infusions: Intervals with a rate.
        keeps_running: Whose present rates are kept, and which.
        untreated: Patients who are planned to receive nothing, where plans are per patient.
        time_unit: The unit of the plan's times; the cohort's where left out.
    """

    doses: tuple[PlannedDose, ...] = ()
    infusions: tuple[PlannedInfusion, ...] = ()
    keeps_running: tuple[KeptRunning, ...] = ()
    untreated: tuple[PatientId, ...] = ()
    time_unit: TimeUnit | None = None
    _observed: Any = PrivateAttr(default=None)  # the cohort of Plan.observed, until it meets a history

    @classmethod
    def none(cls) -> Plan:
        """Nothing is given, and what is running ends now."""
        return cls()

    @classmethod
    def dose(
        cls, treatment: str, at: float = 0.0, dose: float | None = None, *, time_unit: TimeUnit | None = None
    ) -> Plan:
        """One dose at an elapsed time (default: now; default amount: the cohort's usual dose)."""
        _not_negative("at", at)
        return cls.repeat(treatment, every=1.0, times=1, start=at, dose=dose, time_unit=time_unit)

    @classmethod
    def repeat(
        cls,
        treatment: str,
        *,
        every: float,
        times: int,
        start: float = 0.0,
        dose: float | None = None,
        time_unit: TimeUnit | None = None,
    ) -> Plan:
        """`times` doses, the first at `start`, then one `every` so often.

        Args:
            treatment: Its name in the cohort.
            every: Time between doses.
            times: How many.
            start: Elapsed time of the first; 0 is now.
            dose: Amount of each; default: the cohort's usual dose.
            time_unit: Of `every` and `start`; default: the cohort's.
        """
        _positive("every", every)
        if times != int(times) or times < 1:
            raise PlanError(f"times={times!r} doses cannot be given. Use a whole number from 1, or Plan.none().")
        _not_negative("start", start)
        if dose is not None:
            _positive("dose", dose)
        doses = [{"treatment": treatment, "time": start + i * every, "dose": dose} for i in range(int(times))]
        return cls.checked(doses=doses, time_unit=time_unit)

    @classmethod
    def infusion(
        cls,
        treatment: str,
        start: float = 0.0,
        stop: float | None = None,
        rate: float | None = None,
        *,
        time_unit: TimeUnit | None = None,
    ) -> Plan:
        """A rate from `start` until `stop` (default: for good; default rate: the cohort's usual one)."""
        _not_negative("start", start)
        if stop is not None:
            _positive("stop", stop)
            if stop <= start:
                raise PlanError(f"The infusion of {treatment!r} stops at {stop:g}, not after its start at {start:g}.")
        if rate is not None:
            _positive("rate", rate)
        infusion = {"treatment": treatment, "start": start, "stop": stop, "rate": rate}
        return cls.checked(infusions=[infusion], time_unit=time_unit)

    @classmethod
    def checked(cls, **content: Any) -> Plan:
        """A plan with this content, or an error in plain words."""
        try:
            return cls.model_validate(content)
        except ValidationError as error:
            raise PlanError(f"The plan cannot be read. {in_plain_words(error)}") from error

    @classmethod
    def continued(cls, *, without: Sequence[str] = ()) -> Plan:
        """Present rates go on, for each patient their own, except those of the treatments in `without`."""
        return cls(keeps_running=(KeptRunning(without=tuple(without)),))

    @classmethod
    def observed(cls, cohort: Cohort) -> Plan:
        """What really followed, looked up in `cohort` for each patient of the history it is used with."""
        plan = cls()
        plan._observed = cohort
        return plan

    @classmethod
    def per_patient(cls, plans: Mapping[PatientId, Plan]) -> Plan:
        """A plan of their own for each patient."""
        units = {plan.time_unit for plan in plans.values() if not plan._is_timeless}
        if len(units) > 1 and None in units:
            raise PlanError("Some of the plans have a time unit and some have none. Give all, or none.")
        unit: Any = next(iter(units), None)
        doses, infusions, keeps, untreated = [], [], [], []
        for patient, plan in plans.items():
            if plan._observed is not None:
                raise PlanError("Plan.observed is already per patient; use it for all, or leave it out.")
            parts = (*plan.doses, *plan.infusions, *plan.keeps_running)
            if plan.untreated or any(part.patient is not None for part in parts):
                raise PlanError(f"The plan for patient {patient!r} names patients itself. Give a plan for one patient.")
            own = {"patient": patient.item() if isinstance(patient, np.generic) else patient}
            plan = plan.in_unit(unit) if unit is not None else plan
            doses += [dose.model_copy(update=own) for dose in plan.doses]
            infusions += [infusion.model_copy(update=own) for infusion in plan.infusions]
            keeps += [keep.model_copy(update=own) for keep in plan.keeps_running]
            untreated += [] if parts else [own["patient"]]
        return cls.checked(
            doses=tuple(doses),
            infusions=tuple(infusions),
            keeps_running=tuple(keeps),
            untreated=tuple(untreated),
            time_unit=unit,
        )

    def __add__(self, other: Plan) -> Plan:
        if None not in (self.time_unit, other.time_unit) and self.time_unit != other.time_unit:
            other = other.in_unit(self.time_unit)  # type: ignore[arg-type]  # not None here
        elif self.time_unit != other.time_unit and not (self._is_timeless or other._is_timeless):
            raise PlanError("One of the two plans has a time unit and the other has none. Give both, or none.")
        if self._observed is not None and other._observed is not None:
            raise PlanError("Two observed plans cannot be added.")
        total = Plan(
            doses=self.doses + other.doses,
            infusions=self.infusions + other.infusions,
            keeps_running=self.keeps_running + other.keeps_running,
            untreated=self.untreated + other.untreated,
            time_unit=other.time_unit if self._is_timeless else self.time_unit,
        )
        total._observed = self._observed if self._observed is not None else other._observed
        return total

    @property
    def _is_timeless(self) -> bool:
        return not self.doses and not self.infusions

    def in_unit(self, unit: TimeUnit) -> Plan:
        """The same plan with its times in another unit; rates keep the unit of the cohort's own table."""
        if self.time_unit is None or self.time_unit == unit:
            return self
        factor = units_per(self.time_unit, unit)

        def longer(time: float | None) -> float | None:
            return None if time is None else time * factor

        doses = tuple(d.model_copy(update={"time": longer(d.time)}) for d in self.doses)
        infusions = tuple(
            i.model_copy(update={"start": longer(i.start), "stop": longer(i.stop)}) for i in self.infusions
        )
        plan = self.model_copy(update={"doses": doses, "infusions": infusions, "time_unit": unit})
        plan._observed = self._observed
        return plan

    @property
    def followed(self) -> Cohort | None:
        """The cohort in which to look up what really followed, for `Plan.observed`."""
        return self._observed

    # --- the one form, in JSON and as a table

    def to_json(self) -> str:
        """The plan as JSON text."""
        if self._observed is not None:
            raise PlanError("Plan.observed depends on a history and has no form of its own.")
        return self.model_dump_json(exclude_defaults=True, indent=2)

    @classmethod
    def from_json(cls, text: str) -> Plan:
        """The plan that `to_json` wrote, or that a person did."""
        try:
            return cls.model_validate(json.loads(text))
        except json.JSONDecodeError as error:
            raise PlanError(f"The plan is not JSON: {error}.") from error
        except ValidationError as error:
            raise PlanError(f"The plan cannot be read. {in_plain_words(error)}") from error

    @classmethod
    def from_text(cls, text: str, *, time_unit: TimeUnit | None = None) -> Plan:
        """A plan in one line: `chemotherapy@0,2,4` for usual doses now, in 2 and in 4, `oxygen=2@0-6 + continued`.

        A number after `=` is the dose, or the rate where the times are a stretch; `none` and `continued` stand for the
        plans of that name; parts have ` + ` between them.
        """
        from counterpath.cohort.plan_text import read_plan_text

        return read_plan_text(text, time_unit)

    @classmethod
    def from_table(cls, table: Any, *, patient: str = "patient", time_unit: TimeUnit | None = None) -> Plan:
        """A plan from a frame or a CSV, Parquet or JSON file.

        Columns: `treatment`, `start` (or `time`); optional `stop`, `dose`, `rate`, `patient`, `time_unit`. A row with
        a stop or a rate is an infusion. A row without a patient is for everybody.
        """
        from counterpath.cohort.plan_table import read_plan_table

        return read_plan_table(table, patient=patient, time_unit=time_unit)

    def to_table(self, frames: FrameKind = "polars") -> Any:
        """The plan as a frame that `from_table` reads; `continued` has no row and cannot be written."""
        from counterpath.cohort.plan_table import write_plan_table

        return to_kind(write_plan_table(self), frames)

    # --- meeting a history

    def resolve(self, history: Cohort) -> TreatmentEvents:
        """The plan for each patient of a history, in elapsed time and the history's unit.

        Unknown treatments and patients are errors; a dose that the cohort never saw is an `UnseenDoseWarning`.
        """
        return resolve_plan(self, history)


def _positive(what: str, value: float) -> None:
    if not (_is_number(value) and value > 0):
        raise PlanError(f"{what}={value!r} is not a positive number.")


def _not_negative(what: str, value: float) -> None:
    if not (_is_number(value) and value >= 0):
        raise PlanError(f"{what}={value!r} is no time from now on. A plan starts at 0, the end of the history.")


def _is_number(value: Any) -> bool:
    return isinstance(value, (int, float, np.integer, np.floating)) and math.isfinite(value)
