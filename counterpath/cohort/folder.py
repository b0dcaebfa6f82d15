"""A cohort as a folder: `schema.toml` with up to three tables, CSV or Parquet."""

from __future__ import annotations

import shutil
import tempfile
import tomllib
from dataclasses import replace
from os import PathLike
from pathlib import Path
from typing import Any, Literal

import polars as pl
import tomli_w
from pydantic import Field, ValidationError

from counterpath.cohort.cohort import Cohort
from counterpath.cohort.declared import Columns, Declared, DeclaredVariable, Repairs
from counterpath.cohort.findings import CohortError, Finding, did_you_mean
from counterpath.cohort.frames import FrameKind
from counterpath.cohort.schema import FOLLOW_UP_END, TIME_ORIGIN, Strict
from counterpath.cohort.tables import Tables

SCHEMA_FILE = "schema.toml"
TABLES = ("observations", "treatments", "static")
MISSING = ["", "NA", "N/A", "NaN", "nan", "null", "NULL", "."]


class RecordedRepair(Strict):
    """A repair made when the cohort was first read, kept so that it stays visible."""

    code: str
    severity: Literal["error", "warning", "note"]
    message: str
    remedy: str = ""
    count: int = 1
    patients: tuple[int | str, ...] = ()
    columns: tuple[str, ...] = ()


class CohortFile(Declared):
    """The content of `schema.toml`."""

    format: Literal[1] = 1
    columns: Columns = Columns()
    repairs: Repairs = Repairs()
    repaired: tuple[RecordedRepair, ...] = Field(default=())


def read_cohort(folder: str | PathLike[str], *, frames: FrameKind = "polars") -> Cohort:
    """Read a folder with `schema.toml` and its tables.

    Args:
        folder: It holds `observations.csv` or `.parquet`, and where there are any `treatments` and `static`.
        frames: The kind of frame that the cohort gives back: `polars`, `pandas` or `pyarrow`.
    """
    folder = Path(folder)
    described = read_schema(folder)
    tables = Tables(*(read_table(folder, name, described.columns.patient) for name in TABLES))
    declared = Declared(**{name: getattr(described, name) for name in Declared.model_fields})
    try:
        cohort = Cohort.build(tables, declared, described.columns, described.repairs, frames)
    except CohortError as error:
        findings = [replace(finding, message=f"{folder}: {finding.message}") for finding in error.findings]
        raise CohortError(findings) from error
    repaired = tuple(Finding(**repair.model_dump()) for repair in described.repaired)
    cohort = replace(cohort, repairs=repaired + cohort.repairs)
    if described.time_zero == "as given" and tables.static is not None and TIME_ORIGIN in tables.static.columns:
        cohort = replace(cohort, origins=tables.static[TIME_ORIGIN].alias(""))
    return cohort


def read_schema(folder: Path) -> CohortFile:
    """The folder's `schema.toml`, or an error that points at the key."""
    path = folder / SCHEMA_FILE
    if not folder.is_dir():
        raise CohortError(f"There is no folder {str(folder)!r}.")
    if not path.exists():
        raise CohortError(
            f"There is no {SCHEMA_FILE} in {str(folder)!r}. Write one: counterpath check --draft {folder}"
        )
    try:
        return CohortFile.model_validate(tomllib.loads(path.read_text(encoding="utf-8")))
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
        raise CohortError(f"{path} is not TOML: {error}.") from error
    except ValidationError as error:
        first = error.errors()[0]
        key = ".".join(str(part) for part in first["loc"])
        hint = f" {did_you_mean(key, CohortFile.model_fields)}" if first["type"] == "extra_forbidden" else ""
        raise CohortError(f"{path}, key {key!r}: {first['msg']}.{hint}") from error


def read_table(folder: Path, name: str, patient: str) -> Any:
    """One of the folder's tables; None where there is no such file."""
    found = [path for suffix in (".parquet", ".csv") if (path := folder / f"{name}{suffix}").exists()]
    if len(found) > 1:
        raise CohortError(f"{folder} has {found[0].name} and {found[1].name}. Keep one.")
    if not found:
        if name == "observations":
            raise CohortError(f"{folder} has no observations.csv and no observations.parquet.")
        return None
    try:
        table = pl.read_parquet(found[0]) if found[0].suffix == ".parquet" else _read_csv(found[0], patient)
    except (pl.exceptions.PolarsError, OSError) as error:
        raise CohortError(f"{found[0]} cannot be read: {str(error).splitlines()[0]}") from error
    return table.with_columns(pl.selectors.float().fill_nan(None))


def _read_csv(path: Path, patient: str) -> pl.DataFrame:
    if path.stat().st_size == 0:
        raise CohortError(f"{path} is empty.")
    table = pl.read_csv(
        path,
        null_values=MISSING,
        try_parse_dates=True,
        infer_schema_length=None,
        schema_overrides={patient: pl.String},
        encoding="utf8",
    )
    if patient in table.columns:  # '007' stays text; '7' is a number
        ids = table[patient]
        if ids.drop_nulls().str.contains(r"^(0|-?[1-9]\d{0,17})$").all():
            table = table.with_columns(ids.cast(pl.Int64))
    return table


def write_cohort(cohort: Cohort, folder: str | PathLike[str], *, overwrite: bool = False) -> None:
    """Write a cohort as Parquet, whole or not at all."""
    folder = Path(folder)
    if folder.exists() and not overwrite:
        raise CohortError(f"{str(folder)!r} exists. Choose another name, or pass overwrite=True.")
    if folder.exists() and any(folder.iterdir()) and not (folder / SCHEMA_FILE).exists():
        raise CohortError(f"{str(folder)!r} is not a cohort's folder and will not be replaced.")
    folder.parent.mkdir(parents=True, exist_ok=True)
    partial = Path(tempfile.mkdtemp(prefix=f".{folder.name}-", dir=folder.parent))
    try:
        cohort.observation_table().write_parquet(partial / "observations.parquet")
        cohort.static_table().write_parquet(partial / "static.parquet")
        if cohort.events.rows:
            cohort.treatment_table().write_parquet(partial / "treatments.parquet")
        (partial / SCHEMA_FILE).write_text(schema_text(_stored(cohort)), encoding="utf-8")
        partial.chmod(0o755)
        if folder.exists():
            old = Path(tempfile.mkdtemp(prefix=f".{folder.name}-", dir=folder.parent))
            folder.replace(old)
            partial.replace(folder)
            shutil.rmtree(old)
        else:
            partial.replace(folder)
    finally:
        shutil.rmtree(partial, ignore_errors=True)


def _stored(cohort: Cohort) -> CohortFile:
    schema = cohort.schema
    return CohortFile(
        time_unit=schema.time_unit,
        outcomes=tuple(DeclaredVariable.of(v) for v in schema.outcomes),
        covariates=tuple(DeclaredVariable.of(v) for v in schema.covariates),
        static=tuple(DeclaredVariable.of(v) for v in schema.static),
        treatments=schema.treatments,
        randomised=schema.randomised,
        follow_up_end=FOLLOW_UP_END,
        time_zero="as given",
        columns=Columns(patient=schema.patient_column, time=schema.time_column),
        repaired=tuple(
            RecordedRepair.model_validate({f: getattr(r, f) for f in RecordedRepair.model_fields})
            for r in cohort.repairs
        ),
    )


def schema_text(described: CohortFile) -> str:
    """`schema.toml` as text; what has its usual value is left out."""
    content = {"format": described.format} | described.model_dump(exclude_none=True, exclude_defaults=True)
    return tomli_w.dumps(content, multiline_strings=False)
