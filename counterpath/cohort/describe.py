"""A cohort in words and in a table."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import polars as pl

from counterpath.cohort.findings import counted
from counterpath.cohort.schema import Variable

if TYPE_CHECKING:
    from counterpath.cohort.cohort import Cohort


def summarise_cohort(cohort: Cohort) -> str:
    """The `repr`: a few lines that answer who, what, how long and how much."""
    schema, records, events = cohort.schema, cohort.records, cohort.events
    unit = schema.time_unit
    outcomes = records.values[:, : len(schema.outcomes)]
    lines = [
        f"Cohort of {counted(len(cohort), 'patient')}, {counted(records.rows, 'record')}, "
        f"time in {unit}s{', randomised' if schema.randomised else ''}"
    ]
    if len(cohort):
        first = np.full(len(cohort), np.nan)
        has = records.per_patient > 0
        first[has] = records.times[records.offsets[:-1][has]]
        length = cohort.history_end - first
        known = length[np.isfinite(length)]
        if len(known):
            middle, longest = np.median(known), known.max()
            lines.append(f"  follow-up   median {middle:.4g} {unit}s, longest {longest:.4g}")
    counts = np.sum(~np.isnan(outcomes), axis=0)
    lines.append(
        "  outcomes    "
        + ", ".join(f"{v.label} {counted(int(n), 'time')}" for v, n in zip(schema.outcomes, counts, strict=True))
    )
    if schema.covariates:
        lines.append("  covariates  " + _listed(schema.covariates))
    if schema.static:
        lines.append("  static      " + _listed(schema.static))
    if schema.treatments:
        given = np.bincount(events.treatment, minlength=len(schema.treatments))
        lines.append(
            "  treatments  "
            + ", ".join(f"{t.label} {counted(int(n), 'time')}" for t, n in zip(schema.treatments, given, strict=True))
        )
    else:
        lines.append("  treatments  none that change over time: effects of plans cannot be asked")
    lines += [f"  repaired    {finding.message}" for finding in cohort.repairs]
    return "\n".join(lines)


def _listed(variables: tuple[Variable, ...], most: int = 8) -> str:
    names = [v.label if v.kind == "numeric" else f"{v.label} [{len(v.levels)} levels]" for v in variables]
    return ", ".join(names[:most]) + (f" and {len(names) - most} more" if len(names) > most else "")


def describe_cohort(cohort: Cohort) -> pl.DataFrame:
    """A line per variable and treatment.

    Columns: `name`, `role`, `kind`, `unit`, `values` (how many were recorded), `patients` (share with at least one),
    `per_patient` (median number), `mean`, `std`, `lowest`, `median`, `highest` of numbers, `most_common` of categories.
    """
    schema, records = cohort.schema, cohort.records
    rows = []
    outcomes = len(schema.outcomes)
    for j, variable in enumerate(schema.variables):
        role = "outcome" if j < outcomes else "covariate"
        rows.append(_row(variable, role, records.values[:, j], records.patient_of_row, len(cohort)))
    for j, variable in enumerate(schema.static):
        rows.append(_row(variable, "static", cohort.static_values[:, j], np.arange(len(cohort)), len(cohort)))
    for code, treatment in enumerate(schema.treatments):
        for kind, wanted in (("dose", cohort.events.is_dose), ("rate", ~cohort.events.is_dose)):
            mine = (cohort.events.treatment == code) & wanted
            if mine.any() or (kind == "dose" and treatment.rate is None):
                amounts = np.where(mine, cohort.events.amount, np.nan)
                owner = cohort.events.patient_of_row
                named = Variable(name=treatment.name, unit=treatment.unit)
                rows.append(_row(named, "treatment", amounts, owner, len(cohort)) | {"kind": kind})
    return pl.DataFrame(rows, schema=_COLUMNS, orient="row")


_COLUMNS = {
    "name": pl.String,
    "role": pl.String,
    "kind": pl.String,
    "unit": pl.String,
    "values": pl.Int64,
    "patients": pl.Float64,
    "per_patient": pl.Float64,
    "mean": pl.Float64,
    "std": pl.Float64,
    "lowest": pl.Float64,
    "median": pl.Float64,
    "highest": pl.Float64,
    "most_common": pl.String,
}


def _row(variable: Variable, role: str, values: np.ndarray, owner: np.ndarray, patients: int) -> dict[str, object]:
    present = ~np.isnan(values)
    counts = np.bincount(owner[present], minlength=patients)
    row: dict[str, object] = {
        "name": variable.name,
        "role": role,
        "kind": variable.kind,
        "unit": variable.unit,
        "values": int(present.sum()),
        "patients": float(np.mean(counts > 0)) if patients else 0.0,
        "per_patient": float(np.median(counts)) if patients else 0.0,
    }
    seen = values[present]
    if not len(seen):
        return row
    if variable.kind == "categorical":
        return row | {"most_common": variable.levels[int(np.argmax(np.bincount(seen.astype(int))))]}
    return row | {
        "mean": float(seen.mean()),
        "std": float(seen.std()),
        "lowest": float(seen.min()),
        "median": float(np.median(seen)),
        "highest": float(seen.max()),
    }
