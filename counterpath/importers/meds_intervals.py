"""Interval treatments from events that begin and end them."""

from __future__ import annotations

from collections import defaultdict, deque
from dataclasses import dataclass

import polars as pl

from counterpath.importers.meds_spec import Given, selects


@dataclass(frozen=True)
class Paired:
    """Intervals of one treatment.

    Attributes:
        intervals: `subject_id`, `start`, `stop` (null while it has no end), `rate`, and the columns asked for.
        without_end: Subjects of starts that no end belongs to.
        without_start: Subjects of ends that no start belongs to, or that come before it.
    """

    intervals: pl.DataFrame
    without_end: list[int]
    without_start: list[int]


def pair(events: pl.DataFrame, given: Given, kept: tuple[str, ...] = ()) -> Paired:
    """Each start with its end: of those that share the columns of `pair_by`, the first start with the first end.

    So an end at the instant of the next start belongs to the start before, wherever the file lists it: in a titration
    the new rate is often listed before the end of the old.

    Args:
        events: Of some subjects, in order of time; `rate` is what a start says.
        given: The treatment.
        kept: Columns of the start that come along.
    """
    assert given.starts is not None
    assert given.ends is not None
    keys = ("subject_id", *given.pair_by)
    starts, ends = events.filter(selects(given.starts)), events.filter(selects(given.ends))
    waiting: dict[tuple, deque] = defaultdict(deque)
    for row in ends.select(*keys, "time").iter_rows():
        waiting[row[:-1]].append(row[-1])
    stops, without_start = [], []
    for row in starts.select(*keys, "time").iter_rows():
        own, begin = waiting[row[:-1]], row[-1]
        while own and own[0] < begin:
            own.popleft()
            without_start.append(row[0])
        stops.append(own.popleft() if own else None)
    without_start += [key[0] for key, own in waiting.items() for _ in own]
    intervals = starts.select("subject_id", pl.col("time").alias("start"), "rate", *kept).with_columns(
        pl.Series("stop", stops, dtype=events.schema["time"])
    )
    return Paired(intervals, intervals.filter(pl.col("stop").is_null())["subject_id"].to_list(), without_start)


def stacked(intervals: pl.DataFrame) -> pl.DataFrame:
    """Intervals of each patient and treatment that do not overlap: where several run, their rates add up.

    Args:
        intervals: `patient`, `treatment`, `start`, `stop` and `rate`.
    """
    of = ["patient", "treatment"]
    edges = pl.concat(
        [
            intervals.select(*of, pl.col("start").alias("time"), "rate", pl.lit(1).alias("running")),
            intervals.select(*of, pl.col("stop").alias("time"), -pl.col("rate"), pl.lit(-1).alias("running")),
        ]
    )
    steps = edges.group_by(*of, "time").agg(pl.col("rate", "running").sum()).sort(*of, "time")
    return (
        steps.with_columns(
            pl.col("rate", "running").cum_sum().over(of), pl.col("time").shift(-1).over(of).alias("stop")
        )
        .filter(pl.col("running") > 0)
        .select(*of, pl.col("time").alias("start"), "stop", "rate")
    )
