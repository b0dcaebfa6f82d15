"""The table with one row per patient: covariates that do not change."""

from __future__ import annotations

import numpy as np
import polars as pl
from jaxtyping import Float64

from counterpath.cohort.declared import Columns, Declared, DeclaredVariable
from counterpath.cohort.findings import CohortError, Finding, counted, name_patients
from counterpath.cohort.frames import require_columns
from counterpath.cohort.ids import number_of
from counterpath.cohort.journal import Journal
from counterpath.cohort.schema import TIME_ORIGIN, Variable
from counterpath.cohort.values import read_variable


def read_static(
    table: pl.DataFrame | None,
    declared: Declared,
    columns: Columns,
    ids: dict[str, pl.Series],
    patients: pl.Series,
    journal: Journal,
) -> tuple[tuple[Variable, ...], Float64[np.ndarray, "patients static"]]:
    """What the variables are, and a row of values per patient; NaN where missing."""
    if table is None:
        if declared.static:
            names = ", ".join(variable.name for variable in declared.static)
            raise CohortError(f"Static variables ({names}) are declared, and there is no static table.")
        return (), np.empty((len(patients), 0))
    repeated = ids["static"].filter(ids["static"].is_duplicated()).unique(maintain_order=True)
    if len(repeated):
        raise CohortError(
            [
                Finding(
                    "static_twice",
                    "error",
                    f"{name_patients(repeated, capital=True)}: more than one row in the static table.",
                    "Keep one row per patient; what changes over time belongs to the observations.",
                    len(repeated),
                    tuple(repeated),
                )
            ]
        )
    keys = {columns.patient, declared.follow_up_end, declared.time_zero, TIME_ORIGIN}
    wanted = declared.static
    if wanted is None:
        wanted = tuple(DeclaredVariable(name=name) for name in table.columns if name not in keys)
    require_columns(table, [variable.name for variable in wanted], "static")
    row = number_of(patients, ids["static"])
    if wanted and (row < 0).any():
        absent = patients.filter(pl.Series(row < 0))
        journal.unasked(
            Finding(
                "patient_without_static",
                "warning",
                f"{counted(len(absent), 'patient')} not in the static table ({name_patients(absent)}): "
                "their static covariates are missing.",
                count=len(absent),
                patients=tuple(absent),
            )
        )
    variables, values = [], np.full((len(patients), len(wanted)), np.nan)
    for i, variable in enumerate(wanted):
        known, column = read_variable(table[variable.name], variable, ids["static"])
        variables.append(known)
        values[row >= 0, i] = column[row[row >= 0]]
    return tuple(variables), values
