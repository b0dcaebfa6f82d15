"""The table of treatments: single doses, and intervals with a rate."""

from __future__ import annotations

import numpy as np
import polars as pl
from jaxtyping import Float64, Int64

from counterpath.cohort.declared import Columns, DeclaredVariable
from counterpath.cohort.findings import CohortError, Finding, counted, did_you_mean, name_patients
from counterpath.cohort.records import TreatmentEvents
from counterpath.cohort.schema import Amounts, Treatment
from counterpath.cohort.values import read_variable


def read_treatments(
    table: pl.DataFrame,
    columns: Columns,
    patient: Int64[np.ndarray, " rows"],
    start: Float64[np.ndarray, " rows"],
    stop: Float64[np.ndarray, " rows"],
    ids: pl.Series,
    patients: int,
    declared: tuple[Treatment, ...] | None,
    unit: str,
) -> tuple[TreatmentEvents, tuple[Treatment, ...], Finding | None]:
    """Checked events, the treatments they are of, and what was left out.

    A row with a stop or a rate is an interval and takes its `rate`; any other is a single dose and takes its `dose`. A
    treatment that has no amount in any row is binary: its amount is 1.
    """
    labels = table[columns.treatment].cast(pl.String)
    _require(
        ~labels.is_null().to_numpy(),
        ids,
        f"no name in column {columns.treatment!r}",
        "Fill it in.",
        "no_treatment_name",
    )
    names = [treatment.name for treatment in declared] if declared else sorted(labels.unique())
    unknown = labels.filter(~labels.is_in(names))
    if len(unknown):
        raise CohortError(f"Treatment {unknown[0]!r} is not declared. {did_you_mean(unknown[0], names)}")
    code = labels.replace_strict(names, list(range(len(names))), return_dtype=pl.Int64).to_numpy()

    is_dose = np.isnan(stop)
    doses, rates = (_amounts(table, column, ids) for column in (columns.dose, columns.rate))
    _require(
        np.isnan(doses) | np.isnan(rates),
        ids,
        f"a {columns.dose!r} and a {columns.rate!r}",
        "Keep the rate of an interval, or the dose of a single dose.",
        "dose_and_rate",
    )
    _require(
        is_dose | np.isnan(doses),
        ids,
        f"a stop and a {columns.dose!r} but no {columns.rate!r}",
        f"An interval takes a rate: add column {columns.rate!r} with the dose divided by its length.",
        "interval_with_dose",
    )
    amount = np.where(is_dose, doses, rates)
    has_amounts = np.bincount(code[~(np.isnan(doses) & np.isnan(rates))], minlength=len(names)) > 0
    amount[np.isnan(amount) & ~has_amounts[code]] = 1.0  # given or not
    _require(
        ~np.isnan(amount),
        ids,
        f"no value in column {columns.dose!r} or {columns.rate!r}",
        "Fill it in; leave all amounts of a treatment out if it is given or not.",
        "missing_dose",
    )
    _require(amount >= 0, ids, "a negative dose or rate", "Amounts are zero or more.", "negative_dose")
    _require(
        is_dose | (stop >= start),
        ids,
        "a stop before the start",
        "Swap or mend.",
        "stop_before_start",
    )
    _require(
        is_dose | (stop > start),
        ids,
        "a stop that equals the start",
        f"Leave {columns.stop!r} empty for a single dose.",
        "stop_before_start",
    )
    given = amount > 0
    left_out = None
    if not given.all():
        concerned = ids.filter(pl.Series(~given))
        message = (
            f"{counted(len(concerned), 'treatment')} of amount zero left out ({name_patients(concerned)}): "
            "nothing was given."
        )
        left_out = Finding("zero_dose", "warning", message, count=len(concerned), patients=tuple(concerned.unique()))
    events = TreatmentEvents.from_rows(
        patient[given], code[given], start[given], stop[given], amount[given], patients=patients
    )
    clash = overlapping(events)
    if clash.any():
        of_row = pl.DataFrame({"number": patient, "id": ids}).unique("number").sort("number")
        concerned = tuple(of_row.filter(pl.col("number").is_in(np.unique(events.patient_of_row[clash]).tolist()))["id"])
        name = names[int(events.treatment[clash][0])]
        message = (
            f"{name_patients(concerned, capital=True)}: {counted(int(clash.sum()), 'interval')} of {name!r} "
            f"while another still runs (the first starts at {unit} {events.start[clash][0]:g})."
        )
        remedy = "End the earlier interval where the later begins, or give the two lines different names."
        raise CohortError([Finding("overlapping_intervals", "error", message, remedy, int(clash.sum()), concerned)])
    known = {treatment.name: treatment for treatment in declared or ()}
    return (
        events,
        tuple(_with_amounts(known.get(n, Treatment(name=n)), i, events) for i, n in enumerate(names)),
        left_out,
    )


def _amounts(table: pl.DataFrame, column: str, ids: pl.Series) -> Float64[np.ndarray, " rows"]:
    """The column's numbers; NaN where it is empty or not there."""
    if column not in table.columns:
        return np.full(table.height, np.nan)
    return read_variable(table[column], DeclaredVariable(name=column), ids, numeric=True)[1]


def _require(good: np.ndarray, ids: pl.Series, what: str, remedy: str, code: str) -> None:
    bad = ids.filter(pl.Series(~good))
    if len(bad):
        message = f"{name_patients(bad, capital=True)}: {counted(len(bad), 'row')} of the treatments table with {what}."
        raise CohortError([Finding(code, "error", message, remedy, len(bad), tuple(bad.unique(maintain_order=True)))])


def overlapping(events: TreatmentEvents) -> np.ndarray:
    """True where an interval starts while an earlier one of the same patient and treatment still runs."""
    clash = np.zeros(events.rows, bool)
    rows = np.flatnonzero(~events.is_dose)
    if len(rows) < 2:
        return clash
    order = rows[np.lexsort((events.start[rows], events.treatment[rows], events.patient_of_row[rows]))]
    same = (np.diff(events.patient_of_row[order]) == 0) & (np.diff(events.treatment[order]) == 0)
    if not (same & (events.start[order[1:]] < events.stop[order[:-1]])).any():  # neighbours tell whether there is any
        return clash
    for rows in np.split(order, np.flatnonzero(~same) + 1):
        # the latest stop so far, because a long interval may outlast several short ones
        clash[rows[1:]] = events.start[rows[1:]] < np.maximum.accumulate(events.stop[rows])[:-1]
    return clash


def _with_amounts(treatment: Treatment, code: int, events: TreatmentEvents) -> Treatment:
    """The treatment with its usual amounts; what the user or a stored schema said is kept."""
    mine = events.treatment == code
    found = {
        "dose": _summary(events.amount[mine & events.is_dose]),
        "rate": _summary(events.amount[mine & ~events.is_dose]),
    }
    return treatment.model_copy(update={k: v for k, v in found.items() if getattr(treatment, k) is None})


def _summary(amounts: np.ndarray) -> Amounts | None:
    if not len(amounts):
        return None
    # A median of an even number could be a dose that nobody ever got.
    usual = float(np.quantile(amounts, 0.5, method="lower"))
    return Amounts(usual=usual, lowest=float(amounts.min()), highest=float(amounts.max()))
