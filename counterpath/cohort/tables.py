"""Tables of observations, treatments and static covariates become a cohort's columns."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import polars as pl
from jaxtyping import Float64

from counterpath.cohort.clock import (
    TimeKind,
    Times,
    elapsed,
    origins_as_series,
    read_times,
    require_one_clock,
)
from counterpath.cohort.declared import Columns, Declared, Repairs
from counterpath.cohort.doses import read_treatments
from counterpath.cohort.findings import CohortError, Finding, counted, name_patients
from counterpath.cohort.follow_up import given_within_follow_up, observed_within_follow_up, read_follow_up_end
from counterpath.cohort.frames import require_columns
from counterpath.cohort.ids import number_of, read_ids, require_one_kind_of_id
from counterpath.cohort.journal import Journal
from counterpath.cohort.layouts import read_long, read_wide
from counterpath.cohort.merging import Choice, merge_near_records, one_value_per_time
from counterpath.cohort.records import Observations, TreatmentEvents, offsets_from
from counterpath.cohort.schema import TIME_ORIGIN, Schema, Treatment
from counterpath.cohort.static import read_static


@dataclass(frozen=True)
class Tables:
    """What the user gave."""

    observations: pl.DataFrame
    treatments: pl.DataFrame | None = None
    static: pl.DataFrame | None = None


@dataclass(frozen=True)
class CohortParts:
    """What a cohort is made of, under the names it has there."""

    schema: Schema
    patients: pl.Series
    origins: pl.Series
    follow_up_end: Float64[np.ndarray, " patients"]
    records: Observations
    events: TreatmentEvents
    static_values: Float64[np.ndarray, "patients static"]
    repairs: tuple[Finding, ...]


def read_tables(tables: Tables, declared: Declared, columns: Columns, repairs: Repairs) -> CohortParts:
    """Checked, sorted and counted columns, or one error that says what to mend."""
    journal = Journal()
    observations = tables.observations
    require_columns(observations, [columns.patient, columns.time], "observations")
    long = columns.variable in observations.columns and columns.value in observations.columns
    ids = {"observations": read_ids(observations, columns.patient, "observations")}
    times = {"observations": read_times(observations[columns.time], ids["observations"], "observations")}
    treatments = tables.treatments if tables.treatments is not None and tables.treatments.height else None
    if treatments is not None:
        start = columns.start if columns.start in treatments.columns else columns.time
        require_columns(treatments, [columns.patient, columns.treatment, start], "treatments")
        ids["treatments"] = read_ids(treatments, columns.patient, "treatments")
        times["treatments"] = read_times(treatments[start], ids["treatments"], "treatments")
    if tables.static is not None:
        require_columns(tables.static, [columns.patient], "static")
        ids["static"] = read_ids(tables.static, columns.patient, "static")
    require_one_kind_of_id(ids, columns.patient)

    read = read_long if long else read_wide
    variables, cells = read(observations, declared, columns, ids["observations"])
    has_value = np.zeros(observations.height, bool)
    for rows, _ in cells:
        has_value[rows] = True
    if not has_value.all():
        count = int((~has_value).sum())
        message = f"{counted(count, 'row')} of the observations table without any value: no record."
        journal.asked(Finding("row_without_value", "note", message, count=count))
    patients = ids["observations"].filter(pl.Series(has_value)).unique(maintain_order=True)
    if not len(patients):
        raise CohortError("No row of the observations table has a value. Give at least one measurement.")
    _report_patients_without_records(ids, patients, journal)

    # A row without a value is no record: it belongs to nobody.
    numbers = {table: number_of(ids[table], patients) for table in times}
    numbers["observations"] = np.where(has_value, numbers["observations"], -1)
    origin, kind = _origins(times, numbers, ids, patients, declared, tables.static)
    unit = declared.time_unit

    row_patient = numbers["observations"]
    row_time = np.full(observations.height, np.nan)
    known = row_patient >= 0
    row_time[known] = elapsed(times["observations"].values[known], origin[row_patient[known]], kind, unit)
    _report_unsorted(observations, columns, long, row_patient, row_time, ids["observations"], journal)

    records, merged = one_value_per_time(row_patient, row_time, cells, variables, patients, repairs.duplicates, unit)
    if merged is not None:
        journal.asked(merged)
    follow_up_end = read_follow_up_end(declared, tables.static, ids, patients, origin, kind)
    records = observed_within_follow_up(records, follow_up_end, patients, repairs, journal)
    if repairs.merge_within:
        how: Choice = "mean" if repairs.duplicates == "error" else repairs.duplicates
        before = records.per_patient
        records = merge_near_records(records, variables, repairs.merge_within, how)
        joined = patients.filter(pl.Series(records.per_patient < before))
        count = int(before.sum()) - records.rows
        message = f"{counted(count, 'record')} within {repairs.merge_within:g} {unit}s of another joined it (by {how})."
        journal.asked(Finding("merged_records", "note", message, count=count, patients=tuple(joined)))

    events, given = _events(treatments, columns, times, ids, patients, origin, kind, declared, journal)
    events = given_within_follow_up(events, follow_up_end, repairs, journal)
    static_variables, static = read_static(tables.static, declared, columns, ids, patients, journal)

    outcomes = len(declared.outcomes)
    schema = Schema(
        time_unit=unit,
        outcomes=tuple(variables[:outcomes]),
        covariates=tuple(variables[outcomes:]),
        static=static_variables,
        treatments=given,
        randomised=declared.randomised,
        stay_separator=declared.stay_separator,
        patient_column=columns.patient,
        time_column=columns.time,
    )
    left = np.flatnonzero(records.per_patient > 0)
    if len(left) < len(patients):  # a repair took the last record of somebody
        journal.unasked(_without_records(patients.filter(pl.Series(records.per_patient == 0))))
    return CohortParts(
        schema,
        patients.gather(left),
        _stored_origins(tables.static, ids, declared, patients.gather(left), origins_as_series(origin[left], kind)),
        follow_up_end[left],
        records.take(left),
        events.take(left),
        static[left],
        tuple(journal.findings),
    )


def _report_patients_without_records(ids: dict[str, pl.Series], patients: pl.Series, journal: Journal) -> None:
    if "treatments" in ids:
        unknown = ids["treatments"].filter(~ids["treatments"].is_in(patients.implode()))
        if len(unknown):
            raise CohortError(
                [
                    Finding(
                        "unknown_patient",
                        "error",
                        f"{counted(len(unknown), 'row')} of the treatments table for "
                        f"{name_patients(unknown)}, of whom nothing was observed.",
                        "Correct the ids, or remove the rows.",
                        count=len(unknown),
                        patients=tuple(unknown.unique(maintain_order=True)),
                    )
                ]
            )
    listed = pl.concat([ids[table] for table in ("observations", "static") if table in ids]).unique(maintain_order=True)
    absent = listed.filter(~listed.is_in(patients.implode()))
    if len(absent):
        journal.unasked(_without_records(absent))


def _without_records(patients: pl.Series) -> Finding:
    return Finding(
        "patient_without_records",
        "warning",
        f"{counted(len(patients), 'patient')} without any measurement left out: {name_patients(patients)}.",
        count=len(patients),
        patients=tuple(patients),
    )


def _origins(
    times: dict[str, Times],
    numbers: dict[str, np.ndarray],
    ids: dict[str, pl.Series],
    patients: pl.Series,
    declared: Declared,
    static: pl.DataFrame | None,
) -> tuple[np.ndarray, TimeKind]:
    """Each patient's time zero on the user's clock, and what kind of clock that is."""
    kind = require_one_clock(list(times.values()))
    if declared.time_zero == "as given":
        if kind != "number":
            raise CohortError("time_zero='as given' is for times as numbers; dates need a first record or a column.")
        return np.zeros(len(patients)), kind
    if declared.time_zero == "first record":
        latest = np.inf if kind == "number" else np.iinfo(np.int64).max
        origin = np.full(len(patients), latest, dtype=times["observations"].values.dtype)
        for table, column in times.items():
            known = numbers[table] >= 0
            np.minimum.at(origin, numbers[table][known], column.values[known])
        return origin, kind
    if static is None:
        raise CohortError(f"time_zero={declared.time_zero!r} is a column of the static table, and there is none.")
    require_columns(static, [declared.time_zero], "static")
    zero = read_times(static[declared.time_zero], ids["static"], "static")
    require_one_clock([times["observations"], zero])
    return _one_per_patient(zero.values, ids["static"], patients, declared.time_zero), kind


def _stored_origins(
    static: pl.DataFrame | None,
    ids: dict[str, pl.Series],
    declared: Declared,
    patients: pl.Series,
    otherwise: pl.Series,
) -> pl.Series:
    """Time zero as a cohort gave it back with its static table; times count from it already."""
    if static is None or TIME_ORIGIN not in static.columns or declared.time_zero != "as given":
        return otherwise
    row = number_of(patients, ids["static"])
    return otherwise if (row < 0).any() else static[TIME_ORIGIN].gather(row).alias("")


def _one_per_patient(values: np.ndarray, ids: pl.Series, patients: pl.Series, column: str) -> np.ndarray:
    row = number_of(patients, ids)
    if (row < 0).any():
        absent = patients.filter(pl.Series(row < 0))
        raise CohortError(
            f"{name_patients(absent, capital=True)}: no row in the static table, which gives {column!r}. Add the rows."
        )
    return values[row]


def _report_unsorted(
    table: pl.DataFrame,
    columns: Columns,
    long: bool,
    row_patient: np.ndarray,
    row_time: np.ndarray,
    ids: pl.Series,
    journal: Journal,
) -> None:
    """Order is not information, so rows are sorted; but times that run backwards may be a wrong column."""
    group = row_patient
    if long:  # a block per variable is a usual order, not a mistake
        labels = table[columns.variable].cast(pl.String)
        codes = number_of(labels, labels.unique(maintain_order=True))
        group = row_patient * (codes.max() + 1) + codes
    order = np.argsort(group, kind="stable")
    backwards = (np.diff(group[order]) == 0) & (np.diff(row_time[order]) < 0)
    if backwards.any():
        concerned = ids.gather(order[1:][backwards]).unique(maintain_order=True)
        count = int(backwards.sum())
        journal.unasked(
            Finding(
                "unsorted_times",
                "warning",
                f"Times run backwards {counted(count, 'time')} in the observations table "
                f"({name_patients(concerned)}); rows were sorted.",
                count=count,
                patients=tuple(concerned),
                columns=(columns.time,),
            )
        )


def _events(
    table: pl.DataFrame | None,
    columns: Columns,
    times: dict[str, Times],
    ids: dict[str, pl.Series],
    patients: pl.Series,
    origin: np.ndarray,
    kind: TimeKind,
    declared: Declared,
    journal: Journal,
) -> tuple[TreatmentEvents, tuple[Treatment, ...]]:
    empty = np.array([], dtype=np.float64)
    if table is None:
        none = np.array([], dtype=np.int64)
        events = TreatmentEvents(offsets_from(none, len(patients)), none, empty, empty, empty)
        return events, declared.treatments or ()
    number = number_of(ids["treatments"], patients)
    start = elapsed(times["treatments"].values, origin[number], kind, declared.time_unit)
    stop = np.where(_is_running(table, columns), np.inf, np.nan)
    if columns.stop in table.columns:
        column = table[columns.stop]
        given = column.is_not_null()
        if given.any():
            stops = read_times(column.filter(given), ids["treatments"].filter(given), "treatments")
            require_one_clock([times["treatments"], stops])
            stop[given] = elapsed(stops.values, origin[number[given]], kind, declared.time_unit)
    events, treatments, zero_doses = read_treatments(
        table,
        columns,
        number,
        start,
        stop,
        ids["treatments"],
        len(patients),
        declared.treatments,
        declared.time_unit,
    )
    if zero_doses is not None:
        journal.unasked(zero_doses)
    return events, treatments


def _is_running(table: pl.DataFrame, columns: Columns) -> np.ndarray:
    """A row with a rate, no dose and no stop is an interval whose end nobody knows yet."""
    blank = np.zeros(table.height, bool)
    has_rate = table[columns.rate].is_not_null().to_numpy() if columns.rate in table.columns else blank
    has_dose = table[columns.dose].is_not_null().to_numpy() if columns.dose in table.columns else blank
    return has_rate & ~has_dose
