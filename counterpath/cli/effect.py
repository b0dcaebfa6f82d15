"""`counterpath effect`: what a plan changes against another."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Literal

import typer

from counterpath.cli.arguments import (
    PLAN,
    At,
    Draws,
    DropEnded,
    Folder,
    Horizons,
    ModelFile,
    Outcome,
    Overwrite,
    Patients,
    Seed,
    as_known,
    load_both,
    read_horizons,
    read_plan,
)
from counterpath.cli.output import first_rows, may_write, replacing, write_frame
from counterpath.cli.predict import PICTURES
from counterpath.cli.voice import AsJson, Quiet, speaking


def effect(
    model: ModelFile,
    folder: Folder,
    plan: Annotated[str, typer.Option(help=PLAN)],
    versus: Annotated[str, typer.Option(help="What it is compared with; likewise.")] = "none",
    better: Annotated[
        Literal["lower", "higher"] | None, typer.Option(help="Which outcomes are; adds the probability of benefit.")
    ] = None,
    margin: Annotated[float, typer.Option(min=0.0, help="The smallest gain that counts as one.")] = 0.0,
    outcome: Outcome = None,
    by: Annotated[str | None, typer.Option(help="A static covariate: mean effects of its groups.")] = None,
    at: At = None,
    horizons: Horizons = None,
    patients: Patients = None,
    drop_ended: DropEnded = False,
    to: Annotated[Path | None, typer.Option(help="Write a line per patient and horizon here.")] = None,
    plot: Annotated[Path | None, typer.Option(help="Draw the effects on all patients into this picture.")] = None,
    draws: Draws = 100,
    seed: Seed = 0,
    overwrite: Overwrite = False,
    quiet: Quiet = False,
    as_json: AsJson = False,
) -> None:
    """The expected change of each patient's outcome by a plan against another, and how sure the model is of it.

    Example: `counterpath effect model.safetensors tumours --plan 'chemotherapy@0' --versus none --better lower --at 50`
    """
    with speaking(quiet=quiet, as_json=as_json) as voice:
        may_write(to, overwrite=overwrite)
        may_write(plot, overwrite=overwrite, suffixes=PICTURES)
        fitted, cohort = load_both(model, folder, voice)
        found = fitted.effect(
            as_known(cohort, at, patients, voice, drop_ended=drop_ended),
            read_plan(plan, cohort),
            versus=read_plan(versus, cohort),
            horizons=read_horizons(horizons, fitted),
            outcome=outcome,
            draws=draws,
            seed=seed,
            progress=voice.shows_progress,
        )
        average = found.average(by, better=better, margin=margin)
        summary = found.summary(better=better, margin=margin)
        voice.show(first_rows(summary))
        voice.say("\nMean over patients:")
        voice.show(first_rows(average))
        voice.say("")
        if to is not None:
            write_frame(summary, to)
        if plot is not None:
            with replacing(plot) as new:
                found.plot(better=better, path=new)
        written = [str(path) for path in (to, plot) if path is not None]
        voice.say(found.assumptions)
        voice.result(
            found.label.capitalize() + ".",
            assumptions=found.assumptions,
            average=average.to_dicts(),
            effects=[] if to is not None or not as_json else summary.to_dicts(),
            written=written,
        )
