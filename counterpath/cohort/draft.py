"""A first `schema.toml` for tables that somebody has just put into a folder."""

from __future__ import annotations

import warnings
from pathlib import Path

import numpy as np
import polars as pl

from counterpath.cohort.clock import Times, read_times
from counterpath.cohort.declared import Columns, DeclaredVariable
from counterpath.cohort.findings import CohortError, did_you_mean
from counterpath.cohort.folder import SCHEMA_FILE, TABLES, CohortFile, read_table, schema_text
from counterpath.cohort.units import MICROSECONDS, TIME_UNITS, TimeUnit
from counterpath.cohort.values import reads_as_numbers

# Names that people give to such columns, the most telling first.
USUAL_NAMES = {
    "patient": (
        "patient",
        "patient_id",
        "subject_id",
        "subject",
        "stay_id",
        "icustay_id",
        "hadm_id",
        "encounter_id",
        "person_id",
        "case_id",
        "case",
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
    if outcome is None and not any(counts.values()):
        raise CohortError(f"{folder}/observations has no column of numbers that could be an outcome.")
    chosen = outcome or max(counts, key=lambda name: counts[name])
    static = tables["static"]
    end = None if static is None else _guess_follow_up_end(static, observations, columns)
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
            DeclaredVariable(name=name, kind="numeric" if reads_as_numbers(static[name]) else "categorical")
            for name in static.columns
            if name not in (columns.patient, end)
        ),
        follow_up_end=end,
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
    if tables["treatments"] is not None and "start" not in found:
        start = _guess_start(tables["treatments"], found)
        found |= {"start": start} if start is not None else {}
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
    names = _measured(table, columns)
    if _is_long(table, columns):
        values = dict.fromkeys(names, table[columns.value].clear())
        parts = table.partition_by(columns.variable, as_dict=True)
        values |= {str(name): part[columns.value] for (name,), part in parts.items() if name is not None}
    else:
        values = {name: table[name] for name in names}
    return {name: len(values[name].drop_nulls()) for name in names if reads_as_numbers(values[name])}


def _guess_start(treatments: pl.DataFrame, found: dict[str, str]) -> str | None:
    """The only other column of the treatments that is called like a time, or else the only one that holds dates."""
    if found.get("time", "time") in treatments.columns:
        return None
    left = [name for name in treatments.columns if name not in found.values()]
    called = [name for name in left if _is_called_a_time(name)]
    dated = [name for name in left if (times := _times(treatments[name])) is not None and times.kind != "number"]
    return next((names[0] for names in (called, dated) if len(names) == 1), None)


def _is_called_a_time(name: str) -> bool:
    words = name.lower().replace("-", "_").replace(" ", "_").split("_")
    return name.lower() in USUAL_NAMES["time"] or words[-1] in (*USUAL_NAMES["time"], "at")


def _guess_follow_up_end(static: pl.DataFrame, observations: pl.DataFrame, columns: Columns) -> str | None:
    """The first column with a usual name whose values end the follow-up of most patients."""
    by_lower = {name.lower(): name for name in static.columns}
    names = [by_lower[name] for name in FOLLOW_UP_NAMES if name in by_lower]
    return next((name for name in names if _ends_follow_up(static, name, observations, columns)), None)


def _ends_follow_up(static: pl.DataFrame, name: str, observations: pl.DataFrame, columns: Columns) -> bool:
    """Whether a column holds times on the clock of the records, at or after the last record of most patients."""
    given = static.filter(pl.col(name).is_not_null())
    seen, ends = _times(observations[columns.time]), _times(given[name])
    if columns.patient not in static.columns or seen is None or ends is None or seen.kind != ends.kind:
        return False
    latest = ends.values
    if ends.kind == "number":
        if set(np.unique(latest)) <= {0.0, 1.0}:  # yes or no, and not when
            return False
    elif (latest % MICROSECONDS["day"] == 0).all():  # a date without a clock ends with its day
        latest = latest + MICROSECONDS["day"]
    last = pl.DataFrame({"patient": observations[columns.patient].cast(pl.String), "last": seen.values})
    end = pl.DataFrame({"patient": given[columns.patient].cast(pl.String), "end": latest})
    both = last.group_by("patient").max().join(end, on="patient")
    return (both["end"] >= both["last"]).sum() > both.height / 2


def _times(column: pl.Series) -> Times | None:
    """A column as times; None where it has none, or something else."""
    rows = pl.Series(np.arange(len(column)))
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # reading the folder says it again
            return read_times(column, rows, "") if len(column) else None
    except CohortError:
        return None


def _guess_unit(time_column: str) -> TimeUnit:
    word = time_column.lower().rstrip("s")
    return next((unit for unit in TIME_UNITS if unit in word), "day")  # type: ignore[return-value]  # from the list
