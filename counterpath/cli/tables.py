"""Tables for the terminal."""

from __future__ import annotations

from rich.table import Table

from counterpath.cohort import Cohort
from counterpath.cohort.describe import describe_cohort

COLUMNS = {
    "name": "",
    "role": "role",
    "values": "values",
    "patients": "patients",
    "mean": "mean",
    "lowest": "lowest",
    "highest": "highest",
    "most_common": "mostly",
}


def description_table(cohort: Cohort) -> Table:
    """What `describe` tells, in a width that fits a terminal."""
    frame = describe_cohort(cohort)
    table = Table(box=None, header_style="bold", padding=(0, 1), pad_edge=False)
    for name, title in COLUMNS.items():
        table.add_column(title, justify="right" if frame.schema[name].is_numeric() else "left", no_wrap=name == "name")
    for row in frame.iter_rows(named=True):
        table.add_row(*(_cell(name, row[name]) for name in COLUMNS))
    return table


def _cell(name: str, value: object) -> str:
    if value is None:
        return ""
    if isinstance(value, float):
        return f"{value:.0%}" if name == "patients" else f"{value:.4g}"
    return f"{value:,}" if isinstance(value, int) else str(value)
