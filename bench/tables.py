"""Tables: of a page, and on the screen."""

from __future__ import annotations

from rich.console import Console
from rich.table import Table

WIDEST = 130


def markdown(heading: list[str], lines: list[list[str]]) -> str:
    return "\n".join(f"| {' | '.join(line)} |" for line in [heading, ["---"] * len(heading), *lines])


def screen_table(title: str, headings: list[str], lines: list[list[str]]) -> Table:
    shown = Table(title=title)
    for heading in headings:
        shown.add_column(heading, justify="right" if heading else "left")
    for line in lines:
        shown.add_row(*line)
    return shown


def show(shown: Table) -> None:
    """Wide enough for every name, also where there is no terminal to ask for its width."""
    console = Console()
    console.width = max(console.width, WIDEST)
    console.print(shown)
