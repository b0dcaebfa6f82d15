"""The files of a MEDS data set: found, held against the standard, and read one after the other."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import polars as pl

from counterpath.cohort.findings import CohortError, did_you_mean
from counterpath.importers.meds_spec import MedsSpec, selects

STANDARD = ("subject_id", "time", "code", "numeric_value")


def find_shards(folder: Path) -> list[Path]:
    """The data files of a data set, in the order of their names."""
    data = folder / "data"
    if not data.is_dir():
        raise CohortError(
            f"{folder} is not a MEDS data set: it has no folder `data`. Name the folder that holds `data` and "
            "`metadata`."
        )
    found = sorted(data.rglob("*.parquet"))
    if not found:
        raise CohortError(f"{data} holds no Parquet file. A MEDS data set keeps its events in data/**/*.parquet.")
    return found


def split_subjects(folder: Path, split: str) -> pl.Series:
    """Subjects of a part of the data set, such as `train`, as its metadata says."""
    path = folder / "metadata" / "subject_splits.parquet"
    if not path.is_file():
        raise CohortError(f"{path} does not exist, so nothing says who is in {split!r}. Leave split=… out.")
    table = pl.read_parquet(path)
    chosen = table.filter(pl.col("split") == split)["subject_id"]
    if not len(chosen):
        raise CohortError(f"Nobody is in {split!r}. {did_you_mean(split, table['split'].unique().sort().to_list())}")
    return chosen


def read_shard(path: Path, spec: MedsSpec, subjects: pl.Series | None) -> pl.DataFrame:
    """What the spec names, of one file; the file itself is never in memory as a whole.

    Args:
        path: The file.
        spec: What to take.
        subjects: Only of these; None for all.
    """
    try:
        scan = pl.scan_parquet(path)
        names = _checked_columns(path, scan, spec)
        _check_order(path, scan)
        chosen = scan.filter(selects(spec.all_codes))
        if subjects is not None:
            chosen = chosen.filter(pl.col("subject_id").is_in(subjects.implode()))
        wanted = [name for name in (*STANDARD, "unit", *sorted(spec.columns)) if name in names]
        events = chosen.select(*dict.fromkeys(wanted)).collect(engine="streaming")
    except (pl.exceptions.ComputeError, OSError) as error:
        raise CohortError(f"{path} is damaged, or no Parquet file ({error}). Copy it anew.") from error
    for missing, kind in (("numeric_value", pl.Float32), ("unit", pl.String)):
        if missing not in events.columns:
            events = events.with_columns(pl.lit(None, dtype=kind).alias(missing))
    return events.with_columns(pl.col("numeric_value").cast(pl.Float64))


def read_shards(paths: list[Path], spec: MedsSpec, subjects: pl.Series | None) -> Iterator[tuple[Path, pl.DataFrame]]:
    """One after the other; a subject who is in two of them is an error."""
    seen: dict[int, Path] = {}
    for path in paths:
        events = read_shard(path, spec, subjects)
        for subject in events["subject_id"].unique().sort().to_list():
            if subject in seen:
                raise CohortError(
                    f"Subject {subject} is in {seen[subject].name} and in {path.name} ({path.parent.name}). MEDS keeps "
                    "all events of a subject in one file. Write the data set anew."
                )
            seen[subject] = path
        yield path, events


def _checked_columns(path: Path, scan: pl.LazyFrame, spec: MedsSpec) -> list[str]:
    """Names of the file's columns, which are as the standard wants them."""
    try:
        import pyarrow as pa
        import pyarrow.parquet as pq
        from flexible_schema.exceptions import SchemaValidationError
        from meds import DataSchema
    except ImportError as error:
        raise CohortError("Reading MEDS needs more packages. Run: pip install 'counterpath[meds]'") from error
    try:
        empty = pq.read_schema(path).empty_table()
    except pa.ArrowException as error:
        raise OSError(str(error).splitlines()[0]) from error
    if "code" in empty.column_names and pa.types.is_large_string(empty.schema.field("code").type):
        # The same text, as polars writes it.
        empty = empty.set_column(empty.column_names.index("code"), "code", pa.array([], pa.string()))
    try:
        DataSchema.validate(empty)
    except SchemaValidationError as error:
        raise CohortError(f"{path} is not as MEDS wants it. {error}. Write the data set anew.") from error
    names = scan.collect_schema().names()
    for column in sorted(spec.columns - set(names)):
        raise CohortError(f"{path} has no column {column!r}, which the spec names. {did_you_mean(column, names)}")
    return names


def _check_order(path: Path, scan: pl.LazyFrame) -> None:
    """No null where none may be, subjects together, their times in order."""
    same = pl.col("subject_id") == pl.col("subject_id").shift()
    earlier = same & (pl.col("time") < pl.col("time").shift())
    found = (
        scan.select(
            pl.col("code").is_null().sum().alias("no_code"),
            pl.col("subject_id").is_null().sum().alias("no_subject"),
            pl.col("subject_id").filter(pl.col("code").is_null()).first().alias("without"),
            pl.col("subject_id").filter(earlier).first().alias("unsorted"),
            (~same.fill_null(value=False)).sum().alias("runs"),
            pl.col("subject_id").n_unique().alias("subjects"),
        )
        .collect(engine="streaming")
        .row(0, named=True)
    )
    if found["no_subject"]:
        raise CohortError(
            f"{path} has {found['no_subject']:,} rows without a subject_id. Remove them, or mend the file."
        )
    if found["no_code"]:
        raise CohortError(
            f"{path} has {found['no_code']:,} rows without a code, the first of subject {found['without']}. "
            "Remove them, or mend the file."
        )
    if found["unsorted"] is not None:
        raise CohortError(
            f"{path}: times of subject {found['unsorted']} are not in order. MEDS wants the rows of a subject sorted "
            "by time. Sort the file by subject_id and time."
        )
    if found["runs"] != found["subjects"]:
        raise CohortError(f"{path}: rows of a subject do not stand together. Sort the file by subject_id and time.")
