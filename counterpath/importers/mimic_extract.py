"""From the hourly file of MIMIC-Extract to a cohort."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import replace
from os import PathLike
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, get_args

import numpy as np
import polars as pl

from counterpath.cohort import Cohort
from counterpath.cohort.findings import CohortError, Finding, counted, did_you_mean, name_patients
from counterpath.cohort.journal import Journal
from counterpath.importers.left_out import LeftOut, those_there
from counterpath.importers.mimic_extract_file import HOUR, STAY, VARIABLE, read_hourly_tables

if TYPE_CHECKING:
    import pandas as pd

BETWEEN = "/"  # subject and stay, in a patient's id
END = "follow_up_end"
# To protect them, MIMIC-III says of people older than 89 that they are about 300.
OLDEST, HIDDEN_AGE = 90.0, 150.0

OUTCOME = "diastolic blood pressure"
# As the paper's supplement on real-world data has them, spelled as MIMIC-Extract spells them.
COVARIATES = (
    "heart rate",
    "red blood cell count",
    "sodium",
    "mean blood pressure",
    "systemic vascular resistance",
    "glucose",
    "chloride urine",
    "glascow coma scale total",
    "hematocrit",
    "positive end-expiratory pressure set",
)
TREATMENTS = ("vaso", "vent")
STATIC = ("gender", "age")
Implausible = Literal["keep", "leave out"]
# Wide enough for the sickest: what lies outside is a fault of the record, such as a line that was flushed.
RANGES: Mapping[str, tuple[float, float]] = {
    "diastolic blood pressure": (10, 200),
    "mean blood pressure": (15, 250),
    "heart rate": (10, 300),
    "systemic vascular resistance": (50, 6_000),
    "red blood cell count": (0.5, 10),
    "hematocrit": (5, 75),
    "sodium": (80, 220),
    "glucose": (5, 2_200),
    "chloride urine": (0, 400),
    "glascow coma scale total": (3, 15),
    "positive end-expiratory pressure set": (0, 50),
}
UNITS = {
    "diastolic blood pressure": "mmHg",
    "mean blood pressure": "mmHg",
    "heart rate": "bpm",
    "sodium": "mEq/L",
    "glucose": "mg/dL",
    "chloride urine": "mEq/L",
    "hematocrit": "%",
    "positive end-expiratory pressure set": "cmH2O",
}


def read_mimic_extract(
    path: str | PathLike[str],
    *,
    outcome: str = OUTCOME,
    covariates: Sequence[str] = COVARIATES,
    treatments: Sequence[str] = TREATMENTS,
    static: Sequence[str] = STATIC,
    ranges: Mapping[str, tuple[float, float]] = RANGES,
    implausible: Implausible = "keep",
    hours: float | None = None,
) -> Cohort:
    """Stays of an hourly file that MIMIC-Extract wrote, such as `all_hourly_data.h5`; the paper's variables by default.

    Only what was measured becomes a record: the file has a row for every hour, and most of its values are missing. The
    mean of an hour is known when the hour is over: what was measured from hour 3 to 4 is a record of time 4, and what
    was given in that hour comes before it. An outcome whose range holds nothing below 0, and of which the file has
    nothing below 0, is predicted above it. Open files from people you trust only: the format can carry code.

    Args:
        path: Of the file.
        outcome: What is to be predicted.
        covariates: What else is measured. Those that the file lacks are left out, and named.
        treatments: Columns of `interventions`, which say hour by hour whether something was given.
        static: Columns of `patients`.
        ranges: Lowest and highest plausible value by variable; what lies outside is counted, and said. Default:
            `RANGES`, of the paper's variables.
        implausible: `keep` values outside of their range, so that records are what the file has, or `leave out`.
        hours: Of each stay, at most so many; default: all.
    """
    if hours is not None and not hours > 0:
        raise CohortError(f"hours={hours} leaves nothing of a stay. Use more than 0.")
    if implausible not in get_args(Implausible):
        raise CohortError(f"There is no implausible={implausible!r}. Choose one of {', '.join(get_args(Implausible))}.")
    measured, given, people = read_hourly_tables(Path(path))
    journal, left_out = Journal(), LeftOut("mimic")
    known = list(measured.columns.get_level_values(VARIABLE))
    if outcome not in known:
        raise CohortError(f"{path} has no column {outcome!r}, the outcome. {did_you_mean(outcome, known)}")
    variables = _found([outcome, *covariates], known, journal)
    drugs, traits = _found(treatments, given.columns, journal), _found(static, people.columns, journal)
    stays = _stays(people, traits, _last_hours(measured, given), hours)
    ends = stays.select("patient", END)
    observations = _observations(measured, variables).join(ends, on="patient").filter(pl.col("time") <= pl.col(END))
    observations = _plausible(observations, ranges, implausible, left_out)
    seen = pl.col("patient").is_in(observations.filter(pl.col("variable") == outcome)["patient"].unique().implode())
    left_out.add("no-outcome", "", stays.filter(~seen)["patient"])
    observations = observations.filter(seen)
    if not observations.height:
        raise CohortError(
            f"{path} has no value of {outcome!r}, the outcome, that counts.{left_out.as_reasons()}"
            " Choose other ranges or more hours."
        )
    variables = _found(variables, set(observations["variable"]), journal, "Nobody has a value of")
    intervals = (
        _intervals(given, drugs, left_out).join(ends, on="patient").filter(seen & (pl.col("start") < pl.col(END)))
    )
    intervals = intervals.with_columns(pl.min_horizontal("stop", END).alias("stop"))
    _found(drugs, set(intervals["treatment"]), journal, "Nobody was given")
    cohort = Cohort.from_tables(
        observations.drop(END),
        intervals.drop(END) if intervals.height else None,
        _known_ages(stays.filter(seen), journal),
        outcome=outcome,
        covariates=variables[1:],
        bounds=_bounds(observations, outcome, ranges),
        units={name: UNITS[name] for name in variables if name in UNITS},
        time_unit="hour",
        time_zero="as given",
        follow_up_end=END,
        stay_separator=BETWEEN,
    )
    return replace(cohort, repairs=(*left_out.said(), *journal.findings, *cohort.repairs))


def _found(asked: Sequence[str], known: Collection[str], journal: Journal, lack: str = "The file has no") -> list[str]:
    return those_there("mimic", asked, known, lack, journal)


def _patient(table: pd.DataFrame) -> pl.Series:
    subject, stay = (pl.Series(table.index.get_level_values(STAY[i]).to_numpy()) for i in (0, 2))
    return pl.select(pl.concat_str(subject, pl.lit(BETWEEN), stay).alias("patient")).to_series()


def _hours(table: pd.DataFrame) -> pl.Series:
    return pl.Series("hour", table.index.get_level_values(HOUR).to_numpy().astype(np.float64))


def _observations(measured: pd.DataFrame, variables: Sequence[str]) -> pl.DataFrame:
    """One row for each value that is there, at the end of its hour."""
    patients, ends = _patient(measured), _hours(measured) + 1.0
    parts = []
    for name in variables:
        values = _numbers(measured[(name, "mean")], f"Means of {name!r}")
        rows = pl.DataFrame({"patient": patients, "time": ends, "variable": [name] * len(ends), "value": values})
        parts.append(rows.filter(pl.col("value").is_not_nan()))
    return pl.concat(parts)


def _numbers(column: Any, what: str) -> pl.Series:
    try:
        return pl.Series(column.to_numpy(dtype=np.float64))
    except (TypeError, ValueError) as error:
        raise CohortError(f"{what} are not all numbers ({error}). Mend them, or leave the variable out.") from error


def _plausible(
    observations: pl.DataFrame,
    ranges: Mapping[str, tuple[float, float]],
    implausible: Implausible,
    left_out: LeftOut,
) -> pl.DataFrame:
    what = "implausible" if implausible == "keep" else "out-of-range"
    for name, (low, high) in ranges.items():
        if not low < high:
            raise CohortError(f"The range of {name!r} has {low:g} as its lowest value and {high:g} as its highest.")
        outside = (pl.col("variable") == name) & ~pl.col("value").is_between(low, high)
        left_out.add(what, name, observations.filter(outside)["patient"])
        if implausible == "leave out":
            observations = observations.filter(~outside)
    return observations


def _bounds(
    observations: pl.DataFrame, outcome: str, ranges: Mapping[str, tuple[float, float]]
) -> dict[str, tuple[float, None]]:
    """Nothing below 0 where that has no meaning, such as for a pressure; unless the file has something there."""
    lowest = observations.filter(pl.col("variable") == outcome)["value"].min()
    has_no_less = outcome in ranges and ranges[outcome][0] >= 0
    return {outcome: (0.0, None)} if has_no_less and isinstance(lowest, float) and lowest >= 0 else {}


def _last_hours(*tables: pd.DataFrame) -> pl.DataFrame:
    """Where the rows of each stay end."""
    rows = pl.concat([pl.DataFrame({"patient": _patient(table), "hour": _hours(table)}) for table in tables])
    return rows.group_by("patient", maintain_order=True).agg((pl.col("hour").max() + 1.0).alias(END))


def _stays(people: pd.DataFrame, traits: Sequence[str], ends: pl.DataFrame, hours: float | None) -> pl.DataFrame:
    columns: dict[str, Any] = {"patient": _patient(people)}
    for name in traits:
        values = people[name]
        if values.dtype.kind in "iufb":
            columns[name] = pl.Series(values.to_numpy(dtype=np.float64), nan_to_null=True)
        else:
            columns[name] = words = [
                None if missing else value for value, missing in zip(values, values.isna(), strict=True)
            ]
            if not all(word is None or isinstance(word, str) for word in words):
                raise CohortError(f"{name!r} of `patients` is neither a number nor text. Leave it out of static.")
    unknown = ends.filter(~pl.col("patient").is_in(columns["patient"].implode()))["patient"].to_list()
    if unknown:
        raise CohortError(f"The file has values of {name_patients(unknown)}, but no row in `patients`. Is it whole?")
    end = pl.col(END) if hours is None else pl.min_horizontal(END, pl.lit(hours))
    return pl.DataFrame(columns).join(ends, on="patient", how="left").with_columns(end.alias(END))


def _known_ages(stays: pl.DataFrame, journal: Journal) -> pl.DataFrame:
    if "age" not in stays.columns:
        return stays
    hidden = stays.filter(pl.col("age") > HIDDEN_AGE)["patient"].to_list()
    if not hidden:
        return stays
    journal.unasked(
        Finding(
            "mimic-hidden-age",
            "warning",
            f"{counted(len(hidden), 'patient')} older than 89, whose age MIMIC-III hides, "
            f"{'is' if len(hidden) == 1 else 'are'} taken to be {OLDEST:g}. ({name_patients(hidden)})",
            count=len(hidden),
            patients=tuple(hidden),
            columns=("age",),
        )
    )
    return stays.with_columns(pl.when(pl.col("age") > HIDDEN_AGE).then(OLDEST).otherwise("age").alias("age"))


def _intervals(given: pd.DataFrame, drugs: Sequence[str], left_out: LeftOut) -> pl.DataFrame:
    """Hours in which something was given, one after the other, become one interval."""
    patients, hours = _patient(given), _hours(given)
    parts = [
        pl.DataFrame(schema={"patient": pl.String, "treatment": pl.String, "start": pl.Float64, "stop": pl.Float64})
    ]
    for name in drugs:
        said = _numbers(given[name], f"Interventions {name!r}")
        left_out.add("unsaid", name, patients.filter(said.is_nan()))
        on = said.is_not_nan() & (said > 0)
        rows = pl.DataFrame({"patient": patients, "hour": hours}).filter(on).sort("patient", "hour")
        new = (pl.col("hour").diff().over("patient") != 1.0).fill_null(value=True)
        runs = rows.group_by("patient", new.cum_sum().alias("run"), maintain_order=True).agg(
            pl.lit(name).first().alias("treatment"),
            pl.col("hour").min().alias("start"),
            (pl.col("hour").max() + 1.0).alias("stop"),
        )
        parts.append(runs.drop("run"))
    return pl.concat(parts).with_columns(rate=1.0)
