"""A first `schema.toml` for tables that somebody has just put into a folder."""

from __future__ import annotations

from pathlib import Path

import polars as pl

from counterpath.cohort.declared import Columns, DeclaredVariable
from counterpath.cohort.findings import CohortError, did_you_mean
from counterpath.cohort.folder import SCHEMA_FILE, TABLES, CohortFile, read_table, schema_text
from counterpath.cohort.units import TIME_UNITS, TimeUnit

# Names that people give to such columns, the most telling first.
USUAL_NAMES = {
    "patient": (
        "patient",
        "patient_id",
        "subject_id",
        "subject",
        "stay_id",
        "icustay_id",
        "person_id",
        "id",
        "pid",
        "mrn",
    ),
    "time": (
        "time",
        "datetime",
        "timestamp",
        "charttime",
        "date",
        "day",
        "days",
        "hour",
        "hours",
        "week",
        "month",
        "year",
    ),
    "variable": ("variable", "code", "item", "parameter", "test"),
    "value": ("value", "valuenum", "numeric_value", "result"),
    "treatment": ("treatment", "drug", "medication", "intervention"),
    "start": ("start", "start_time", "starttime", "from"),
    "stop": ("stop", "stop_time", "stoptime", "end", "end_time", "endtime", "until"),
    "dose": ("dose", "amount", "amt"),
    "rate": ("rate",),
}
FOLLOW_UP_NAMES = (
    "follow_up_end",
    "end_of_follow_up",
    "futime",
    "discharge",
    "discharge_time",
    "dischtime",
    "death",
)

HEADER = """\
# Draft of a schema, made from the tables in this folder. Please read it once:
#   - outcomes: what is to be predicted.{guess}
#   - time_unit: what the times count, or what dates are converted to (second, minute, hour, day, week, month, year).
#   - kind: "numeric" or "categorical"; lower and upper: bounds that no value passes, such as lower = 0.0
#   - randomised = true, if treatment was assigned at random given what is recorded.
# Then: counterpath check {folder}
"""


def draft_schema(folder: str | Path, *, outcome: str | None = None) -> Path:
    """Write `schema.toml` from what the tables look like, for the user to read and mend.

    Args:
        folder: With `observations`, and where there are any `treatments` and `static`, as CSV or Parquet.
        outcome: The variable to be predicted; default: the number that was recorded most often, said in the file.
    """
    folder = Path(folder)
    path = folder / SCHEMA_FILE
    if path.exists():
        raise CohortError(f"{path} is there already. Remove it first, if a new draft is wanted.")
    if not folder.is_dir():
        raise CohortError(f"There is no folder {str(folder)!r}.")
    tables = {name: read_table(folder, name, "") for name in TABLES}
    columns = _guess_columns(tables)
    if columns.patient not in tables["observations"].columns:
        raise CohortError(
            f"No column of {folder}/observations looks like the patient. Name it 'patient', or one of "
            f"{', '.join(USUAL_NAMES['patient'][1:5])}."
        )
    tables = {name: read_table(folder, name, columns.patient) for name in TABLES}
    observations = tables["observations"]
    if columns.time not in observations.columns:
        raise CohortError(f"No column of {folder}/observations looks like a time. Name it 'time'.")
    counts = _numeric_counts(observations, columns)
    names = _measured(observations, columns)
    if outcome is not None and outcome not in names:
        raise CohortError(f"There is no variable {outcome!r}. {did_you_mean(outcome, names)}")
    if outcome is None and not counts:
        raise CohortError(f"{folder}/observations has no column of numbers that could be an outcome.")
    chosen = outcome or max(counts, key=lambda name: counts[name])
    static = tables["static"]
    ends = [name for name in FOLLOW_UP_NAMES if static is not None and name in static.columns]
    described = CohortFile(
        time_unit=_guess_unit(columns.time),
        outcomes=(DeclaredVariable(name=chosen, kind="numeric"),),
        covariates=tuple(
            DeclaredVariable(name=name, kind="numeric" if name in counts else "categorical")
            for name in names
            if name != chosen
        ),
        static=None
        if static is None
        else tuple(
            DeclaredVariable(name=name, kind="numeric" if static[name].dtype.is_numeric() else "categorical")
            for name in static.columns
            if name not in (columns.patient, *ends[:1])
        ),
        follow_up_end=ends[0] if ends else None,
        columns=columns,
    )
    guess = "" if outcome else f" {chosen!r} is only a guess: the number that was recorded most often."
    path.write_text(HEADER.format(guess=guess, folder=folder) + schema_text(described), encoding="utf-8")
    return path


def _guess_columns(tables: dict[str, pl.DataFrame | None]) -> Columns:
    found = {}
    homes = {
        "patient": ("observations",),
        "time": ("observations",),
        "variable": ("observations",),
        "value": ("observations",),
    }
    for role, usual in USUAL_NAMES.items():
        for home in homes.get(role, ("treatments",)):
            table = tables[home]
            if table is None:
                continue
            by_lower = {column.lower(): column for column in table.columns}
            name = next((by_lower[word] for word in usual if word in by_lower), None)
            if name is not None:
                found[role] = name
    if not {"variable", "value"} <= found.keys():  # wide: a column called 'value' is then a variable
        found = {role: name for role, name in found.items() if role not in ("variable", "value")}
    return Columns(**found)


def _is_long(table: pl.DataFrame, columns: Columns) -> bool:
    return columns.variable in table.columns and columns.value in table.columns


def _measured(table: pl.DataFrame, columns: Columns) -> list[str]:
    if _is_long(table, columns):
        return table[columns.variable].cast(pl.String).drop_nulls().unique(maintain_order=True).to_list()
    return [name for name in table.columns if name not in (columns.patient, columns.time)]


def _numeric_counts(table: pl.DataFrame, columns: Columns) -> dict[str, int]:
    """How often each numeric variable was recorded."""
    if not _is_long(table, columns):
        names = _measured(table, columns)
        return {n: table.height - table[n].null_count() for n in names if table[n].dtype.is_numeric()}
    values = pl.col(columns.value).cast(pl.String).str.strip_chars().cast(pl.Float64, strict=False)
    per_variable = table.group_by(pl.col(columns.variable).cast(pl.String), maintain_order=True).agg(
        numbers=values.is_not_null().sum(), given=pl.col(columns.value).is_not_null().sum()
    )
    return {
        row[columns.variable]: row["numbers"]
        for row in per_variable.iter_rows(named=True)
        if row["numbers"] > row["given"] / 2
    }


def _guess_unit(time_column: str) -> TimeUnit:
    word = time_column.lower().rstrip("s")
    return next((unit for unit in TIME_UNITS if unit in word), "day")  # type: ignore[return-value]  # from the list
