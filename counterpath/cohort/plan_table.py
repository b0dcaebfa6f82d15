"""A plan as a table: the columns of a treatments table, with `start` counted from now."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import polars as pl
from pydantic import ValidationError

from counterpath.cohort.findings import PlanError, did_you_mean
from counterpath.cohort.frames import to_polars
from counterpath.cohort.ids import ids_from_text
from counterpath.cohort.plan import Plan, PlannedDose, PlannedInfusion
from counterpath.cohort.schema import in_plain_words
from counterpath.cohort.units import TimeUnit

OWN_NAME = "patient"  # of the column, in tables that plans write themselves


def read_plan_table(table: Any, *, patient: str, time_unit: TimeUnit | None) -> Plan:
    """A plan from a frame, or from a CSV, Parquet or JSON file."""
    if isinstance(table, (str, Path)):
        path = Path(table)
        if path.suffix == ".json":
            return Plan.from_json(path.read_text(encoding="utf-8"))
        table = _read_parquet(path) if path.suffix == ".parquet" else _read_csv(path, patient)
    frame, _ = to_polars(table, "plan")
    if patient not in frame.columns:
        patient = OWN_NAME
    start = "start" if "start" in frame.columns else "time"
    for column in ("treatment", start):
        if column not in frame.columns:
            raise PlanError(f"The plan has no column {column!r}. {did_you_mean(column, frame.columns)}")
    known = {"treatment", start, "stop", "dose", "rate", "time_unit", patient}
    strange = [column for column in frame.columns if column not in known]
    if strange:
        raise PlanError(f"The plan has a column {strange[0]!r}. {did_you_mean(strange[0], sorted(known))}")
    units: list[Any] = frame["time_unit"].unique().to_list() if "time_unit" in frame.columns else [time_unit]
    if len(units) != 1:
        raise PlanError(f"The plan mixes time units ({', '.join(map(str, units))}). Use one.")
    doses, infusions = [], []
    for number, row in enumerate(frame.iter_rows(named=True), 1):
        is_infusion = row.get("stop") is not None or row.get("rate") is not None
        if is_infusion and row.get("dose") is not None:
            raise PlanError(f"Row {number} of the plan has a dose and a stop or rate. An infusion takes a rate.")
        keys = ("treatment", "patient", *(("stop", "rate") if is_infusion else ("dose",)))
        content = {key: row.get(patient if key == "patient" else key) for key in keys}
        content["start" if is_infusion else "time"] = row[start]
        try:
            if is_infusion:
                infusions.append(PlannedInfusion.model_validate(content))
            else:
                doses.append(PlannedDose.model_validate(content))
        except ValidationError as error:
            raise PlanError(f"Row {number} of the plan: {in_plain_words(error)}") from error
    return Plan.checked(doses=tuple(doses), infusions=tuple(infusions), time_unit=units[0])


def write_plan_table(plan: Plan) -> pl.DataFrame:
    """A row per dose or infusion; columns that nobody needs are left out."""
    if plan.followed is not None or plan.keeps_running:
        raise PlanError("A plan that continues or repeats what patients had has no table; resolve it first.")
    if plan.untreated:
        raise PlanError("Patients who are planned to receive nothing have no row in a table. Write JSON instead.")
    for infusion in plan.infusions:
        if infusion.stop is None and infusion.rate is None:
            raise PlanError(f"In a table the infusion of {infusion.treatment!r} would be a dose. Give its rate.")
    rows = [{**dose.model_dump(), "start": dose.time, "stop": None, "rate": None} for dose in plan.doses]
    rows += [{**infusion.model_dump(), "dose": None} for infusion in plan.infusions]
    columns = ("patient", "treatment", "start", "stop", "dose", "rate")
    frame = pl.DataFrame({key: [row[key] for row in rows] for key in columns}, strict=False)
    frame = frame.with_columns(pl.lit(plan.time_unit).alias("time_unit"))
    if not rows:
        frame = frame.select(pl.col("treatment").cast(pl.String), pl.col("start").cast(pl.Float64))
    return frame.select(c for c in frame.columns if frame[c].null_count() < max(len(rows), 1))


def _read_parquet(path: Path) -> pl.DataFrame:
    try:
        return pl.read_parquet(path)
    except pl.exceptions.PolarsError as error:
        raise PlanError(f"{path} cannot be read as a plan: {str(error).splitlines()[0]}") from error


def _read_csv(path: Path, patient: str) -> pl.DataFrame:
    try:
        table = pl.read_csv(
            path, infer_schema_length=None, schema_overrides=dict.fromkeys((patient, OWN_NAME), pl.String)
        )
    except pl.exceptions.PolarsError as error:
        raise PlanError(f"{path} cannot be read as a plan: {str(error).splitlines()[0]}") from error
    return table.with_columns(ids_from_text(table[name]) for name in {patient, OWN_NAME} & set(table.columns))
