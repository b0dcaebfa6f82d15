"""Interval treatments from events that begin and end them, and how much was given."""

from __future__ import annotations

from collections import defaultdict
from dataclasses import dataclass
from datetime import datetime

import polars as pl

from counterpath.importers.left_out import LeftOut
from counterpath.importers.meds_spec import Given, selects

NEVER = datetime.max  # stands for the stop of what never stops
COURSE = ("patient", "treatment")


@dataclass(frozen=True)
class Paired:
    """Intervals of one treatment.

    Attributes:
        intervals: Rows of starts with `start` and `stop`, which is null where no end belongs to it.
        without_start: Subjects of ends that no start belongs to.
        of_several: Subjects of ends that came while several starts were open, so that it is a guess whose they are.
    """

    intervals: pl.DataFrame
    without_start: pl.Series
    of_several: pl.Series


def pair(events: pl.DataFrame, given: Given) -> Paired:
    """Each start with its end: of those that share the columns of `pair_by`, an end closes the latest open start.

    An end at the instant of a start belongs to a start before, wherever the file lists it, if one is open: in a
    titration the new rate is often listed before the end of the old. A start that was not yet closed at that instant
    begins and ends in it.

    Args:
        events: Of some subjects.
        given: The treatment.
    """
    assert given.starts is not None
    assert given.ends is not None
    begins = selects(given.starts)
    events = events.with_columns(begins=begins).filter(begins | selects(given.ends)).sort("time", "begins")
    keys = events.select("subject_id", *given.pair_by)
    open_starts, unused_ends = defaultdict(list), defaultdict(list)
    stops: list[datetime | None] = [None] * events.height
    of_several: list[int] = []
    for row, (key, is_start, time) in enumerate(zip(keys.iter_rows(), events["begins"], events["time"], strict=True)):
        if is_start and unused_ends[key] and unused_ends[key][-1] == time:
            stops[row] = unused_ends[key].pop()
        elif is_start:
            open_starts[key].append(row)
        elif open_starts[key]:
            if len(open_starts[key]) > 1:
                of_several.append(key[0])
            stops[open_starts[key].pop()] = time
        else:
            unused_ends[key].append(time)
    found = events.with_columns(pl.Series("stop", stops, dtype=events.schema["time"])).filter("begins")
    without_start = [key[0] for key, times in unused_ends.items() for _ in times]
    return Paired(
        found.rename({"time": "start"}).drop("begins"),
        pl.Series("subject_id", without_start, dtype=pl.Int64),
        pl.Series("subject_id", of_several, dtype=pl.Int64),
    )


def with_amounts(given: pl.DataFrame, left_out: LeftOut) -> pl.DataFrame:
    """Doses and intervals with their amounts, as a cohort reads them.

    A treatment that never has an amount was given or not: 1. Where it has one elsewhere, a row without is left out.

    Args:
        given: `patient`, `treatment`, `start`, `stop`, `lasts` (an interval) and `amount`, of all patients.
        left_out: Counts what has no amount.
    """
    known = pl.col("amount").is_finite().fill_null(value=False)
    given = given.with_columns(known=known, ever=known.any().over("treatment"))
    for (name,), part in given.filter(~pl.col("known") & pl.col("ever")).group_by("treatment"):
        left_out.add("no-value", str(name), part["patient"])
    there = given.filter(pl.col("known") | ~pl.col("ever"))
    there = there.with_columns(amount=pl.when("known").then("amount").otherwise(1.0))
    doses = there.filter(~pl.col("lasts")).select(*COURSE, "start", "stop", dose="amount")
    intervals = there.filter("lasts").select(*COURSE, "start", "stop", "ever", rate="amount")
    added = stacked(intervals.filter("ever").drop("ever"))
    once = united(intervals.filter(~pl.col("ever")).drop("ever"))
    return pl.concat([doses, added, once], how="diagonal")


def stacked(intervals: pl.DataFrame) -> pl.DataFrame:
    """Intervals of each patient and treatment that do not overlap: where several run, their rates add up.

    Args:
        intervals: `patient`, `treatment`, `start`, `stop` (null: it never ends) and `rate`.
    """
    known = _with_runs(intervals)
    alone = pl.len().over("run") == 1
    beside = known.filter(~alone)
    # Summed anew between any two edges: rates that were added and then taken away leave rounding errors behind.
    edges = pl.concat([beside.select("run", time="start"), beside.select("run", time="stop")]).unique()
    edges = edges.sort("run", "time").with_columns(until=pl.col("time").shift(-1).over("run")).drop_nulls("until")
    running = (pl.col("start") <= pl.col("time")) & (pl.col("stop") >= pl.col("until"))
    pieces = edges.join(beside, on="run", maintain_order="left_right").filter(running)
    pieces = pieces.group_by(*COURSE, "time", "until", maintain_order=True)
    sums = pieces.agg(pl.col("rate").sum()).rename({"time": "start", "until": "stop"})
    return _as_they_end(pl.concat([known.filter(alone).drop("run"), sums]))


def united(intervals: pl.DataFrame) -> pl.DataFrame:
    """The same where there is no rate to add: what runs several times is given once.

    Args:
        intervals: As for `stacked`.
    """
    runs = _with_runs(intervals).group_by(*COURSE, "run", maintain_order=True)
    one = runs.agg(pl.col("start").min(), pl.col("stop").max(), pl.col("rate").first())
    return _as_they_end(one.drop("run"))


def _with_runs(intervals: pl.DataFrame) -> pl.DataFrame:
    """With `run`: a number that intervals share which overlap, one with the next."""
    known = intervals.with_columns(pl.col("stop").fill_null(NEVER)).sort(*COURSE, "start", "stop")
    reached = pl.col("stop").cum_max().shift().over(COURSE)
    is_first = (pl.col("start") >= reached).fill_null(value=True)
    return known.with_columns(run=is_first.cum_sum())


def _as_they_end(intervals: pl.DataFrame) -> pl.DataFrame:
    return intervals.with_columns(pl.col("stop").replace(NEVER, None)).sort(*COURSE, "start")
