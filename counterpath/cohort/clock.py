"""Times of any kind become float64 in the cohort's unit, counted from each patient's time zero."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, date, datetime
from typing import Any, Literal

import numpy as np
import polars as pl
from jaxtyping import Float64, Int64

from counterpath.cohort.findings import CohortError, Finding, counted, name_patients
from counterpath.cohort.frames import mixed_zones, warn_of_zones
from counterpath.cohort.units import MICROSECONDS, TimeUnit

TimeKind = Literal["number", "moment", "moment in a zone"]

_OFFSET = r"(Z|[+-]\d\d:?\d\d)$"
_YEAR_FIRST = r"^\d{4}[-/]\d\d[-/]\d\d"  # in 01/02/2024 nobody knows which is the month


@dataclass(frozen=True)
class Times:
    """A column of times before the patient's zero is known: numbers, or microseconds since 1970.

    Subtracting whole microseconds first keeps dates exact; a float of a date would not be.
    """

    kind: TimeKind
    values: Float64[np.ndarray, " rows"] | Int64[np.ndarray, " rows"]
    table: str


def read_times(column: pl.Series, patients: pl.Series, table: str) -> Times:
    """The times of a table, or an error that names the patients whose times cannot be read."""
    if column.dtype == pl.String:
        column = times_from_text(column, patients, table)
    if column.dtype == pl.Date:
        column = column.cast(pl.Datetime("us"))
    _require(column.is_not_null(), column, patients, table, "no time", "Fill it in, or remove the row.")
    if isinstance(column.dtype, pl.Datetime):
        kind: TimeKind = "moment in a zone" if column.dtype.time_zone else "moment"
        return Times(kind, column.dt.epoch("us").to_numpy().astype(np.int64), table)
    if not column.dtype.is_numeric():
        raise CohortError(
            f"Column {column.name!r} of the {table} table is of type {column.dtype}. Times are numbers or datetimes."
        )
    numbers = column.cast(pl.Float64)
    _require(numbers.is_finite(), column, patients, table, "a time that is not finite", "Mend or remove the row.")
    return Times("number", numbers.to_numpy(), table)


def _require(good: pl.Series, column: pl.Series, patients: pl.Series, table: str, what: str, remedy: str) -> None:
    bad = patients.filter(~good)
    if len(bad):
        raise CohortError(
            [
                Finding(
                    "bad_time",
                    "error",
                    f"{name_patients(bad, capital=True)}: {counted(len(bad), 'row')} of the {table} table "
                    f"with {what} in column {column.name!r}.",
                    remedy,
                    count=len(bad),
                    patients=tuple(bad.unique(maintain_order=True)),
                    columns=(column.name,),
                )
            ]
        )


def times_from_text(column: pl.Series, patients: pl.Series, table: str) -> pl.Series:
    """Numbers or moments from text; dates start with the year."""
    text = column.str.strip_chars()
    numbers = text.cast(pl.Float64, strict=False)
    if numbers.null_count() == text.null_count():
        return numbers
    zone = text.str.extract(_OFFSET).str.replace("Z", "+00:00").str.replace(r"(\d\d)(\d\d)$", "$1:$2")
    has_clock = text.str.contains(":")
    with_zone = (text.str.contains(_OFFSET) & has_clock).sum()
    if with_zone == 0:
        dates = pl.select(pl.when(text.str.contains(_YEAR_FIRST)).then(text)).to_series()
        try:
            moments = dates.str.to_datetime(time_unit="us", strict=False)
        except pl.exceptions.ComputeError:  # it finds the format from the dates themselves, and none of them is one
            moments = pl.Series(values=[None] * len(dates), dtype=pl.Datetime("us"))
    elif with_zone < len(text) - text.null_count():
        raise mixed_zones(
            f"Column {column.name!r} of the {table} table has times with and without a time zone.",
            column.name,
        )
    else:
        if zone.drop_nulls().n_unique() > 1:
            warn_of_zones(column.name, table, zone.drop_nulls().to_list())
        plain = text.str.replace(" ", "T").str.replace(_OFFSET, "")
        plain = pl.select(pl.when(plain.str.count_matches(":") == 1).then(plain + ":00").otherwise(plain)).to_series()
        moments = (plain + zone).str.to_datetime("%Y-%m-%dT%H:%M:%S%.f%z", time_unit="us", strict=False)
    unread = moments.is_null() & text.is_not_null()
    if unread.sum() == text.is_not_null().sum() and numbers.is_not_null().any():  # numbers, and something else
        unread = numbers.is_null() & text.is_not_null()
    if unread.any():
        raise CohortError(
            [
                Finding(
                    "bad_time",
                    "error",
                    f"{name_patients(patients.filter(unread), capital=True)}: {text.filter(unread)[0]!r} in column "
                    f"{column.name!r} of the {table} table is not a time.",
                    "Write numbers, or dates like 2024-03-31 or 2024-03-31T14:05:00.",
                    count=int(unread.sum()),
                    patients=tuple(patients.filter(unread).unique(maintain_order=True)),
                    columns=(column.name,),
                )
            ]
        )
    return moments.alias(column.name)


def require_one_clock(times: Sequence[Times]) -> TimeKind:
    """All tables count time the same way, or an error says which do not."""
    first = times[0]
    for other in times[1:]:
        if other.kind != first.kind:
            message = f"Times in the {first.table} table are {_KINDS[first.kind]}, in the {other.table} table "
            raise (
                mixed_zones(f"{message}{_KINDS[other.kind]}.", "time")
                if "number"
                not in (
                    first.kind,
                    other.kind,
                )
                else CohortError(f"{message}{_KINDS[other.kind]}. Use one kind in all tables.")
            )
    return first.kind


_KINDS: dict[TimeKind, str] = {
    "number": "numbers",
    "moment": "datetimes without a time zone",
    "moment in a zone": "datetimes with a time zone",
}


def elapsed(times: np.ndarray, origin: np.ndarray, kind: TimeKind, unit: TimeUnit) -> Float64[np.ndarray, " rows"]:
    """Time since `origin`, in the cohort's unit."""
    since = (times - origin).astype(np.float64)
    return since if kind == "number" else since / MICROSECONDS[unit]


def origins_as_series(origins: np.ndarray, kind: TimeKind) -> pl.Series:
    """Each patient's time zero on the user's own clock, as a column that can be shown and stored."""
    if kind == "number":
        return pl.Series(origins.astype(np.float64))
    zone = "UTC" if kind == "moment in a zone" else None
    return pl.Series(origins.astype(np.int64)).cast(pl.Datetime("us", zone))


def times_asked_for(
    time: Any, patients: pl.Series, origins: pl.Series, unit: TimeUnit
) -> Float64[np.ndarray, " patients"]:
    """A user's time on each patient's clock.

    Args:
        time: A number since time zero or a date; one for all, one per patient in order, or {id: time}.
        patients: Their ids.
        origins: Their time zero on the clock of the user's tables.
        unit: Of the cohort.
    """
    if hasattr(time, "index") and hasattr(time, "to_dict"):  # a pandas Series is labelled, and labels are patients
        time = time.to_dict()
    if isinstance(time, Mapping):
        missing = [patient for patient in patients if patient not in time]
        if missing:
            raise CohortError(f"No time was given for {name_patients(missing)}.")
        time = [time[patient] for patient in patients]
    given = list(time) if np.ndim(time) else [time]
    if np.ndim(time) and len(given) != len(patients):
        raise CohortError(f"There are {counted(len(given), 'time')} for {counted(len(patients), 'patient')}.")
    given = [_moment_or_number(moment) for moment in given]
    if any(isinstance(moment, date) for moment in given):
        return np.broadcast_to(_since(origins, given, unit), (len(patients),)).copy()
    times = np.broadcast_to(np.asarray(given, dtype=np.float64), (len(patients),)).copy()
    if not np.isfinite(times).all():
        raise CohortError("A time is missing or infinite.")
    return times


def _moment_or_number(time: Any) -> date | float:
    """A date of any library, date text, or a number; everything else is refused."""
    if isinstance(time, np.datetime64):
        time = time.astype("datetime64[us]").item()
    if isinstance(time, str):
        try:
            time = datetime.fromisoformat(time)
        except ValueError:
            raise CohortError(f"{time!r} is no time. Write a number, or a date like 2024-03-31T14:05.") from None
    if isinstance(time, date):
        return time
    if time is None or (isinstance(time, (int, float, np.integer, np.floating)) and not isinstance(time, bool)):
        return np.nan if time is None else float(time)
    raise CohortError(f"{time!r} is a {type(time).__name__}, not a time. Give a number or a date.")


def _since(origins: pl.Series, moments: list[Any], unit: TimeUnit) -> Float64[np.ndarray, " patients"]:
    if not isinstance(origins.dtype, pl.Datetime):
        raise CohortError("This cohort counts time in numbers. Give a number instead of a date.")
    has_zone = origins.dtype.time_zone is not None
    for moment in moments:
        if not isinstance(moment, date):
            raise CohortError("Some of the times are dates and some are numbers. Give one kind.")
        if (isinstance(moment, datetime) and moment.tzinfo is not None) != has_zone:
            mine = "with" if has_zone else "without"
            raise CohortError(f"Times of this cohort are {mine} a time zone, and {moment} is not. Give one alike.")
    utc = [moment.astimezone(UTC) if isinstance(moment, datetime) and has_zone else moment for moment in moments]
    asked = pl.Series(utc).cast(origins.dtype).dt.epoch("us").to_numpy()
    return (asked - origins.dt.epoch("us").to_numpy()) / MICROSECONDS[unit]
