"""`counterpath predict`: what may happen to each patient under a plan."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from counterpath.cli.arguments import (
    PLAN,
    At,
    Draws,
    DropEnded,
    Folder,
    Horizons,
    ModelFile,
    Overwrite,
    Patients,
    Seed,
    as_known,
    load_both,
    read_horizons,
    read_plan,
)
from counterpath.cli.output import first_rows, may_write, replacing, write_frame
from counterpath.cli.voice import AsJson, Quiet, speaking

PICTURES = (".png", ".svg", ".pdf")


def predict(
    model: ModelFile,
    folder: Folder,
    plan: Annotated[str, typer.Option(help=PLAN)],
    at: At = None,
    horizons: Horizons = None,
    patients: Patients = None,
    drop_ended: DropEnded = False,
    to: Annotated[Path | None, typer.Option(help="Write all figures here, by suffix as CSV, Parquet or JSON.")] = None,
    plot: Annotated[Path | None, typer.Option(help="Draw the first of the patients into this picture.")] = None,
    draws: Draws = 100,
    seed: Seed = 0,
    overwrite: Overwrite = False,
    quiet: Quiet = False,
    as_json: AsJson = False,
) -> None:
    """Predict every patient's outcomes under a plan, with their uncertainty.

    Example: `counterpath predict model.safetensors tumours --plan 'chemotherapy@0,2,4' --at 50 --to predicted.csv`
    """
    with speaking(quiet=quiet, as_json=as_json) as voice:
        may_write(to, overwrite=overwrite)
        may_write(plot, overwrite=overwrite, suffixes=PICTURES)
        fitted, cohort = load_both(model, folder, voice)
        prediction = fitted.predict(
            as_known(cohort, at, patients, voice, drop_ended=drop_ended),
            read_plan(plan, cohort),
            horizons=read_horizons(horizons, fitted),
            draws=draws,
            seed=seed,
            keep="summary" if plot is None else "draws",
            progress=voice.shows_progress,
        )
        if prediction.support is not None and prediction.support.warning:
            voice.warn(f"The prediction is extrapolated; {prediction.support.warning}.")
        voice.show(first_rows(prediction.summary()))
        if to is not None:
            write_frame(prediction.to_frame(), to)
        if plot is not None:
            with replacing(plot) as new:
                prediction.plot(prediction.patients[0], path=new)
        written = [str(path) for path in (to, plot) if path is not None]
        told = f"{len(prediction.patients):,} patients, {len(prediction.horizons)} horizons"
        voice.result(
            f"{told}: {', '.join(written)}" if written else told,
            predictions=[] if to is not None or not as_json else prediction.to_frame().to_dicts(),
            written=written,
        )
