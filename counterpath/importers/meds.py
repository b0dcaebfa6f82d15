"""From a MEDS data set to a cohort."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from os import PathLike
from pathlib import Path
from typing import Any

import polars as pl
from rich.console import Console
from rich.progress import track

from counterpath.cohort import Cohort
from counterpath.cohort.findings import CohortError
from counterpath.cohort.journal import Journal
from counterpath.cohort.units import MICROSECONDS
from counterpath.importers.left_out import LeftOut, those_there
from counterpath.importers.meds_intervals import pair, with_amounts
from counterpath.importers.meds_shards import find_shards, read_shards, split_subjects
from counterpath.importers.meds_spec import PATTERN, Given, Measured, MedsSpec, read_spec, selects

END = "follow_up_end"
BETWEEN = "/"  # a subject and the number of the stay, in a patient's id


def read_meds(
    folder: str | PathLike[str],
    spec: MedsSpec | Mapping[str, Any] | str | PathLike[str],
    *,
    split: str | None = None,
    progress: bool = True,
) -> Cohort:
    """Patients of a MEDS data set, file by file, so that the data may be larger than memory.

    A patient is a subject, or one stay of a subject where the spec describes stays; its id is then `subject/stay`.

    Args:
        folder: That holds `data` and `metadata`.
        spec: What to take: a `MedsSpec`, what would make one, a TOML or JSON file, or a ready one by its name.
        split: Only subjects of this part of the data set, such as `train`.
        progress: Show it.
    """
    chosen, folder = read_spec(spec), Path(folder)
    subjects = None if split is None else split_subjects(folder, split)
    paths, left_out, parts, begun = find_shards(folder), LeftOut("meds"), [], chosen.stay is None
    shards = read_shards(paths, chosen, subjects)
    quiet = Console(stderr=True, quiet=not progress)
    for _, events in track(shards, "Reading MEDS", total=len(paths), console=quiet, transient=True):
        parts.append(_tables(events, chosen, left_out))
        begun = begun or (chosen.stay is not None and bool(events.select(selects(chosen.stay.begins).any()).item()))
    observations, treatments, static = (pl.concat(part) for part in zip(*parts, strict=True))
    if not observations.height:
        names = ", ".join(chosen.measured)
        what = f"No record of {names}" if begun else "No code that begins a stay"
        raise CohortError(f"{what} was found in {folder}. Compare the spec's codes with metadata/codes.")
    return _cohort(observations, with_amounts(treatments, left_out), static, chosen, left_out)


def _tables(events: pl.DataFrame, spec: MedsSpec, left_out: LeftOut) -> tuple[pl.DataFrame, pl.DataFrame, pl.DataFrame]:
    """Observations, treatments and static values of one file."""
    stays = _stays(events, spec)
    observed = [_observed(events, stays, name, own, spec, left_out) for name, own in spec.measured.items()]
    observations = pl.concat(observed)
    outcomes = observations.filter(pl.col("variable").is_in(list(spec.outcome)))["patient"].unique()
    silent = stays.filter(~pl.col("patient").is_in(outcomes.implode()))
    left_out.add("no-outcome", "", silent["patient"].to_list())
    stays = stays.filter(pl.col("patient").is_in(outcomes.implode()))
    observations = observations.filter(pl.col("patient").is_in(outcomes.implode()))
    given = [_given(events, stays, name, own, spec, left_out) for name, own in spec.treatments.items()]
    treatments = pl.concat([_nothing_given(events), *given])
    return observations, treatments, _static(events, stays, spec)


def _stays(events: pl.DataFrame, spec: MedsSpec) -> pl.DataFrame:
    """`subject_id`, `number`, `patient`, `begin` and `end` of each."""
    timed, stay = events.filter(pl.col("time").is_not_null()), spec.stay
    death = timed.filter(selects(spec.death)).group_by("subject_id").agg(pl.col("time").min().alias("death"))
    if stay is None:
        measured = [selects(own.codes) for own in spec.measured.values()]
        found = (
            timed.filter(pl.any_horizontal(measured)).group_by("subject_id").agg(pl.col("time").min().alias("begin"))
        )
        found = found.with_columns(number=pl.lit(None, dtype=pl.Int64), end=pl.lit(None, dtype=timed.schema["time"]))
        found = found.with_columns(pl.col("subject_id").cast(pl.String).alias("patient"))
    else:
        number = pl.col(stay.number).cast(pl.Int64) if stay.number else pl.lit(None, dtype=pl.Int64)
        begins = timed.filter(selects(stay.begins)).select("subject_id", number.alias("number"), begin="time")
        if stay.number is None:
            begins = begins.with_columns(pl.int_range(1, pl.len() + 1).over("subject_id").alias("number"))
        begins = begins.group_by("subject_id", "number").agg(pl.col("begin").min()).sort("subject_id", "begin")
        found = _with_ends(begins, timed, spec)
        patient = pl.concat_str(pl.col("subject_id"), pl.lit(BETWEEN), pl.col("number"))
        found = found.with_columns(patient.alias("patient"))
    found = found.join(death, on="subject_id", how="left")
    longest = pl.lit(None, dtype=timed.schema["time"])
    if stay is not None and stay.longest is not None:
        longest = pl.col("begin") + pl.duration(microseconds=round(stay.longest * MICROSECONDS[spec.time_unit]))
    found = found.with_columns(pl.min_horizontal("end", "death", longest).alias("end"))
    return found.select("subject_id", "number", "patient", "begin", "end").sort("subject_id", "begin")


def _with_ends(begins: pl.DataFrame, timed: pl.DataFrame, spec: MedsSpec) -> pl.DataFrame:
    stay = spec.stay
    assert stay is not None
    if stay.ends is None:
        return begins.with_columns(pl.lit(None, dtype=timed.schema["time"]).alias("end"))
    ends = timed.filter(selects(stay.ends))
    if stay.number is not None:
        number = pl.col(stay.number).cast(pl.Int64).alias("number")
        last = ends.group_by("subject_id", number).agg(pl.col("time").max().alias("end"))
        return begins.join(last, on=["subject_id", "number"], how="left")
    ends = ends.select("subject_id", pl.col("time").alias("begin"), pl.col("time").alias("end")).sort("begin")
    return begins.sort("begin").join_asof(ends, on="begin", by="subject_id", strategy="forward", check_sortedness=False)


def _within_stays(rows: pl.DataFrame, stays: pl.DataFrame, spec: MedsSpec) -> pl.DataFrame:
    """Rows with `patient`, `begin` and `end` of their stay, null where there is none: by its number, else by time."""
    number = None if spec.stay is None else spec.stay.number
    known = stays.select("subject_id", "number", "patient", "begin", "end")
    if spec.stay is None:
        return rows.join(known.drop("number"), on="subject_id", how="left")
    by_time = rows
    parts = []
    if number is not None:
        numbered = rows.filter(pl.col(number).is_not_null()).with_columns(pl.col(number).cast(pl.Int64).alias("number"))
        parts.append(numbered.join(known, on=["subject_id", "number"], how="left").drop("number"))
        by_time = rows.filter(pl.col(number).is_null())
    during = by_time.sort("time").join_asof(
        known.drop("number").sort("begin"), left_on="time", right_on="begin", by="subject_id", check_sortedness=False
    )
    parts.append(during.select(*rows.columns, "patient", "begin", "end"))
    return pl.concat([part.select(*rows.columns, "patient", "begin", "end") for part in parts])


def _observed(
    events: pl.DataFrame, stays: pl.DataFrame, name: str, own: Measured, spec: MedsSpec, left_out: LeftOut
) -> pl.DataFrame:
    rows = _timed(events.filter(selects(own.codes)), name, left_out)
    rows = _within_stays(_in_one_unit(rows, name, own), stays, spec)
    rows = _kept(rows, _during_stay(), "outside-stay", name, left_out)
    rows = _kept(rows, pl.col("numeric_value").is_finite().fill_null(value=False), "no-value", name, left_out)
    low, high = own.range or (None, None)
    possible = pl.lit(True)
    if low is not None:
        possible &= pl.col("numeric_value") >= low
    if high is not None:
        possible &= pl.col("numeric_value") <= high
    rows = _kept(rows, possible, "out-of-range", name, left_out)
    return rows.select("patient", "time", pl.lit(name).alias("variable"), pl.col("numeric_value").alias("value"))


def _during_stay() -> pl.Expr:
    inside = pl.col("patient").is_not_null() & (pl.col("time") >= pl.col("begin"))
    return inside & (pl.col("end").is_null() | (pl.col("time") <= pl.col("end")))


def _timed(rows: pl.DataFrame, name: str, left_out: LeftOut) -> pl.DataFrame:
    left_out.add("no-time", name, rows.filter(pl.col("time").is_null())["subject_id"].cast(pl.String).to_list())
    return rows.filter(pl.col("time").is_not_null())


def _kept(rows: pl.DataFrame, condition: pl.Expr, what: str, name: str, left_out: LeftOut) -> pl.DataFrame:
    gone = rows.filter(~condition)
    who = gone.select(pl.coalesce("patient", pl.col("subject_id").cast(pl.String)))
    left_out.add(what, name, who.to_series().to_list())
    return rows.filter(condition)


def _in_one_unit(rows: pl.DataFrame, name: str, own: Measured | Given) -> pl.DataFrame:
    """With values in the unit that the spec says; one that it does not know is an error."""
    there = rows.filter(pl.col("unit").is_not_null()).group_by("unit").len().sort("len", "unit", descending=True)
    units = there["unit"].to_list()
    usual = own.unit if own.unit is not None else units[0] if units else None
    unknown = [unit for unit in units if unit != usual and unit not in own.units]
    if unknown:
        counts = " and ".join(f"{unit} ({number:,} rows)" for unit, number in there.iter_rows())
        raise CohortError(
            f"{name} has values in {counts}, and the spec does not say how {unknown[0]} becomes {usual}. Add "
            f'units = {{ "{unknown[0]}" = … }}: how many {usual} one {unknown[0]} is; or choose other codes.'
        )
    factor = pl.col("unit").replace_strict(own.units, default=1.0, return_dtype=pl.Float64)
    return rows.with_columns(pl.col("numeric_value") * factor)


def _nothing_given(events: pl.DataFrame) -> pl.DataFrame:
    time = events.schema["time"]
    kinds = {"patient": pl.String, "treatment": pl.String, "start": time, "stop": time, "lasts": pl.Boolean}
    return pl.DataFrame(schema=kinds | {"amount": pl.Float64})


def _given(
    events: pl.DataFrame, stays: pl.DataFrame, name: str, own: Given, spec: MedsSpec, left_out: LeftOut
) -> pl.DataFrame:
    """Doses, or intervals that may overlap; amounts as they were recorded."""
    kinds = _nothing_given(events).schema
    if own.codes is not None:
        rows = _timed(events.filter(selects(own.codes)), name, left_out)
        rows = _within_stays(_in_one_unit(rows, name, own), stays, spec)
        rows = _kept(rows, _during_stay(), "outside-stay", name, left_out)
        rows = rows.with_columns(start="time", stop=pl.lit(None), amount="numeric_value", lasts=pl.lit(value=False))
    else:
        rows = _intervals(events, stays, name, own, spec, left_out)
        rows = rows.with_columns(lasts=pl.lit(value=True))
    return rows.with_columns(treatment=pl.lit(name)).select(pl.col(one).cast(kind) for one, kind in kinds.items())


def _intervals(
    events: pl.DataFrame, stays: pl.DataFrame, name: str, own: Given, spec: MedsSpec, left_out: LeftOut
) -> pl.DataFrame:
    assert own.starts is not None
    assert own.ends is not None
    starts = _in_one_unit(_timed(events.filter(selects(own.starts)), name, left_out), name, own)
    ends = _timed(events.filter(selects(own.ends)), name, left_out)
    both = pl.concat([starts.with_columns(amount="numeric_value"), ends], how="diagonal")
    stay_number = (spec.stay.number,) if spec.stay is not None and spec.stay.number is not None else ()
    paired = pair(both, own, stay_number)
    left_out.add("no-end", name, paired.without_end)
    left_out.add("no-start", name, paired.without_start)
    rows = _within_stays(paired.intervals.with_columns(time="start"), stays, spec)
    rows = rows.with_columns(pl.max_horizontal("start", "begin").alias("start"), pl.min_horizontal("stop", "end"))
    inside = pl.col("patient").is_not_null() & (pl.col("end").is_null() | (pl.col("start") <= pl.col("end")))
    rows = _kept(rows, inside, "outside-stay", name, left_out)
    lasts = pl.col("stop").is_null() | (pl.col("stop") > pl.col("start"))
    return _kept(rows, lasts, "no-length", name, left_out)


def _static(events: pl.DataFrame, stays: pl.DataFrame, spec: MedsSpec) -> pl.DataFrame:
    """What was known when the stay began: the latest of each, if there is one."""
    found = stays
    for name, own in spec.static.items():
        rows = events.filter(selects(own.codes)).join(stays.select("subject_id", "patient", "begin"), on="subject_id")
        rows = rows.filter(pl.col("time").is_null() | (pl.col("time") <= pl.col("begin"))).sort(
            "time", nulls_last=False
        )
        if own.value == "number":
            value = pl.col("numeric_value")
        elif own.value == "years":
            value = (pl.col("begin") - pl.col("time")).dt.total_microseconds() / MICROSECONDS["year"]
        else:
            value = pl.coalesce(
                *(pl.col("code").str.extract(f"^(?:{code})$", 1) for code in _patterns(own.codes)), "code"
            )
        latest = rows.group_by("patient", maintain_order=True).agg(value.last().alias(name))
        found = found.join(latest, on="patient", how="left")
    return found.select("patient", "begin", pl.col("end").alias(END), *spec.static)


def _patterns(codes: tuple[str, ...]) -> list[str]:
    """Those with a group."""
    return [code.removeprefix(PATTERN) for code in codes if code.startswith(PATTERN) and "(" in code]


def _cohort(
    observations: pl.DataFrame, treatments: pl.DataFrame, static: pl.DataFrame, spec: MedsSpec, left_out: LeftOut
) -> Cohort:
    journal, measured = Journal(), set(observations["variable"].unique())
    for name in spec.outcome:
        if name not in measured:
            raise CohortError(f"No record of {name} was found. Compare the spec's codes with metadata/codes.")
    covariates = those_there("meds", list(spec.covariates), measured, "Nobody has a value of", journal)
    drugs = those_there("meds", list(spec.treatments), set(treatments["treatment"]), "Nobody was given", journal)
    described = {name: own for name, own in (spec.measured | spec.treatments).items() if name in {*measured, *drugs}}
    named: dict[str, Any] = {
        "outcome": list(spec.outcome),
        "covariates": covariates,
        "bounds": {name: own.bounds for name, own in spec.outcome.items() if own.bounds is not None},
        "units": {name: own.unit for name, own in described.items() if own.unit is not None},
    }
    cohort = Cohort.from_tables(
        observations,
        treatments if treatments.height else None,
        static,
        time_unit=spec.time_unit,
        time_zero="begin",
        stay_separator=BETWEEN if spec.stay is not None else None,
        follow_up_end=END,
        duplicates="mean",
        merge_within=spec.merge_within,
        **named,
    )
    return replace(cohort, repairs=(*left_out.said(), *journal.findings, *cohort.repairs))
