"""Rows of a table become records: one per patient and time, with one value per variable."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Literal

import numpy as np
import polars as pl

from counterpath.cohort.findings import CohortError, Finding, counted
from counterpath.cohort.records import Observations, offsets_from
from counterpath.cohort.schema import Variable

Choice = Literal["error", "mean", "first", "last"]


def one_value_per_time(
    row_patient: np.ndarray,
    row_time: np.ndarray,
    cells: Sequence[tuple[np.ndarray, np.ndarray]],
    variables: Sequence[Variable],
    patients: pl.Series,
    duplicates: Choice,
    unit: str,
) -> tuple[Observations, Finding | None]:
    """Sorted records; where a variable has two values at one time, `duplicates` decides.

    Rows of one time that complement each other are one record, which loses nothing.

    Args:
        row_patient: The patient's number, for each row of the table.
        row_time: Its time.
        cells: For each variable the rows with a value, and the values.
        variables: What they are.
        patients: Ids, for messages.
        duplicates: `error`, or which value to keep.
        unit: Of time, for messages.
    """
    used = np.zeros(len(row_patient), bool)
    for rows, _ in cells:
        used[rows] = True
    rows = np.flatnonzero(used)
    order = rows[np.lexsort((row_time[rows], row_patient[rows]))]
    is_new = np.ones(len(order), bool)
    is_new[1:] = (np.diff(row_patient[order]) != 0) | (np.diff(row_time[order]) != 0)
    record_of_row = np.full(len(row_patient), -1, dtype=np.int64)
    record_of_row[order] = np.cumsum(is_new) - 1
    first = order[is_new]
    times, owner = row_time[first], row_patient[first]

    values = np.full((len(first), len(variables)), np.nan, order="F")
    repeated: list[tuple[str, np.ndarray]] = []
    for j, (variable, (cell_rows, cell_values)) in enumerate(zip(variables, cells, strict=True)):
        records = record_of_row[cell_rows]
        counts = np.bincount(records, minlength=len(first))
        if (counts > 1).any():
            repeated.append((variable.name, np.flatnonzero(counts > 1)))
        values[:, j] = combine(records, cell_values, len(first), _how(variable, duplicates))
    records = Observations(offsets_from(owner, len(patients)), times, values)
    if not repeated:
        return records, None

    count = sum(len(where) for _, where in repeated)
    names = tuple(name for name, _ in repeated)
    categories = any(variable.name in names and variable.kind == "categorical" for variable in variables)
    concerned = tuple(patients.gather(np.unique(owner[np.concatenate([where for _, where in repeated])])))
    if duplicates == "error":
        name, where = repeated[0]
        message = (
            f"Patient {patients[int(owner[where[0]])]} has two values of {name!r} at {unit} {times[where[0]]:g}; "
            f"{counted(count, 'such case')} in {counted(len(concerned), 'patient')}."
        )
        remedy = "Keep one, or pass duplicates='mean' (or 'first', 'last')."
        raise CohortError([Finding("duplicate_times", "error", message, remedy, count, concerned, names)])
    rule = f"the {duplicates}" + (" (of categories the last)" if duplicates == "mean" and categories else "")
    message = f"{counted(count, 'duplicate value')} in {', '.join(names)} replaced by {rule}."
    return records, Finding("duplicate_times", "note", message, "", count, concerned, names)


def _how(variable: Variable, choice: Choice) -> Choice:
    return "last" if variable.kind == "categorical" and choice == "mean" else choice


def combine(groups: np.ndarray, values: np.ndarray, number: int, how: Choice) -> np.ndarray:
    """One value per group; NaN for a group without values. Values come in the order of their rows."""
    result = np.full(number, np.nan)
    if how == "mean":
        counts = np.bincount(groups, minlength=number)
        sums = np.bincount(groups, weights=values, minlength=number)
        np.divide(sums, counts, out=result, where=counts > 0)
        once = counts[groups] == 1  # a lone value stays as it is, to the bit
        result[groups[once]] = values[once]
    elif how == "first":
        result[groups[::-1]] = values[::-1]
    else:
        result[groups] = values
    return result


def merge_near_records(
    records: Observations, variables: Sequence[Variable], within: float, how: Choice
) -> Observations:
    """Records of a patient within `within` of a group's first become one, at the time of the group's last.

    The later time keeps the record causal: nothing is known before it was measured.
    """
    patient, times = records.patient_of_row, records.times
    near = np.zeros(records.rows, bool)
    near[1:] = (np.diff(patient) == 0) & (np.diff(times) <= within)
    joins = near.copy()
    anchor = 0
    for row in np.flatnonzero(near):  # only where something is near: a group must not creep along
        if not joins[row - 1]:
            anchor = row - 1
        if times[row] - times[anchor] > within:
            joins[row] = False
    group = np.cumsum(~joins) - 1
    last = np.flatnonzero(np.append(~joins[1:], True))
    values = np.full((len(last), len(variables)), np.nan, order="F")
    for j, variable in enumerate(variables):
        present = ~np.isnan(records.values[:, j])
        values[:, j] = combine(group[present], records.values[present, j], len(last), _how(variable, how))
    return Observations(offsets_from(patient[last], records.patients), times[last], values)
