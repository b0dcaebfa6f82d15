"""End of follow-up: death, discharge or censoring, and what is dated after it."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import polars as pl
from jaxtyping import Float64

from counterpath.cohort.clock import TimeKind, elapsed, read_times
from counterpath.cohort.declared import Declared, Repairs
from counterpath.cohort.findings import CohortError, Finding, counted, name_patients
from counterpath.cohort.frames import require_columns
from counterpath.cohort.ids import number_of
from counterpath.cohort.journal import Journal
from counterpath.cohort.records import Observations, TreatmentEvents


def read_follow_up_end(
    declared: Declared,
    static: pl.DataFrame | None,
    ids: dict[str, pl.Series],
    patients: pl.Series,
    origin: np.ndarray,
    kind: TimeKind,
) -> Float64[np.ndarray, " patients"]:
    """End of follow-up on each patient's clock; NaN where it is not known."""
    unknown = np.full(len(patients), np.nan)
    if declared.follow_up_end is None:
        return unknown
    if static is None:
        raise CohortError(f"follow_up_end={declared.follow_up_end!r} is a column of the static table; there is none.")
    require_columns(static, [declared.follow_up_end], "static")
    column = static[declared.follow_up_end]
    given = column.is_not_null()
    if not given.any():
        return unknown
    who = ids["static"].filter(given)
    ends = read_times(column.filter(given), who, "static")
    if ends.kind != kind:
        raise CohortError(f"{declared.follow_up_end!r} does not count time as the observations do. Use one kind.")
    number = number_of(who, patients)
    known = number >= 0
    unknown[number[known]] = elapsed(ends.values[known], origin[number[known]], ends.kind, declared.time_unit)
    return unknown


def observed_within_follow_up(
    records: Observations,
    follow_up_end: np.ndarray,
    patients: pl.Series,
    repairs: Repairs,
    journal: Journal,
) -> Observations:
    """Observations after the end of follow-up are an error, or go if asked."""
    after = records.times > follow_up_end[records.patient_of_row]
    if not after.any():
        return records
    concerned = patients.gather(np.unique(records.patient_of_row[after]))
    count = int(after.sum())
    message = f"{counted(count, 'record')} after the end of follow-up ({name_patients(concerned)})"
    if repairs.after_follow_up == "error":
        remedy = "Mend the dates, or pass after_follow_up='drop'."
        raise CohortError([Finding("record_after_follow_up", "error", f"{message}.", remedy, count, tuple(concerned))])
    journal.asked(
        Finding("record_after_follow_up", "note", f"{message} left out.", count=count, patients=tuple(concerned))
    )
    return records.keep(~after)


def given_within_follow_up(
    events: TreatmentEvents, follow_up_end: np.ndarray, repairs: Repairs, journal: Journal
) -> TreatmentEvents:
    """Treatments after follow-up do no harm to a model and are a finding of `check`; here they go if asked."""
    if repairs.after_follow_up == "error":
        return events
    end = follow_up_end[events.patient_of_row]
    after = events.start >= end
    beyond = ~after & np.isfinite(events.stop) & (events.stop > end)
    code = "treatment_after_follow_up"
    if after.any():
        count = int(after.sum())
        message = f"{counted(count, 'treatment')} after the end of follow-up left out."
        journal.asked(Finding(code, "note", message, count=count))
    if beyond.any():
        count = int(beyond.sum())
        message = f"{counted(count, 'stop')} after the end of follow-up left out: the interval still runs then."
        journal.asked(Finding(code, "note", message, count=count))
    return replace(events, stop=np.where(beyond, np.inf, events.stop)).keep(~after)
