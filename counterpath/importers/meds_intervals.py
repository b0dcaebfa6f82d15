"""Interval treatments from events that begin and end them, and how much was given."""

from __future__ import annotations

from collections import defaultdict, deque
from dataclasses import dataclass

import polars as pl

from counterpath.importers.left_out import LeftOut
from counterpath.importers.meds_spec import Given, selects


@dataclass(frozen=True)
class Paired:
    """Intervals of one treatment.

    Attributes:
        intervals: `subject_id`, `start`, `stop` (null while it has no end), `amount`, and the columns asked for.
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
        events: Of some subjects, in order of time; `amount` is what a start says.
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
    intervals = starts.select("subject_id", pl.col("time").alias("start"), "amount", *kept).with_columns(
        pl.Series("stop", stops, dtype=events.schema["time"])
    )
    return Paired(intervals, intervals.filter(pl.col("stop").is_null())["subject_id"].to_list(), without_start)


def with_amounts(given: pl.DataFrame, left_out: LeftOut) -> pl.DataFrame:
    """Doses and intervals with their amounts, as a cohort reads them.

    A treatment that never has an amount was given or not: 1. Where it has one elsewhere, a row without is left out.

    Args:
        given: `patient`, `treatment`, `start`, `stop`, `lasts` (an interval) and `amount`, of all patients.
        left_out: Counts what has no amount.
    """
    known = pl.col("amount").is_finite().fill_null(value=False)
    given = given.with_columns(known=known, ever=known.any().over("treatment"))
    for name, part in given.filter(~pl.col("known") & pl.col("ever")).group_by("treatment"):
        left_out.add("no-value", str(name[0]), part["patient"].to_list())
    there = given.filter(pl.col("known") | ~pl.col("ever"))
    there = there.with_columns(amount=pl.when("known").then("amount").otherwise(1.0))
    doses = there.filter(~pl.col("lasts")).select("patient", "treatment", "start", "stop", dose="amount")
    intervals = stacked(there.filter(pl.col("lasts")).rename({"amount": "rate"}))
    return pl.concat([doses, intervals], how="diagonal")


def stacked(intervals: pl.DataFrame) -> pl.DataFrame:
    """Intervals of each patient and treatment that do not overlap: where several run, their rates add up.

    Args:
        intervals: `patient`, `treatment`, `start`, `stop` (null: it never ends) and `rate`.
    """
    of, ended = ["patient", "treatment"], intervals.filter(pl.col("stop").is_not_null())
    edges = pl.concat(
        [
            intervals.select(*of, pl.col("start").alias("time"), "rate", pl.lit(1).alias("running")),
            ended.select(*of, pl.col("stop").alias("time"), -pl.col("rate"), pl.lit(-1).alias("running")),
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
