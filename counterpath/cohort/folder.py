"""A cohort as a folder: `schema.toml` with up to three tables, CSV or Parquet."""

from __future__ import annotations

import csv
import shutil
import tempfile
import tomllib
from collections.abc import Mapping
from dataclasses import replace
from os import PathLike
from pathlib import Path
from typing import Any, Literal

import polars as pl
import tomli_w
from pydantic import Field, ValidationError

from counterpath.cohort.arguments import declared_like
from counterpath.cohort.cohort import Cohort
from counterpath.cohort.declared import Columns, Declared, Repairs
from counterpath.cohort.findings import CohortError, Finding, did_you_mean
from counterpath.cohort.frames import FrameKind
from counterpath.cohort.ids import ids_from_text
from counterpath.cohort.schema import FOLLOW_UP_END, Strict
from counterpath.cohort.tables import Tables
from counterpath.cohort.tables_out import observation_table, static_table, treatment_table, write_parquet

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
    patient = described.columns.patient
    tables = _ids_alike(folder, {name: read_table(folder, name, patient) for name in TABLES}, patient)
    declared = Declared(**{name: getattr(described, name) for name in Declared.model_fields})
    try:
        cohort = Cohort.build(tables, declared, described.columns, described.repairs, frames)
    except CohortError as error:
        findings = [replace(finding, message=f"{folder}: {finding.message}") for finding in error.findings]
        raise CohortError(findings) from error
    repaired = tuple(Finding(**repair.model_dump()) for repair in described.repaired)
    return replace(cohort, repairs=repaired + cohort.repairs)


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
    except (pl.exceptions.PolarsError, OSError, UnicodeDecodeError) as error:
        reason = str(error).splitlines()[0]
        if "utf-8" in reason:
            raise CohortError(f"{found[0]} is not UTF-8. Save it as UTF-8. ({reason})") from error
        raise CohortError(f"{found[0]} cannot be read: {reason}") from error
    return table.with_columns(pl.selectors.float().fill_nan(None))


def _read_csv(path: Path, patient: str) -> pl.DataFrame:
    if path.stat().st_size == 0:
        raise CohortError(f"{path} is empty. Give it a header and rows, or remove it.")
    table = pl.read_csv(
        path,
        separator=_separator(path),
        null_values=MISSING,
        infer_schema_length=None,
        schema_overrides={patient: pl.String},
        encoding="utf8",
    )
    return table.with_columns(ids_from_text(table[patient])) if patient in table.columns else table


def _separator(path: Path) -> str:
    """The separator of the header: a comma, or without any a semicolon or tab. Two columns of one name are an error."""
    with path.open(encoding="utf-8-sig", newline="") as file:
        header = file.readline()
    separator = "," if "," in header else next((mark for mark in ";\t" if mark in header), ",")
    names = next(csv.reader([header], delimiter=separator), [])
    twice = next((name for name in names if names.count(name) > 1), None)
    if twice is not None:
        which = f"called {twice!r}" if twice else "without a name"
        raise CohortError(f"{path} has two columns {which}. Rename or remove one.")
    return separator


def _ids_alike(folder: Path, tables: Mapping[str, pl.DataFrame | None], patient: str) -> Tables:
    """A CSV file knows no types: whole numbers are text where another table has ids that are."""
    kinds = {name: t[patient].dtype for name, t in tables.items() if t is not None and patient in t.columns}
    if pl.String in kinds.values():
        from_csv = [name for name in kinds if (folder / f"{name}.csv").exists()]
        tables = {
            name: t.with_columns(pl.col(patient).cast(pl.String)) if t is not None and name in from_csv else t
            for name, t in tables.items()
        }
    observations = tables["observations"]
    assert observations is not None  # read_table says so, if it is missing
    return Tables(observations, tables["treatments"], tables["static"])


def write_cohort(cohort: Cohort, folder: str | PathLike[str], *, overwrite: bool = False) -> None:
    """Write a cohort as Parquet, whole or not at all."""
    folder = Path(folder)
    if not len(cohort):
        raise CohortError("A cohort without patients cannot be saved.")
    if folder.exists() and not overwrite:
        raise CohortError(f"{str(folder)!r} exists. Choose another name, or pass overwrite=True.")
    if folder.exists() and not _may_be_replaced(folder):
        raise CohortError(f"{str(folder)!r} holds other things than a cohort and will not be replaced.")
    folder.parent.mkdir(parents=True, exist_ok=True)
    partial = Path(tempfile.mkdtemp(prefix=f".{folder.name}-", dir=folder.parent))
    try:
        write_parquet(observation_table(cohort), partial / "observations.parquet")
        write_parquet(static_table(cohort), partial / "static.parquet")
        if cohort.events.rows:
            write_parquet(treatment_table(cohort), partial / "treatments.parquet")
        (partial / SCHEMA_FILE).write_text(schema_text(_stored(cohort)), encoding="utf-8")
        partial.chmod(0o755)
        if folder.exists():
            old = Path(tempfile.mkdtemp(prefix=f".{folder.name}-", dir=folder.parent))
            folder.replace(old)
            try:
                partial.replace(folder)
            except OSError:
                old.replace(folder)
                raise
            shutil.rmtree(old)
        else:
            partial.replace(folder)
    finally:
        shutil.rmtree(partial, ignore_errors=True)


def _may_be_replaced(folder: Path) -> bool:
    """Only an empty folder, or one with nothing in it but a cohort."""
    if not folder.is_dir():
        return False
    inside = {path.name for path in folder.iterdir()}
    ours = {SCHEMA_FILE, *(f"{name}{suffix}" for name in TABLES for suffix in (".csv", ".parquet"))}
    return not inside or (SCHEMA_FILE in inside and inside <= ours)


def _stored(cohort: Cohort) -> CohortFile:
    schema = cohort.schema
    columns = {"patient": schema.patient_column, "time": schema.time_column}
    if {"variable", "value"} <= {v.name for v in schema.variables}:  # the stored table is wide all the same
        columns |= {"variable": "\0variable", "value": "\0value"}
    return CohortFile(
        **dict(declared_like(schema, [], FOLLOW_UP_END, "as given")),
        columns=Columns(**columns),
        repaired=tuple(
            RecordedRepair.model_validate({f: getattr(r, f) for f in RecordedRepair.model_fields})
            for r in cohort.repairs
        ),
    )


def schema_text(described: CohortFile) -> str:
    """`schema.toml` as text; what has its usual value is left out."""
    content = {"format": described.format} | described.model_dump(exclude_none=True, exclude_defaults=True)
    return tomli_w.dumps(content, multiline_strings=False)
