"""From the hourly file of MIMIC-Extract to a cohort."""

from __future__ import annotations

import warnings
from collections.abc import Collection, Sequence
from dataclasses import replace
from os import PathLike
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import polars as pl

from counterpath.cohort import Cohort
from counterpath.cohort.findings import CohortError, Finding, counted, did_you_mean, name_patients
from counterpath.cohort.journal import Journal
from counterpath.importers.left_out import LeftOut, those_there

if TYPE_CHECKING:
    import pandas as pd

STAY = ("subject_id", "hadm_id", "icustay_id")
HOUR = "hours_in"
VARIABLE, AGGREGATION = "LEVEL2", "Aggregation Function"
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


def read_mimic_extract(
    path: str | PathLike[str],
    *,
    outcome: str = OUTCOME,
    covariates: Sequence[str] = COVARIATES,
    treatments: Sequence[str] = TREATMENTS,
    static: Sequence[str] = STATIC,
    hours: float | None = None,
) -> Cohort:
    """Stays of an hourly file that MIMIC-Extract wrote, such as `all_hourly_data.h5`; the paper's variables by default.

    Only what was measured becomes a record: the file has a row for every hour, and most of its values are missing. The
    mean of an hour is known when the hour is over: what was measured from hour 3 to 4 is a record of time 4, and what
    was given in that hour comes before it. Open files from people you trust only: the format can carry code.

    Args:
        path: Of the file.
        outcome: What is to be predicted.
        covariates: What else is measured. Those that the file lacks are left out, and named.
        treatments: Columns of `interventions`, which say hour by hour whether something was given.
        static: Columns of `patients`.
        hours: Of each stay, at most so many; default: all.
    """
    if hours is not None and not hours > 0:
        raise CohortError(f"hours={hours} leaves nothing of a stay. Use more than 0.")
    measured, given, people = _tables(Path(path))
    journal, left_out = Journal(), LeftOut("mimic")
    known = list(measured.columns.get_level_values(VARIABLE))
    if outcome not in known:
        raise CohortError(f"{path} has no column {outcome!r}, the outcome. {did_you_mean(outcome, known)}")
    variables = _found([outcome, *covariates], known, journal)
    drugs, traits = _found(treatments, given.columns, journal), _found(static, people.columns, journal)
    stays = _stays(people, traits, _last_hours(measured, given), hours)
    ends = stays.select("patient", END)
    observations = _observations(measured, variables).join(ends, on="patient").filter(pl.col("time") <= pl.col(END))
    seen = pl.col("patient").is_in(observations.filter(pl.col("variable") == outcome)["patient"].unique().implode())
    left_out.add("no-outcome", "", stays.filter(~seen)["patient"].to_list())
    observations = observations.filter(seen)
    variables = _found(variables, set(observations["variable"]), journal, "Nobody has a value of")
    intervals = _intervals(given, drugs).join(ends, on="patient").filter(seen & (pl.col("start") < pl.col(END)))
    intervals = intervals.with_columns(pl.min_horizontal("stop", END).alias("stop"))
    _found(drugs, set(intervals["treatment"]), journal, "Nobody was given")
    cohort = Cohort.from_tables(
        observations.drop(END),
        intervals.drop(END) if intervals.height else None,
        _known_ages(stays.filter(seen), journal),
        outcome=outcome,
        covariates=variables[1:],
        time_unit="hour",
        time_zero="as given",
        follow_up_end=END,
        stay_separator=BETWEEN,
    )
    return replace(cohort, repairs=(*left_out.said(), *journal.findings, *cohort.repairs))


def _tables(path: Path) -> tuple[pd.DataFrame, pd.DataFrame, pd.DataFrame]:
    """Means of every hour, interventions, and patients; a layout that is not known is refused."""
    try:
        import pandas as pd
        import tables  # noqa: F401 (pandas reads HDF5 by it)
    except ImportError as error:
        raise ImportError(
            "Files of MIMIC-Extract need pandas and PyTables: pip install 'counterpath[mimic]'."
        ) from error
    if not path.exists():
        raise FileNotFoundError(f"There is no file {path}.")
    try:
        store = pd.HDFStore(path, "r")
    except Exception as error:  # PyTables has errors of its own for each way in which a file is none
        why = str(error).strip().splitlines()[-1].strip() if str(error).strip() else type(error).__name__
        raise CohortError(f"{path} is not an HDF5 file that pandas can read ({why}).") from error
    with store, warnings.catch_warnings():
        warnings.simplefilter("ignore")  # about how old versions of pandas wrote the file
        keys = [key.removeprefix("/") for key in store.keys() if key.count("/") == 1]  # noqa: SIM118 (a store is no dictionary)
        means = "vitals_labs" if "vitals_labs" in keys and "vitals_labs_mean" not in keys else "vitals_labs_mean"
        for key in (means, "interventions", "patients"):
            if key not in keys:
                raise CohortError(
                    _unknown(path, f"no table {key!r}, but {', '.join(map(repr, keys)) or 'none at all'}")
                )
        tables_of_file: list[Any] = [store[key] for key in (means, "interventions", "patients")]
    measured, given, people = tables_of_file
    for name, table, levels in (
        (means, measured, (*STAY, HOUR)),
        ("interventions", given, (*STAY, HOUR)),
        ("patients", people, STAY),
    ):
        if tuple(table.index.names) != levels:
            raise CohortError(_unknown(path, f"in {name!r} an index of {', '.join(map(str, table.index.names))}"))
    if list(measured.columns.names) != [VARIABLE, AGGREGATION]:
        seen = ", ".join(map(str, measured.columns.names))
        raise CohortError(_unknown(path, f"in {means!r} columns by {seen}, not by {VARIABLE} and {AGGREGATION}"))
    kinds = measured.columns.get_level_values(AGGREGATION)
    if "mean" not in kinds:
        raise CohortError(_unknown(path, f"in {means!r} no means, but {', '.join(sorted(set(kinds)))}"))
    return measured.loc[:, kinds == "mean"], given, people


def _unknown(path: Path, seen: str) -> str:
    return (
        f"{path} has a layout that is not known: {seen}. Known is what MIMIC-Extract writes by default: "
        "`vitals_labs_mean` with variables grouped by LEVEL2, `interventions` and `patients`."
    )


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
        values = pl.Series(measured[(name, "mean")].to_numpy(dtype=np.float64))
        rows = pl.DataFrame({"patient": patients, "time": ends, "variable": [name] * len(ends), "value": values})
        parts.append(rows.filter(pl.col("value").is_not_nan()))
    return pl.concat(parts)


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


def _intervals(given: pd.DataFrame, drugs: Sequence[str]) -> pl.DataFrame:
    """Hours in which something was given, one after the other, become one interval."""
    patients, hours = _patient(given), _hours(given)
    parts = [
        pl.DataFrame(schema={"patient": pl.String, "treatment": pl.String, "start": pl.Float64, "stop": pl.Float64})
    ]
    for name in drugs:
        on = pl.Series(given[name].to_numpy(dtype=np.float64) > 0)
        rows = pl.DataFrame({"patient": patients, "hour": hours}).filter(on).sort("patient", "hour")
        new = (pl.col("hour").diff().over("patient") != 1.0).fill_null(value=True)
        runs = rows.group_by("patient", new.cum_sum().alias("run"), maintain_order=True).agg(
            pl.lit(name).first().alias("treatment"),
            pl.col("hour").min().alias("start"),
            (pl.col("hour").max() + 1.0).alias("stop"),
        )
        parts.append(runs.drop("run"))
    return pl.concat(parts).with_columns(rate=1.0)
