"""`counterpath simulate`: a made-up study as tables, for trying things out."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any, cast

import typer

from counterpath.cli.voice import AsJson, Quiet, speaking


def simulate(
    folder: Annotated[Path, typer.Argument(help="Where the tables go; it must not exist yet.")],
    patients: Annotated[int, typer.Option(help="How many.")] = 1_000,
    seed: Annotated[int, typer.Option(min=0, help="The same seed gives the same study.")] = 0,
    assignment: Annotated[
        str, typer.Option(help="randomised, arms, confounded, or 'hidden confounding'.")
    ] = "randomised",
    continuous: Annotated[bool, typer.Option("--continuous", help="Visits and doses at any time of the day.")] = False,
    quiet: Quiet = False,
    as_json: AsJson = False,
) -> None:
    """Simulate tumour growth and write the tables that `counterpath check` reads.

    The truth (true volumes, parameters, other futures) is not written: a model must not see it.

    Example: `counterpath simulate tumours --patients 500 --assignment arms`
    """
    with speaking(quiet=quiet, as_json=as_json) as voice:
        from counterpath.simulators import load_tumor_growth

        if folder.exists():
            raise FileExistsError(f"{folder} is there already. Choose another name.")
        wanted = cast(Any, assignment)  # the simulator lists what there is
        cohort = load_tumor_growth(patients, seed=seed, assignment=wanted, continuous=continuous)
        cohort.save(folder)
        voice.say(f"{cohort}\n")
        voice.result(f"Written to {folder}. Next: counterpath check {folder}", folder=str(folder), patients=len(cohort))
