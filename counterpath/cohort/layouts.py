"""The two layouts of an observations table: wide (a column per variable) and long (a row per measurement)."""

from __future__ import annotations

import numpy as np
import polars as pl

from counterpath.cohort.declared import Columns, Declared, DeclaredVariable
from counterpath.cohort.findings import CohortError, Finding, counted, did_you_mean
from counterpath.cohort.frames import require_columns
from counterpath.cohort.ids import number_of
from counterpath.cohort.schema import Variable
from counterpath.cohort.values import read_variable

Cells = tuple[np.ndarray, np.ndarray]  # rows of the user's table that have a value, and those values


def read_wide(
    table: pl.DataFrame, declared: Declared, columns: Columns, ids: pl.Series
) -> tuple[list[Variable], list[Cells]]:
    """A column per variable."""
    keys = {columns.patient, columns.time}
    variables, cells = [], []
    for variable, is_outcome in _with_roles(declared, [name for name in table.columns if name not in keys]):
        require_columns(table, [variable.name], "observations")
        known, values = read_variable(table[variable.name], variable, ids, numeric=is_outcome)
        rows = np.flatnonzero(~np.isnan(values))
        variables.append(known)
        cells.append((rows, values[rows]))
    return variables, cells


def read_long(
    table: pl.DataFrame, declared: Declared, columns: Columns, ids: pl.Series
) -> tuple[list[Variable], list[Cells]]:
    """A row per measurement, named in the `variable` column."""
    labels = table[columns.variable].cast(pl.String)
    if labels.null_count():
        raise CohortError(
            f"{counted(labels.null_count(), 'row')} of the observations table without a name in column "
            f"{columns.variable!r}. Fill it in, or remove the rows."
        )
    names = labels.unique(maintain_order=True).to_list()
    codes = number_of(labels, pl.Series(names))
    order = np.argsort(codes, kind="stable")
    ends = np.concatenate([[0], np.cumsum(np.bincount(codes, minlength=len(names)))])
    variables, cells = [], []
    for variable, is_outcome in _with_roles(declared, names):
        if variable.name not in names and variable.levels is None and variable.kind is None:
            raise CohortError(
                [
                    Finding(
                        "missing_variable",
                        "error",
                        f"No row of the observations table measures {variable.name!r}.",
                        did_you_mean(variable.name, names),
                        columns=(variable.name,),
                    )
                ]
            )
        code = names.index(variable.name) if variable.name in names else None
        rows = order[ends[code] : ends[code + 1]] if code is not None else np.array([], dtype=np.int64)
        column = table[columns.value].gather(rows)
        known, values = read_variable(column, variable, ids.gather(rows), numeric=is_outcome)
        present = ~np.isnan(values)
        variables.append(known)
        cells.append((rows[present], values[present]))
    return variables, cells


def _with_roles(declared: Declared, available: list[str]) -> list[tuple[DeclaredVariable, bool]]:
    """Each variable with whether it is an outcome, outcomes first."""
    outcomes = {variable.name for variable in declared.outcomes}
    covariates = declared.covariates
    if covariates is None:
        covariates = tuple(DeclaredVariable(name=name) for name in available if name not in outcomes)
    return [(v, True) for v in declared.outcomes] + [(v, False) for v in covariates]
