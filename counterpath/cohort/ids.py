"""Patient ids: integers or text, one kind in all tables."""

from __future__ import annotations

import numpy as np
import polars as pl
from jaxtyping import Int64

from counterpath.cohort.findings import CohortError, Finding, counted


def read_ids(frame: pl.DataFrame, column: str, table: str) -> pl.Series:
    """Patient ids as Int64 or text."""
    ids = frame[column]
    if ids.null_count():
        rows, first = counted(ids.null_count(), "row"), ids.is_null().arg_true()[0] + 1
        raise CohortError(
            [
                Finding(
                    "no_patient",
                    "error",
                    f"{rows} of the {table} table without a patient (the first is row {first}).",
                    f"Fill in column {column!r}, or remove the rows.",
                    columns=(column,),
                )
            ]
        )
    if (
        ids.dtype.is_float() and (ids == ids.round()).all() and (ids.abs() < 2.0**53).all()
    ):  # pandas makes integers with gaps into floats
        return ids.cast(pl.Int64)
    if ids.dtype.is_integer():
        if ids.dtype == pl.UInt64 and (ids > np.iinfo(np.int64).max).any():
            raise CohortError(f"Patients in column {column!r} of the {table} table exceed 64 bits. Make them text.")
        return ids.cast(pl.Int64)
    if ids.dtype in (pl.String, pl.Categorical, pl.Enum):
        return ids.cast(pl.String)
    raise CohortError(f"Patients in column {column!r} of the {table} table are {ids.dtype}. Use integers or text.")


def ids_from_text(ids: pl.Series) -> pl.Series:
    """Ids of a CSV file: '007' stays text, '7' is a number."""
    is_number = ids.drop_nulls().str.contains(r"^(0|-?[1-9]\d{0,17})$").all()
    return ids.cast(pl.Int64) if is_number else ids


def require_one_kind_of_id(ids: dict[str, pl.Series], column: str) -> None:
    """An error where one table has integers and another text."""
    first, *others = ids.items()
    for table, series in others:
        if series.dtype != first[1].dtype:
            raise CohortError(
                [
                    Finding(
                        "mixed_ids",
                        "error",
                        f"Patient ids are {_kind(first[1])} in the {first[0]} table (such as {first[1][0]!r}) and "
                        f"{_kind(series)} in the {table} table (such as {series[0]!r}).",
                        "Make them one kind before, so that 7 and '007' cannot be confused.",
                        columns=(column,),
                    )
                ]
            )


def _kind(ids: pl.Series) -> str:
    return "text" if ids.dtype == pl.String else "integers"


def number_of(ids: pl.Series, patients: pl.Series) -> Int64[np.ndarray, " rows"]:
    """The position of each id among `patients`; -1 where it is not there."""
    numbers = pl.DataFrame({"id": patients, "number": np.arange(len(patients), dtype=np.int64)})
    joined = ids.to_frame("id").join(numbers, on="id", how="left", maintain_order="left")
    return joined["number"].fill_null(-1).to_numpy()
