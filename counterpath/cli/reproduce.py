"""`counterpath reproduce`: the paper's experiments."""

from __future__ import annotations

import shlex
from pathlib import Path
from typing import Annotated

import typer

from counterpath.cli.arguments import read_numbers
from counterpath.cli.voice import AsJson, Quiet, speaking


def reproduce(
    experiments: Annotated[list[str], typer.Argument(help="Which, or `all`; `list` says what there is.")],
    scale: Annotated[
        str,
        typer.Option(
            help="`paper` (a GPU), `laptop` (hours), `smoke` (only to see that all runs), `demo` (few real records)."
        ),
    ] = "laptop",
    seeds: Annotated[str | None, typer.Option(help="Training seeds, such as 0,1. Default: all of the scale.")] = None,
    model: Annotated[list[str] | None, typer.Option(help="Only this one; may be repeated. Default: all.")] = None,
    world: Annotated[list[str] | None, typer.Option(help="Likewise, of `arms`, `randomised`, …")] = None,
    horizons: Annotated[
        str | None, typer.Option(help="Only so many days or hours ahead, such as 1,3. Default: all.")
    ] = None,
    data: Annotated[
        Path | None,
        typer.Option(
            help="Records, for `real-icu` and `semi-synthetic`: MIMIC-Extract's hourly file or a cohort folder."
        ),
    ] = None,
    to: Annotated[Path | None, typer.Option(help="Folder of the results. Default: reproduced/SCALE.")] = None,
    again: Annotated[bool, typer.Option("--again", help="Measure anew what is there; fits are kept.")] = False,
    quiet: Quiet = False,
    as_json: AsJson = False,
) -> None:
    """Run experiments of the paper and write pages and figures.

    A run that ends early goes on where it was when the same command is given again.

    Example: `counterpath reproduce faithfulness sharpness --scale laptop`
    """
    with speaking(quiet=quiet, as_json=as_json) as voice:
        if experiments == ["list"]:
            from counterpath.experiments.catalogue import EXPERIMENTS

            listed = {name: experiment.title for name, experiment in EXPERIMENTS.items()}
            lines = "\n".join(f"{name:22}{title}" for name, title in listed.items())
            voice.result(lines, experiments=listed)
            return
        from counterpath.experiments import reproduce as run

        asked = None if seeds is None else [int(seed) for seed in read_numbers(seeds, "--seeds")]
        days = () if horizons is None else read_numbers(horizons, "--horizons")
        options = [
            *(["--seeds", seeds] if seeds else []),
            *(["--horizons", horizons] if horizons else []),
            *(part for name in model or [] for part in ("--model", name)),
            *(part for name in world or [] for part in ("--world", name)),
            *(["--data", data.name] if data else []),  # where it lies is nobody's business
        ]
        command = ["counterpath", "reproduce", *experiments, "--scale", scale, *options]
        folder = Path("reproduced") / scale if to is None else to
        written = run(
            experiments,
            scale=scale,
            seeds=asked,
            models=model or (),
            worlds=world or (),
            horizons=days,
            data=data,
            folder=folder,
            again=again,
            command=shlex.join(command),
            say=voice.say,
            progress=voice.shows_progress,
        )
        voice.result(f"Results: {written[0]}", pages=[str(path) for path in written])
