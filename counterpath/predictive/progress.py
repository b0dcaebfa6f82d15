"""Progress of a prediction that takes long."""

from __future__ import annotations

from collections.abc import Iterator

from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn

from counterpath.predictive.law import Law


def patients_done(laws: Iterator[tuple[Law, ...]], patients: int, *, shown: bool) -> Iterator[tuple[Law, ...]]:
    """The same laws, with a bar on a terminal that goes away at the end; none where the first of them are all."""
    first = next(laws)
    yield first
    if first[0].number == patients:
        return
    console = Console(stderr=True)
    columns = (TextColumn("predicting"), BarColumn(), MofNCompleteColumn(), TimeRemainingColumn())
    with Progress(*columns, console=console, transient=True, disable=not (shown and console.is_terminal)) as progress:
        task = progress.add_task("", total=patients, completed=first[0].number)
        for done in laws:
            yield done
            progress.update(task, advance=done[0].number)
