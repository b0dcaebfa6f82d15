"""The door for tables: anything narwhals takes comes in as polars, and goes out as the kind it came."""

from __future__ import annotations

import warnings
from collections.abc import Iterable
from datetime import UTC, datetime
from numbers import Number
from typing import Any, Literal

import narwhals as nw
import polars as pl
from narwhals.exceptions import DuplicateError, NarwhalsError

from counterpath.cohort.findings import CohortError, Finding, TimeZoneWarning, did_you_mean

FrameKind = Literal["polars", "pandas", "pyarrow"]


def to_polars(frame: Any, table: str) -> tuple[pl.DataFrame, FrameKind]:
    """A user's table as polars, and which kind it was.

    Args:
        frame: A DataFrame or LazyFrame of pandas, polars, Arrow or another library that narwhals knows.
        table: What the table is, for error messages.
    """
    try:
        wrapped = nw.from_native(frame)
    except DuplicateError as error:
        raise CohortError(f"The {table} table has two columns of one name. Rename one. ({error})") from error
    except (TypeError, NarwhalsError) as error:
        raise CohortError(
            f"The {table} table is a {type(frame).__name__}. "
            "Pass a DataFrame of pandas, polars or Arrow, or a folder to read_cohort."
        ) from error
    if isinstance(wrapped, nw.LazyFrame):
        wrapped = wrapped.collect(backend="polars")
    library = wrapped.implementation.name.lower()
    kind: FrameKind = library if library in ("pandas", "pyarrow") else "polars"
    columns = [_column(wrapped, name, table) for name in wrapped.columns]
    # A gap is a null from here on: pandas writes NaN, files leave the cell empty.
    return pl.DataFrame([c.fill_nan(None) if c.dtype.is_float() else c for c in columns]), kind


def _column(frame: nw.DataFrame[Any], name: Any, table: str) -> pl.Series:
    column = frame.get_column(name)
    if column.dtype == nw.Object or column.dtype == nw.Unknown:
        return _object_column(column.to_list(), str(name), table)
    try:
        return column.to_polars().alias(str(name))
    except ModuleNotFoundError:  # pandas text without pyarrow installed
        return _object_column(column.to_list(), str(name), table)


def _object_column(values: list[Any], name: str, table: str) -> pl.Series:
    """A column of Python objects, refused where text and numbers are mixed."""
    values = [None if _is_gap(value) else value for value in values]
    kinds = {"text" if isinstance(value, str) else "number" for value in values if value is not None}
    if len(kinds) > 1:
        text = next(value for value in values if isinstance(value, str))
        number = next(value for value in values if value is not None and not isinstance(value, str))
        raise CohortError(
            [
                Finding(
                    "mixed_types",
                    "error",
                    f"Column {name!r} of the {table} table mixes text ({text!r}) and numbers ({number!r}).",
                    f"Make it one kind, for example frame[{name!r}] = frame[{name!r}].astype(str).",
                    columns=(name,),
                )
            ]
        )
    present = [value for value in values if value is not None]
    if all(isinstance(value, Number) for value in present) and not all(isinstance(value, int) for value in present):
        values = [None if value is None else float(value) for value in values]  # whole numbers among others
    try:
        series = pl.Series(name, _in_one_zone(values, name, table), strict=True)
    except (TypeError, pl.exceptions.PolarsError) as error:
        raise _unreadable(name, table, present) from error
    if series.dtype == pl.Object:
        raise _unreadable(name, table, present)
    return series


def _is_gap(value: Any) -> bool:
    if value is None:
        return True
    try:
        return bool(value != value)
    except (TypeError, ValueError):  # pandas.NA is neither equal to itself nor not; arrays have no one answer
        return type(value).__name__ == "NAType"


def _unreadable(name: str, table: str, present: list[Any]) -> CohortError:
    kinds = ", ".join(sorted({type(value).__name__ for value in present}))
    return CohortError(
        f"Column {name!r} of the {table} table holds objects of type {kinds}. Convert it to numbers, text or datetimes."
    )


def _in_one_zone(values: list[Any], name: str, table: str) -> list[Any]:
    """Python datetimes of several zones in UTC; refused where some have a zone and some have none."""
    moments = [value for value in values if isinstance(value, datetime)]
    zones = {str(moment.tzinfo) for moment in moments}
    if len(zones) < 2:
        return values
    if "None" in zones:
        raise mixed_zones(f"Column {name!r} of the {table} table has times with and without a time zone.", name)
    warn_of_zones(name, table, zones)
    return [value.astimezone(UTC) if isinstance(value, datetime) else value for value in values]


def mixed_zones(message: str, column: str) -> CohortError:
    """The error for times that cannot be placed on one clock."""
    remedy = "Give all of them a zone, or none."
    return CohortError([Finding("mixed_time_zones", "error", message, remedy, columns=(column,))])


def warn_of_zones(column: str, table: str, zones: Iterable[str]) -> None:
    """Several zones are fine, since instants are compared, but worth a look."""
    warnings.warn(
        f"Column {column!r} of the {table} table has times in {len(set(zones))} zones "
        f"({', '.join(sorted(set(zones))[:4])}); they were compared as instants.",
        TimeZoneWarning,
        stacklevel=2,
    )


def to_kind(frame: pl.DataFrame, kind: FrameKind) -> Any:
    """A polars table as the kind that the user works with."""
    if kind == "polars":
        return frame
    if kind == "pyarrow":
        return frame.to_arrow()
    import pandas as pd

    # Through lists where a column has gaps, because numpy has no missing integer or boolean.
    columns = {}
    for series in frame:
        if series.null_count() and not series.dtype.is_float():
            dtype = {pl.Int64: "Int64", pl.Boolean: "boolean"}.get(type(series.dtype))
            columns[series.name] = pd.Series(series.to_list(), dtype=dtype)
        elif series.dtype.is_numeric() or series.dtype == pl.Boolean:
            columns[series.name] = series.to_numpy()
        else:
            columns[series.name] = series.to_list()
    return pd.DataFrame(columns)


def require_columns(frame: pl.DataFrame, columns: list[str], table: str) -> None:
    """An error that names each column that is not there, and the nearest that is."""
    missing = [column for column in columns if column not in frame.columns]
    if missing:
        raise CohortError(
            [
                Finding(
                    "missing_column",
                    "error",
                    f"The {table} table has no column {column!r}.",
                    did_you_mean(column, frame.columns),
                    columns=(column,),
                )
                for column in missing
            ]
        )
    if frame.height == 0:
        raise CohortError([Finding("empty_table", "error", f"The {table} table is empty.", "Give at least one row.")])
