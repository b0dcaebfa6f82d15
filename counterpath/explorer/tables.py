"""A record from CSV text: one patient's tables, checked as those of a cohort are."""

from __future__ import annotations

import csv
import io
import warnings
from collections.abc import Mapping

import numpy as np
import polars as pl

from counterpath.cohort import CohortError, Schema
from counterpath.cohort.findings import CohortWarning, counted
from counterpath.cohort.schema import FOLLOW_UP_END, TIME_ORIGIN
from counterpath.explorer.limits import Limits
from counterpath.explorer.messages import MOST_TIME, HistoryAnswer, Tables
from counterpath.explorer.patients import READ, VISITOR, history_of, read, with_unmeasured
from counterpath.explorer.problems import ProblemError, in_field

LONG = ("variable", "value")  # columns of a table that has a row per value


def from_tables(tables: Tables, schema: Schema, limits: Limits) -> HistoryAnswer:
    """A record from CSV text, checked as any table is."""
    frames = {name: _csv(getattr(tables, name), name, limits.columns) for name in READ}
    frames = _about_one(frames, schema.patient_column)
    rows = sum(frame.height for frame in frames.values() if frame is not None)
    if rows > limits.records:
        raise ProblemError(413, "Too much", f"{counted(rows, 'row')} are more than {limits.records:,}.", "observations")
    given = frames["treatments"]
    if given is not None and not {"start", "time"} & set(given.columns):
        with in_field("treatments"):
            raise CohortError("The treatments need a column `start`, or `time`.")
    notes = _left_out(frames, schema)
    observations = frames["observations"]
    if observations is not None and not _is_long(observations):
        frames["observations"] = with_unmeasured(observations, schema)
    with warnings.catch_warnings(record=True) as said:
        warnings.simplefilter("always", CohortWarning)
        cohort = read(frames, schema)
    with in_field("observations"):
        if np.abs(cohort.history_end).max() > MOST_TIME or np.abs(cohort.records.times).max() > MOST_TIME:
            raise CohortError(f"A time is below {-MOST_TIME:g} or above {MOST_TIME:g}.")
    now = cohort.until(cohort.history_end)
    notes = [str(warning.message) for warning in said if issubclass(warning.category, CohortWarning)] + notes
    at_the_end = len(cohort.events.start) - len(now.events.start)
    if at_the_end:
        notes.append(
            f"{counted(at_the_end, 'treatment')} at the very end of the record: what is given now is part of a plan. "
            "Add it to each."
        )
    end = float(now.history_end[0])
    return HistoryAnswer(history=history_of(now), at=end, warnings=tuple(dict.fromkeys(notes)))


def _left_out(frames: Mapping[str, pl.DataFrame | None], schema: Schema) -> list[str]:
    """What is said of columns that the model does not know, and of covariates for which there is none."""
    observations, static = frames["observations"], frames["static"]
    keys = {schema.patient_column, schema.time_column, FOLLOW_UP_END, TIME_ORIGIN}
    measured = [] if observations is None else _measured(observations)
    fixed = [] if static is None else static.columns
    found = []
    for name, there, known in (("observations", measured, schema.variables), ("static", fixed, schema.static)):
        left_out = [one for one in there if one not in keys | {variable.name for variable in known}]
        if left_out:
            found.append(f"Left out of the {name} table, since the model knows no such thing: {', '.join(left_out)}.")
    unmeasured = [variable.name for variable in schema.covariates if variable.name not in measured]
    if unmeasured:
        what = "row" if observations is not None and _is_long(observations) else "column"
        found.append(f"Taken as never measured, since there is no such {what}: {', '.join(unmeasured)}.")
    return found


def _is_long(observations: pl.DataFrame) -> bool:
    return set(LONG) <= set(observations.columns)


def _measured(observations: pl.DataFrame) -> list[str]:
    """Names of variables: of columns, or those that the rows of a long table name; keys are among them."""
    if not _is_long(observations):
        return observations.columns
    named = observations[LONG[0]].cast(pl.String).drop_nulls().unique(maintain_order=True).to_list()
    return named + [name for name in observations.columns if name not in LONG]


def _about_one(frames: Mapping[str, pl.DataFrame | None], key: str) -> dict[str, pl.DataFrame | None]:
    """The tables with one name for the patient; one that names nobody is about whom the others name."""
    ids = {}
    for name, frame in frames.items():
        if frame is None or key not in frame.columns:
            continue
        with in_field(name):
            named = frame[key].cast(pl.String).str.strip_chars().unique(maintain_order=True).to_list()
            if len(named) > 1:
                raise CohortError(f"The table has {len(named):,} patients. Leave the rows of one.")
            ids[name] = named[0]
            if len(set(ids.values())) > 1:
                said = ", ".join(f"{patient!r} in the {table} table" for table, patient in ids.items())
                raise CohortError(f"The tables are about different patients: {said}. Give those of one.")
    visitor = pl.lit(VISITOR).alias(key)
    return {name: None if frame is None else frame.with_columns(visitor) for name, frame in frames.items()}


def _csv(text: str, name: str, columns: int) -> pl.DataFrame | None:
    text = text.strip()
    with in_field(name):
        if not text:
            if name == "observations":
                raise CohortError("Paste at least one observation.")
            return None
        try:
            width = len(next(csv.reader(io.StringIO(text))))
        except csv.Error as error:
            raise CohortError(f"This is no CSV table: {error}.") from error
        if width > columns:  # of so many, reading would take the worker's time from everybody
            raise CohortError(f"{width:,} columns are more than {columns:,}. Leave out what is not needed.")
        try:
            frame = pl.read_csv(io.StringIO(text), infer_schema_length=None, null_values=["", "NA", "NaN"])
        except (pl.exceptions.PolarsError, ValueError) as error:
            raise CohortError(f"This is no CSV table: {str(error).splitlines()[0]}.") from error
        if not frame.height:
            raise CohortError("The table has a heading and no row.")
        return frame
