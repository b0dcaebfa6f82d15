"""Stays of a MEDS data set: where each begins and ends, and which records and intervals belong to it."""

from __future__ import annotations

import polars as pl

from counterpath.cohort.units import MICROSECONDS
from counterpath.importers.left_out import LeftOut
from counterpath.importers.meds_spec import MedsSpec, Stay, selects

BETWEEN = "/"  # a subject and the number of the stay, in a patient's id
OF_STAY = ("patient", "begin", "over", "end")


def find_stays(events: pl.DataFrame, spec: MedsSpec, left_out: LeftOut) -> pl.DataFrame:
    """`subject_id`, `number`, `patient`, `begin`, `over` and `end`; without stays in the spec, one of each subject.

    It is over by its end or by death, and its follow-up may end before, where the spec has a longest time.
    """
    timed, stay = events.filter(pl.col("time").is_not_null()), spec.stay
    unknown = pl.lit(None, dtype=timed.schema["time"])
    death = timed.filter(selects(spec.death)).group_by("subject_id").agg(pl.col("time").min().alias("death"))
    if stay is None:
        measured = pl.any_horizontal(selects(own.codes) for own in spec.measured.values())
        found = timed.filter(measured).group_by("subject_id").agg(pl.col("time").min().alias("begin"))
        patient = pl.col("subject_id").cast(pl.String)
        found = found.with_columns(number=pl.lit(None, dtype=pl.String), end=unknown, patient=patient)
    else:
        found = _with_ends(_begun(timed, stay, left_out), timed, stay)
        found = found.with_columns(patient=pl.concat_str("subject_id", pl.lit(BETWEEN), "number"))
    found = found.join(death, on="subject_id", how="left")
    if stay is not None and stay.ends is not None:
        what = "unended" if stay.number is None else "open-ended"
        left_out.add(what, "", found.filter(~pl.col("is_ended") & pl.col("death").is_null())["patient"])
    longest = unknown
    if stay is not None and stay.longest is not None:
        longest = pl.col("begin") + pl.duration(microseconds=round(stay.longest * MICROSECONDS[spec.time_unit]))
    found = found.with_columns(over=pl.min_horizontal("end", "death"))
    found = found.with_columns(end=pl.min_horizontal("over", longest))
    if stay is not None:
        left_out.add("over", "", found.filter(pl.col("over") <= pl.col("begin"))["patient"])
    return found.select("subject_id", "number", *OF_STAY).sort("subject_id", "begin", "number")


def _begun(timed: pl.DataFrame, stay: Stay, left_out: LeftOut) -> pl.DataFrame:
    """`subject_id`, `number` and `begin`."""
    begins = timed.filter(selects(stay.begins))
    if stay.number is None:
        begun = begins.select("subject_id", begin="time").unique().sort("subject_id", "begin")
        order = pl.int_range(1, pl.len() + 1).over("subject_id")
        return begun.with_columns(number=order.cast(pl.String))
    left_out.add("no-number", "", begins.filter(pl.col(stay.number).is_null())["subject_id"])
    begins = begins.filter(pl.col(stay.number).is_not_null())
    return begins.group_by("subject_id", pl.col(stay.number).alias("number")).agg(pl.col("time").min().alias("begin"))


def _with_ends(begun: pl.DataFrame, timed: pl.DataFrame, stay: Stay) -> pl.DataFrame:
    """With `end`, and `is_ended`: whether a row says so. Without numbers a stay ends where the next begins."""
    begun = begun.sort("subject_id", "begin")
    ends = timed.filter(selects(stay.ends or ()))
    if stay.number is not None:
        last = ends.group_by("subject_id", pl.col(stay.number).alias("number")).agg(pl.col("time").max().alias("end"))
        found = begun.join(last, on=["subject_id", "number"], how="left")
        return found.with_columns(is_ended=pl.col("end").is_not_null())
    ends = ends.select("subject_id", begin="time", end="time").sort("begin")
    # Not at the same instant: where a stay follows on another, that is the end of the one before.
    found = begun.sort("begin").join_asof(
        ends, on="begin", by="subject_id", strategy="forward", allow_exact_matches=False, check_sortedness=False
    )
    following = pl.col("begin").shift(-1).over("subject_id")
    return found.with_columns(
        end=pl.min_horizontal("end", following),
        is_ended=pl.col("end").is_not_null() & (following.is_null() | (pl.col("end") <= following)),
    )


def with_stays(rows: pl.DataFrame, stays: pl.DataFrame, spec: MedsSpec) -> pl.DataFrame:
    """Records with the columns `OF_STAY` of their stay, null where there is none: by its number, else by time.

    Args:
        rows: At `time`.
        stays: As `find_stays` gives them.
        spec: That says which column has the number.
    """
    numbered, others = _by_number(rows, stays, spec)
    begun = stays.drop("number").sort("begin")
    by_time = others.sort("time").join_asof(
        begun, left_on="time", right_on="begin", by="subject_id", check_sortedness=False
    )
    return pl.concat([numbered, by_time.select(*rows.columns, *OF_STAY)])


def with_stays_of_intervals(rows: pl.DataFrame, stays: pl.DataFrame, spec: MedsSpec) -> pl.DataFrame:
    """The same of intervals, which belong by their number, else to every stay during which they run.

    Args:
        rows: From `start` to `stop`; one without a stop belongs to the stay in which it starts.
        stays: As `find_stays` gives them.
        spec: That says which column has the number.
    """
    numbered, others = _by_number(rows, stays, spec)
    following = pl.col("begin").shift(-1).over("subject_id")
    known = stays.select("subject_id", *OF_STAY, until=pl.min_horizontal("over", following))
    others = others.with_row_index("row")
    starts_before_its_end = pl.col("until").is_null() | (pl.col("start") < pl.col("until"))
    runs_in_it = pl.coalesce(pl.col("stop") > pl.col("begin"), pl.col("start") >= pl.col("begin"))
    during = others.join(known, on="subject_id").filter(starts_before_its_end & runs_in_it)
    outside = others.join(during, on="row", how="anti")
    by_time = pl.concat([during, outside], how="diagonal").select(*rows.columns, *OF_STAY)
    return pl.concat([numbered, by_time])


def _by_number(rows: pl.DataFrame, stays: pl.DataFrame, spec: MedsSpec) -> tuple[pl.DataFrame, pl.DataFrame]:
    """Rows with the stay that they name, or that of the subject where there are no stays; and those that name none."""
    if spec.stay is None:
        return rows.join(stays.drop("number"), on="subject_id", how="left").select(
            *rows.columns, *OF_STAY
        ), rows.clear()
    if spec.stay.number is None:
        return rows.clear().with_columns(pl.lit(None, dtype=stays.schema[one]).alias(one) for one in OF_STAY), rows
    number = pl.col(spec.stay.number)
    named = rows.filter(number.is_not_null()).join(
        stays, left_on=["subject_id", spec.stay.number], right_on=["subject_id", "number"], how="left"
    )
    return named.select(*rows.columns, *OF_STAY), rows.filter(number.is_null())


def during_stay(until: str = "end") -> pl.Expr:
    """Whether a record at `time` lies in the stay that it belongs to.

    Args:
        until: `end` of follow-up, or when it is `over`.
    """
    ends_later = pl.col(until).is_null() | (pl.col("time") <= pl.col(until))
    return pl.col("patient").is_not_null() & (pl.col("time") >= pl.col("begin")) & ends_later


def meets_stay(until: str = "end") -> pl.Expr:
    """Whether an interval from `start` to `stop` runs in the stay that it belongs to.

    Args:
        until: `end` of follow-up, or when it is `over`.
    """
    starts_before = pl.col(until).is_null() | (pl.col("start") < pl.col(until))
    stops_after = pl.col("stop").is_null() | (pl.col("stop") > pl.col("begin"))
    return pl.col("patient").is_not_null() & starts_before & stops_after
