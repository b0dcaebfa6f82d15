"""A bar with loss, validation score and time left."""

from __future__ import annotations

import math
from collections.abc import Iterator
from contextlib import contextmanager

from rich.console import Console
from rich.progress import BarColumn, Progress, TaskProgressColumn, TextColumn, TimeElapsedColumn, TimeRemainingColumn

from counterpath.training.loop import EpochReport, Report


@contextmanager
def show_progress(name: str, *, shown: bool) -> Iterator[Report | None]:
    """Gives a function to be called after each epoch; None where nothing is shown."""
    if not shown:
        yield None
        return
    columns = (
        TextColumn("{task.description}"),
        BarColumn(bar_width=24),
        TaskProgressColumn(),
        TextColumn("{task.fields[scores]}"),
        TimeElapsedColumn(),
        TimeRemainingColumn(),
    )
    with Progress(*columns, console=Console(stderr=True)) as bar:
        task = bar.add_task(name, total=None, scores="compiling …")
        last, best = [""], [-math.inf]

        def report(epoch: EpochReport) -> None:
            if epoch.validation is not None:
                best[0] = max(best[0], epoch.validation) if epoch.may_be_kept else -math.inf
                last[0] = f"validation {epoch.validation:.3f}"
            if epoch.begins_anew is not None:
                bar.console.print(
                    f"Validation became worse: {epoch.epochs} epochs are too many for so few patients. Training begins "
                    f"anew with {epoch.begins_anew}."
                )
            held = f"{last[0]} (best {best[0]:.3f})" if math.isfinite(best[0]) else last[0]
            bar.update(
                task,
                total=epoch.epochs,
                completed=epoch.epoch,
                scores=f"log likelihood {epoch.log_likelihood:.3f}  {held}",
            )

        yield report
