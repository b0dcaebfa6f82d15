"""The files of a MEDS data set: found, held against the standard, and read one after the other."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import polars as pl
from polars import selectors

from counterpath.cohort.findings import CohortError, did_you_mean
from counterpath.importers.meds_spec import MedsSpec, selects

STANDARD = ("subject_id", "time", "code", "numeric_value")
BATCH = 100_000  # rows that are checked at once


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
    try:
        table = pl.read_parquet(path, columns=["subject_id", "split"]).cast({"subject_id": pl.Int64})
    except (pl.exceptions.PolarsError, OSError) as error:
        raise CohortError(
            f"{path} is damaged, or lacks the columns subject_id (a number) and split ({_in_one_line(error)}). Copy it "
            "anew, or leave split=… out."
        ) from error
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
        _check_order(path)
        chosen = scan.filter(selects(spec.all_codes))
        if subjects is not None:
            chosen = chosen.filter(pl.col("subject_id").is_in(subjects.implode()))
        wanted = [name for name in (*STANDARD, "unit", *sorted(spec.columns)) if name in names]
        events = chosen.select(*dict.fromkeys(wanted)).collect(engine="streaming")
    except (pl.exceptions.ComputeError, OSError) as error:
        raise CohortError(f"{path} is damaged, or no Parquet file ({_in_one_line(error)}). Copy it anew.") from error
    for missing, kind in (("numeric_value", pl.Float32), ("unit", pl.String)):
        if missing not in events.columns:
            events = events.with_columns(pl.lit(None, dtype=kind).alias(missing))
    # Numbers of stays and orders are floats where some are missing, and then a missing one may be NaN.
    events = events.with_columns((selectors.by_name(*spec.columns) & selectors.float()).fill_nan(None))
    if spec.stay is not None and spec.stay.number is not None:
        events = events.with_columns(_as_text(events[spec.stay.number]))
    return events.with_columns(pl.col("numeric_value").cast(pl.Float64), pl.col("unit").cast(pl.String))


def _as_text(numbers: pl.Series) -> pl.Series:
    """Numbers of stays, which some data sets write as text, and some as floats since some are missing."""
    return (numbers.cast(pl.Int64) if numbers.dtype.is_float() else numbers).cast(pl.String)


def read_shards(paths: list[Path], spec: MedsSpec, subjects: pl.Series | None) -> Iterator[pl.DataFrame]:
    """Their events, one file after the other; a subject who is in two of them is an error."""
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
        yield events


def _in_one_line(error: Exception) -> str:
    return str(error).strip().partition("\n")[0]


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
        raise OSError(str(error)) from error
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


def _check_order(path: Path) -> None:
    """No null where none may be, subjects together, their times in order.

    Batch by batch, so that memory does not grow with the rows of a file, but only with its number of subjects.
    """
    seen: set[int] = set()
    before = pl.DataFrame(schema={"subject_id": pl.Int64, "time": pl.Datetime("us")})
    for rows in _batches(path, ["subject_id", "time", "code"]):
        _require_all(path, rows)
        rows = pl.concat([before, rows.drop("code")])
        # Rows without a time, which should come first, hide no disorder of those around them.
        rows = rows.with_columns(pl.col("time").forward_fill().over("subject_id"))
        _require_order(path, rows)
        runs = rows["subject_id"].rle().struct.field("value").to_list()
        for subject in runs[before.height :]:
            if subject in seen:
                raise CohortError(
                    f"{path}: rows of subject {subject} do not stand together. Sort the file by subject_id and time."
                )
            seen.add(subject)
        before = rows.tail(1)


def _require_order(path: Path, rows: pl.DataFrame) -> None:
    is_earlier = (pl.col("time") < pl.col("time").shift()) & (pl.col("subject_id") == pl.col("subject_id").shift())
    for subject in rows.filter(is_earlier)["subject_id"]:
        raise CohortError(
            f"{path}: times of subject {subject} are not in order. Sort the file by subject_id and time, as MEDS wants "
            "it."
        )


def _batches(path: Path, columns: list[str]) -> Iterator[pl.DataFrame]:
    import pyarrow as pa
    import pyarrow.parquet as pq

    file = pq.ParquetFile(path, pre_buffer=False)  # would hold the whole file
    try:
        for batch in file.iter_batches(BATCH, columns=columns):
            yield pl.DataFrame(batch)
    except pa.ArrowException as error:
        raise OSError(str(error)) from error


def _require_all(path: Path, rows: pl.DataFrame) -> None:
    if rows["subject_id"].null_count():
        raise CohortError(f"{path} has rows without a subject_id. Remove them, or mend the file.")
    for subject in rows.filter(pl.col("code").is_null())["subject_id"]:
        raise CohortError(
            f"{path} has rows without a code, the first of subject {subject}. Remove them, or mend the file."
        )
