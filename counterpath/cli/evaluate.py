"""`counterpath evaluate`: how honest and how close a model's forecasts are, on patients that it has not seen."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from counterpath.cli.arguments import DropEnded, ModelFile, Outcome, Overwrite, Seed, load_both, read_numbers, read_time
from counterpath.cli.output import first_rows, may_write, replacing, write_frame
from counterpath.cli.predict import PICTURES
from counterpath.cli.voice import AsJson, Quiet, speaking

SHOWN = ("subgroup", "bin", "outcomes", "patients", "crps", "mae_of_median", "coverage_95", "width_95")


def evaluate(
    model: ModelFile,
    folder: Annotated[Path, typer.Argument(metavar="FOLDER", help="Patients that the model has not seen.")],
    at: Annotated[
        str | None, typer.Option(help="One moment, as for predict. Default: some records of each patient.")
    ] = None,
    drop_ended: DropEnded = False,
    horizons: Annotated[
        str | None, typer.Option(help="Such as 1,3,5. Default: whenever an outcome was recorded.")
    ] = None,
    outcome: Outcome = None,
    by: Annotated[str | None, typer.Option(help="A static covariate: scores of its groups too.")] = None,
    cuts: Annotated[int, typer.Option(min=1, help="Without --at: forecasts per patient, at most.")] = 5,
    to: Annotated[Path | None, typer.Option(help="Write all scores here, as CSV, Parquet or JSON.")] = None,
    plot: Annotated[Path | None, typer.Option(help="Draw coverage, sharpness and deferral here.")] = None,
    seed: Seed = 0,
    overwrite: Overwrite = False,
    quiet: Quiet = False,
    as_json: AsJson = False,
) -> None:
    """Compare forecasts with what happened under the treatment really given, and give a verdict in plain words.

    Example: `counterpath evaluate model.safetensors tumours-test --plot calibration.png`
    """
    with speaking(quiet=quiet, as_json=as_json) as voice:
        may_write(to, overwrite=overwrite)
        may_write(plot, overwrite=overwrite, suffixes=PICTURES)
        fitted, cohort = load_both(model, folder, voice)
        evaluation = fitted.evaluate(
            cohort,
            at=None if at is None else read_time(at),
            horizons=None if horizons is None else read_numbers(horizons, "--horizons"),
            outcome=outcome,
            by=by,
            ended="drop" if drop_ended else "error",
            cuts=cuts,
            seed=seed,
            progress=voice.shows_progress,
        )
        frame = evaluation.to_frame()
        voice.show(first_rows(frame.select(SHOWN)))
        voice.say("")
        if to is not None:
            write_frame(frame, to)
        if plot is not None:
            with replacing(plot) as new:
                evaluation.plot(new)
        written = [str(path) for path in (to, plot) if path is not None]
        voice.result(f"{evaluation}.", verdict=evaluation.verdict, scores=frame.to_dicts(), written=written)
