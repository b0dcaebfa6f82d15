"""`counterpath simulate`: a made-up study as tables, for trying things out."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any, cast

import typer


def simulate(
    folder: Annotated[Path, typer.Argument(help="Where the tables go; it must not exist yet.")],
    patients: Annotated[int, typer.Option(help="How many.")] = 1_000,
    seed: Annotated[int, typer.Option(help="The same seed gives the same study.")] = 0,
    assignment: Annotated[
        str, typer.Option(help="randomised, arms, confounded, or 'hidden confounding'.")
    ] = "randomised",
    continuous: Annotated[bool, typer.Option("--continuous", help="Visits and doses at any time of the day.")] = False,
    quiet: Annotated[bool, typer.Option("--quiet", "-q", help="Print nothing.")] = False,
) -> None:
    """Simulate tumour growth and write the tables that `counterpath check` reads.

    The truth (true volumes, parameters, other futures) is not written: a model must not see it.

    Example: `counterpath simulate tumours --patients 500 --assignment arms`
    """
    from counterpath.cohort import CohortError
    from counterpath.simulators import load_tumor_growth

    try:
        wanted = cast(Any, assignment)  # the simulator lists what there is
        cohort = load_tumor_growth(patients, seed=seed, assignment=wanted, continuous=continuous)
        cohort.save(folder)
    except CohortError as error:
        typer.secho(str(error), err=True, fg=typer.colors.RED)
        raise typer.Exit(1) from None
    if not quiet:
        typer.echo(f"{cohort}\n\nWritten to {folder}. Next: counterpath check {folder}")
