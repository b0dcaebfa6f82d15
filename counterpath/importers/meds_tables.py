"""From the events of a MEDS file to the tables of a cohort."""

from __future__ import annotations

import math

import polars as pl

from counterpath.cohort.schema import FOLLOW_UP_END
from counterpath.cohort.units import MICROSECONDS
from counterpath.importers.left_out import LeftOut
from counterpath.importers.meds_intervals import pair
from counterpath.importers.meds_spec import BEGIN, PATTERN, Codes, Fixed, Given, Measured, MedsSpec, selects
from counterpath.importers.meds_stays import during_stay, find_stays, meets_stay, with_stays, with_stays_of_intervals
from counterpath.importers.meds_units import Units


class Extraction:
    """What a spec takes from one file after the other.

    Attributes:
        spec: What to take.
        left_out: Counts what is left out on the way.
    """

    def __init__(self, spec: MedsSpec, left_out: LeftOut):
        self.spec = spec
        self.left_out = left_out
        self._units = Units()  # of all files, so that no two of them differ

    def tables(self, events: pl.DataFrame) -> tuple[pl.DataFrame, pl.DataFrame, pl.DataFrame]:
        """Observations, treatments with their `amount` as it was recorded, and a row of static values per stay."""
        stays = find_stays(events, self.spec, self.left_out)
        observed = [self._observed(events, stays, name, own) for name, own in self.spec.measured.items()]
        given = [self._given(events, stays, name, own) for name, own in self.spec.treatments.items()]
        return pl.concat(observed), pl.concat([_nothing_given(events), *given]), self._static(events, stays)

    def _observed(self, events: pl.DataFrame, stays: pl.DataFrame, name: str, own: Measured) -> pl.DataFrame:
        rows = self._at_their_time(events, stays, name, own.codes)
        rows = self._in_one_unit(rows, name, own)
        value = pl.col("numeric_value")
        rows = self._kept(rows, value.is_finite().fill_null(value=False), "no-value", name)
        low, high = own.range or (None, None)
        possible = value.is_between(-math.inf if low is None else low, math.inf if high is None else high)
        rows = self._kept(rows, possible, "out-of-range", name)
        return rows.select("patient", "time", variable=pl.lit(name), value=value)

    def _given(self, events: pl.DataFrame, stays: pl.DataFrame, name: str, own: Given) -> pl.DataFrame:
        """Doses, or intervals that may overlap."""
        if own.codes is not None:
            rows = self._at_their_time(events, stays, name, own.codes).with_columns(start="time", stop=None)
        else:
            rows = self._intervals(events, stays, name, own)
        rows = self._in_one_unit(rows, name, own)
        rows = rows.with_columns(treatment=pl.lit(name), amount="numeric_value", lasts=pl.lit(own.codes is None))
        return rows.select(pl.col(column).cast(kind) for column, kind in _nothing_given(events).schema.items())

    def _intervals(self, events: pl.DataFrame, stays: pl.DataFrame, name: str, own: Given) -> pl.DataFrame:
        assert own.starts is not None
        assert own.ends is not None
        paired = pair(self._timed(events.filter(selects((*own.starts, *own.ends))), name), own)
        self.left_out.add("no-end", name, paired.intervals.filter(pl.col("stop").is_null())["subject_id"])
        self.left_out.add("no-start", name, paired.without_start)
        self.left_out.add("several-starts", name, paired.of_several)
        rows = with_stays_of_intervals(paired.intervals, stays, self.spec)
        rows = self._kept(rows, meets_stay("over"), self._outside, name)
        rows = self._kept(rows, meets_stay(), "after-longest", name)
        rows = rows.with_columns(pl.max_horizontal("start", "begin").alias("start"), pl.min_horizontal("stop", "end"))
        lasts = pl.col("stop").is_null() | (pl.col("stop") > pl.col("start"))
        return self._kept(rows, lasts, "no-length", name)

    def _static(self, events: pl.DataFrame, stays: pl.DataFrame) -> pl.DataFrame:
        """What was known when the stay began: the latest of each, if there is one."""
        found = stays.select("patient", pl.col("begin").alias(BEGIN), pl.col("end").alias(FOLLOW_UP_END))
        for name, own in self.spec.static.items():
            rows = events.filter(selects(own.codes)).join(stays.select("subject_id", "patient", "begin"), "subject_id")
            known = rows.filter(pl.col("time").is_null() | (pl.col("time") <= pl.col("begin")))
            latest = known.sort("time", nulls_last=False).group_by("patient", maintain_order=True)
            found = found.join(latest.agg(_said(own).last().alias(name)), on="patient", how="left")
        return found

    def _at_their_time(self, events: pl.DataFrame, stays: pl.DataFrame, name: str, codes: Codes) -> pl.DataFrame:
        """Records of these codes, each with the stay in which it lies."""
        rows = with_stays(self._timed(events.filter(selects(codes)), name), stays, self.spec)
        rows = self._kept(rows, during_stay("over"), self._outside, name)
        return self._kept(rows, during_stay(), "after-longest", name)

    def _timed(self, rows: pl.DataFrame, name: str) -> pl.DataFrame:
        self.left_out.add("no-time", name, rows.filter(pl.col("time").is_null())["subject_id"])
        return rows.filter(pl.col("time").is_not_null())

    def _in_one_unit(self, rows: pl.DataFrame, name: str, own: Measured | Given) -> pl.DataFrame:
        return self._kept(self._units.converted(rows, name, own), pl.col("is_wanted"), "other-unit", name)

    @property
    def _outside(self) -> str:
        return "outside-record" if self.spec.stay is None else "outside-stay"

    def _kept(self, rows: pl.DataFrame, condition: pl.Expr, what: str, name: str) -> pl.DataFrame:
        whose = pl.coalesce("patient", pl.col("subject_id").cast(pl.String))
        self.left_out.add(what, name, rows.filter(~condition).select(whose).to_series())
        return rows.filter(condition)


def _nothing_given(events: pl.DataFrame) -> pl.DataFrame:
    time = events.schema["time"]
    kinds = {"patient": pl.String, "treatment": pl.String, "start": time, "stop": time, "lasts": pl.Boolean}
    return pl.DataFrame(schema=kinds | {"amount": pl.Float64})


def _said(own: Fixed) -> pl.Expr:
    """What a row says of a static variable."""
    if own.value == "number":
        return pl.col("numeric_value")
    if own.value == "years":
        return (pl.col("begin") - pl.col("time")).dt.total_microseconds() / MICROSECONDS["year"]
    patterns = [code.removeprefix(PATTERN) for code in own.codes if code.startswith(PATTERN)]
    return pl.coalesce(*(pl.col("code").str.extract(f"^(?:{pattern})$", 1) for pattern in patterns), "code")
