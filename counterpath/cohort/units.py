"""Units of time: what a cohort's numbers count."""

from __future__ import annotations

from typing import Literal, get_args

TimeUnit = Literal["second", "minute", "hour", "day", "week", "month", "year"]
TIME_UNITS: tuple[str, ...] = get_args(TimeUnit)

# Months and years are averages of the Gregorian calendar, so that a unit is a fixed length.
MICROSECONDS: dict[str, int] = {
    "second": 1_000_000,
    "minute": 60_000_000,
    "hour": 3_600_000_000,
    "day": 86_400_000_000,
    "week": 7 * 86_400_000_000,
    "month": 2_629_746_000_000,
    "year": 31_556_952_000_000,
}


def units_per(of: TimeUnit, to: TimeUnit) -> float:
    """How many `to` make one `of`: a day is 24 hours."""
    return MICROSECONDS[of] / MICROSECONDS[to]
