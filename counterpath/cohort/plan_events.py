"""A plan meets a history: what each patient would be given, in elapsed time."""

from __future__ import annotations

import warnings
from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING

import numpy as np
import polars as pl
from jaxtyping import Int64

from counterpath.cohort.cuts import events_from, running
from counterpath.cohort.doses import overlapping
from counterpath.cohort.findings import PlanError, PlanWarning, UnseenDoseWarning, counted, did_you_mean, name_patients
from counterpath.cohort.ids import number_of
from counterpath.cohort.records import TreatmentEvents
from counterpath.cohort.schema import Amounts, Schema, Treatment

if TYPE_CHECKING:
    from counterpath.cohort.cohort import Cohort
    from counterpath.cohort.plan import KeptRunning, PatientId, Plan


def resolve_plan(plan: Plan, history: Cohort) -> TreatmentEvents:
    """The plan for each patient, in elapsed time and the history's unit."""
    schema = history.schema
    plan = plan.in_unit(schema.time_unit)
    rows = _Rows(history)
    for dose in plan.doses:
        treatment = _known(dose.treatment, schema.treatments)
        amount = _amount(dose.dose, treatment.dose, treatment.name, "dose")
        rows.add(dose.patient, treatment.name, dose.time, np.nan, amount)
    for infusion in plan.infusions:
        treatment = _known(infusion.treatment, schema.treatments)
        amount = _amount(infusion.rate, treatment.rate, treatment.name, "rate")
        stop = np.inf if infusion.stop is None else infusion.stop
        rows.add(infusion.patient, treatment.name, infusion.start, stop, amount)
    rows.mentioned.update(_positions(plan.untreated, history).tolist())
    parts = [rows.events()]
    if plan.keeps_running:
        parts.append(_kept_running(plan.keeps_running, history, rows))
    if plan.followed is not None:
        _require_alike(plan.followed.schema, schema)
        place = _positions(history.patients, plan.followed)
        if not plan.followed.origins.gather(place).equals(history.origins):
            raise PlanError("Plan.observed looks into a cohort whose patients have another time zero than the history.")
        source = plan.followed.events.take(place)
        parts.append(events_from(source, history.history_end))
    rows.report_unplanned(everybody=plan.followed is not None)
    return _together(parts, history)


def _kept_running(kept: Sequence[KeptRunning], history: Cohort, rows: _Rows) -> TreatmentEvents:
    """Present rates, of the patients and treatments that the plan keeps."""
    now = running(history.events, history.history_end)
    wanted = np.zeros(now.rows, bool)
    for keep in kept:
        without = [history.schema.treatments.index(_known(name, history.schema.treatments)) for name in keep.without]
        mine = ~np.isin(now.treatment, without)
        if keep.patient is None:
            rows.for_everybody = True
        else:
            who = _positions([keep.patient], history)
            rows.mentioned.add(int(who[0]))
            mine &= now.patient_of_row == who[0]
        wanted |= mine
    return now.keep(wanted)


class _Rows:
    """Events of a plan, collected for the patients of a history."""

    def __init__(self, history: Cohort):
        self.history = history
        self.columns: list[tuple[np.ndarray, int, float, float, float]] = []
        self.mentioned: set[int] = set()
        self.for_everybody = False
        self.number = {patient: i for i, patient in enumerate(history.patients)}

    def add(self, patient: PatientId | None, treatment: str, start: float, stop: float, amount: float) -> None:
        if patient is None:
            self.for_everybody = True
            who = np.arange(len(self.history))
        else:
            known = self.number.get(patient)
            who = np.array([known]) if known is not None else _positions([patient], self.history)
            self.mentioned.add(int(who[0]))
        self.columns.append((who, self.history.schema.treatment_code(treatment), start, stop, amount))

    def events(self) -> TreatmentEvents:
        lengths = [len(who) for who, *_ in self.columns]
        numbers = np.concatenate([who for who, *_ in self.columns]) if self.columns else np.array([], dtype=np.int64)
        code, start, stop, amount = (
            np.repeat(np.array([row[i] for row in self.columns], dtype=dtype), lengths)
            for i, dtype in ((1, np.int64), (2, np.float64), (3, np.float64), (4, np.float64))
        )
        return TreatmentEvents.from_rows(numbers, code, start, stop, amount, patients=len(self.history))

    def report_unplanned(self, *, everybody: bool) -> None:
        """A plan per patient that leaves somebody out may be meant so, but is worth a word."""
        if everybody or self.for_everybody or not self.mentioned:
            return
        left = [p for i, p in enumerate(self.history.patients) if i not in self.mentioned]
        if left:
            warnings.warn(
                f"The plan has no line for {counted(len(left), 'patient')} ({name_patients(left)}), "
                f"who {'is' if len(left) == 1 else 'are'} planned to receive nothing.",
                PlanWarning,
                stacklevel=4,
            )


def _positions(patients: Iterable[PatientId], cohort: Cohort) -> Int64[np.ndarray, " chosen"]:
    """Where the patients of a plan stand in a cohort."""
    patients = list(patients)
    is_text = cohort.patients.dtype == pl.String
    for patient in patients:
        if isinstance(patient, str) != is_text:
            mine, theirs = ("a number", "text") if is_text else ("text", "integers")
            raise PlanError(f"The plan is for patient {patient!r}, which is {mine}; ids of this cohort are {theirs}.")
    numbers = number_of(pl.Series(patients, dtype=cohort.patients.dtype), cohort.patients)
    if (numbers < 0).any():
        absent = [patient for patient, number in zip(patients, numbers, strict=True) if number < 0]
        raise PlanError(f"The plan is for {name_patients(absent)}, not in this cohort of {len(cohort):,}.")
    return numbers


def _require_alike(followed: Schema, history: Schema) -> None:
    """What was observed in another cohort means the same only if its unit and treatments do."""
    names = ([t.name for t in followed.treatments], [t.name for t in history.treatments])
    if followed.time_unit != history.time_unit or names[0] != names[1]:
        raise PlanError(
            "Plan.observed looks into a cohort with another time unit or other treatments than the history."
        )


def _together(parts: list[TreatmentEvents], history: Cohort) -> TreatmentEvents:
    events = TreatmentEvents.from_rows(
        *(
            np.concatenate([getattr(part, name) for part in parts])
            for name in ("patient_of_row", "treatment", "start", "stop", "amount")
        ),
        patients=len(history),
    )
    clash = overlapping(events)
    if clash.any():
        patient = history.patients[int(events.patient_of_row[clash][0])]
        name = history.schema.treatments[int(events.treatment[clash][0])].name
        raise PlanError(
            f"The plan gives patient {patient} two infusions of {name!r} at once. Add up their rates; or, to replace "
            f"what is running, use Plan.continued(without=[{name!r}])."
        )
    return events


def _known(name: str, treatments: tuple[Treatment, ...]) -> Treatment:
    if not treatments:
        raise PlanError("This cohort has no treatment that changes over time, so no plan can be asked about.")
    for treatment in treatments:
        if treatment.name == name:
            return treatment
    near = did_you_mean(name, [treatment.name for treatment in treatments])
    raise PlanError(f"The plan names {name!r}, which is no treatment of this cohort. {near}")


def _amount(wanted: float | None, seen: Amounts | None, name: str, kind: str) -> float:
    if seen is None:
        way = "as single doses" if kind == "dose" else "as an infusion"
        raise PlanError(f"{name!r} was never given {way} in this cohort, so nothing can be said about it.")
    if wanted is None:
        return seen.usual
    if not seen.lowest <= wanted <= seen.highest:
        warnings.warn(
            f"A {kind} of {wanted:g} of {name!r} was never seen: this cohort received {seen.lowest:g} "
            f"to {seen.highest:g}.",
            UnseenDoseWarning,
            stacklevel=4,
        )
    return wanted
