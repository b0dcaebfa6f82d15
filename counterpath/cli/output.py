"""Files that commands write: whole or not at all, and never over another without being told."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

import typer

if TYPE_CHECKING:
    import polars as pl
    from rich.table import Table

SUFFIXES = (".csv", ".parquet", ".json")
ROWS_SHOWN = 12


def may_write(path: Path | None, *, overwrite: bool, suffixes: tuple[str, ...] = SUFFIXES) -> None:
    """Refuse before any work is done."""
    if path is None:
        return
    if path.suffix not in suffixes:
        raise typer.BadParameter(f"{path.name} must end in {' or '.join(suffixes)}.")
    if path.exists() and not overwrite:
        raise FileExistsError(f"{path} is there already. Choose another name, or add --overwrite.")
    path.parent.mkdir(parents=True, exist_ok=True)


@contextmanager
def replacing(path: Path) -> Iterator[Path]:
    """A file to write to, which takes its place once it is whole."""
    new = path.with_name(f".{path.stem}.new{path.suffix}")  # pictures go by their suffix
    try:
        yield new
        new.replace(path)
    finally:
        new.unlink(missing_ok=True)


def write_frame(frame: pl.DataFrame, path: Path) -> None:
    """A table in the format that its name asks for."""
    from counterpath.cohort.tables_out import write_parquet

    with replacing(path) as new:
        if path.suffix == ".csv":
            frame.write_csv(new)
        elif path.suffix == ".parquet":
            write_parquet(frame, new)
        else:
            frame.write_json(new)


def first_rows(frame: pl.DataFrame) -> Table:
    """The beginning of a table, for the terminal."""
    from rich.table import Table

    table = Table(box=None, header_style="bold", padding=(0, 1), pad_edge=False)
    for name, kind in frame.schema.items():
        table.add_column(name.replace("_", " "), justify="right" if kind.is_numeric() else "left")
    for row in frame.head(ROWS_SHOWN).iter_rows():
        table.add_row(*(_cell(value) for value in row))
    if len(frame) > ROWS_SHOWN:
        table.caption = f"{ROWS_SHOWN} of {len(frame):,} rows"
        table.caption_justify = "left"
    return table


def _cell(value: object) -> str:
    if value is None:
        return ""
    return f"{value:.4g}" if isinstance(value, float) else str(value)
