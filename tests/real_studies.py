"""Small real dosing studies, read from where COUNTERPATH_DATA points."""

from __future__ import annotations

import os
from pathlib import Path

import polars as pl
import pytest

import counterpath as cp


def folder() -> Path:
    """With the tables, or the test is skipped with the reason."""
    place = os.environ.get("COUNTERPATH_DATA")
    if not place:
        pytest.skip(
            "COUNTERPATH_DATA is not set: it names the folder with pkpd/*.csv of the R packages nlme and survival"
        )
    return Path(place) / "pkpd"


def read_csv(name: str) -> pl.DataFrame:
    return pl.read_csv(folder() / name, null_values=["NA", ""], infer_schema_length=None).drop("rownames")


def read_quinidine() -> cp.Cohort:
    # 249 rows give the interval of a regular dosing of which only this dose was recorded ("steady state" in NONMEM).
    # They stay the one dose that was recorded, with the interval as a covariate: no dose is made up.
    return cp.Cohort.from_frame(
        read_csv("nlme_Quinidine.csv"),
        patient="Subject",
        time="time",
        outcome="conc",
        covariates=["interval", "Age", "Weight", "Smoke", "Ethanol", "Heart", "Creatinine", "glyco"],
        treatments={"quinidine": "dose"},
        static=["Height", "Race"],
        time_unit="hour",
        bounds={"conc": (0.0, None)},
        units={"conc": "mg/L", "quinidine": "mg"},
    )


def read_remifentanil() -> cp.Cohort:
    return cp.Cohort.from_frame(
        read_csv("nlme_Remifentanil.csv"),
        patient="ID",
        time="Time",
        outcome="conc",
        infusions={"remifentanil": "Rate"},
        static=["Age", "Sex", "Ht", "Wt", "BSA", "LBM"],
        time_unit="minute",
    )
