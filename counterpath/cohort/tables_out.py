"""A cohort's columns as the tables that a person would recognise."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
import polars as pl

from counterpath.cohort.schema import FOLLOW_UP_END, TIME_ORIGIN
from counterpath.cohort.values import as_column

if TYPE_CHECKING:
    from counterpath.cohort.cohort import Cohort


def observation_table(cohort: Cohort) -> pl.DataFrame:
    """What was measured: a row per patient and time, a column per variable."""
    schema, records = cohort.schema, cohort.records
    keys = [
        cohort.patients.gather(records.patient_of_row).alias(schema.patient_column),
        pl.Series(schema.time_column, records.times),
    ]
    return pl.DataFrame(keys + [as_column(v, records.values[:, j]) for j, v in enumerate(schema.variables)])


def treatment_table(cohort: Cohort) -> pl.DataFrame:
    """What was given: a row per dose or interval. A rate without a stop is still running."""
    events, schema = cohort.events, cohort.schema
    names = pl.Series([treatment.name for treatment in schema.treatments], dtype=pl.String)
    columns = {
        "start": events.start,
        "stop": np.where(np.isfinite(events.stop), events.stop, np.nan),
        "dose": np.where(events.is_dose, events.amount, np.nan),
        "rate": np.where(events.is_dose, np.nan, events.amount),
    }
    keys = [
        cohort.patients.gather(events.patient_of_row).alias(schema.patient_column),
        names.gather(events.treatment).alias("treatment"),
    ]
    return pl.DataFrame(keys + [pl.Series(name, column).fill_nan(None) for name, column in columns.items()])


def static_table(cohort: Cohort) -> pl.DataFrame:
    """A row per patient, with end of follow-up and time zero."""
    columns = [cohort.patients.alias(cohort.schema.patient_column)]
    columns += [as_column(v, cohort.static_values[:, j]) for j, v in enumerate(cohort.schema.static)]
    columns += [pl.Series(FOLLOW_UP_END, cohort.follow_up_end).fill_nan(None), cohort.origins.alias(TIME_ORIGIN)]
    return pl.DataFrame(columns)


def write_parquet(frame: pl.DataFrame, path: Path) -> None:
    """A table to a file; a disk that refuses it is an error of the system, as everywhere else."""
    try:
        frame.write_parquet(path)
    except pl.exceptions.PolarsError as error:
        raise OSError(f"{path} could not be written: {error}.") from error
