"""`counterpath fit`: a model from a folder of tables."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from counterpath.cli.arguments import Overwrite
from counterpath.cli.output import may_write
from counterpath.cli.voice import AsJson, Quiet, Voice, speaking

if TYPE_CHECKING:
    from counterpath.estimators import Configuration


def fit(
    folder: Annotated[Path | None, typer.Argument(help="Patients, as `counterpath check` reads them.")] = None,
    to: Annotated[Path | None, typer.Option(help="The model file to write, such as model.safetensors.")] = None,
    max_horizon: Annotated[
        float | None, typer.Option(help="The longest time ahead that will be asked about, in the folder's unit.")
    ] = None,
    model: Annotated[
        str | None,
        typer.Option(help="BNCDE (the default), BNCDE.large (for a GPU), BNCDE.paper, TECDE or TECDE.paper."),
    ] = None,
    validation: Annotated[
        Path | None, typer.Option(help="Patients who decide when to stop. Default: some of the folder's.")
    ] = None,
    config: Annotated[Path | None, typer.Option(help="A TOML file instead of --model and --max-horizon.")] = None,
    print_config: Annotated[
        bool, typer.Option("--print-config", help="Print such a file with every setting, and stop.")
    ] = False,
    seed: Annotated[int | None, typer.Option(min=0, help="Of everything random.")] = None,
    steps: Annotated[int | None, typer.Option(min=1, help="Of training; fewer for a first try.")] = None,
    overwrite: Overwrite = False,
    quiet: Quiet = False,
    as_json: AsJson = False,
) -> None:
    """Train a model and write it to one file.

    Ctrl-C stops it; the same command takes it up again where it was.

    Example: `counterpath fit tumours-train --max-horizon 5 --to model.safetensors`
    """
    with speaking(quiet=quiet, as_json=as_json) as voice:
        asked = _configuration(config, model, max_horizon, seed, steps)
        if print_config:
            typer.echo(asked.to_toml(), nl=False)
            return
        if folder is None or to is None:
            raise typer.BadParameter("Say what to learn from and where to write it: counterpath fit FOLDER --to FILE.")
        may_write(to, overwrite=overwrite, suffixes=(".safetensors",))
        _fit(asked, folder, validation, to, voice)


def _configuration(
    config: Path | None, model: str | None, max_horizon: float | None, seed: int | None, steps: int | None
) -> Configuration:
    from counterpath.estimators import Configuration

    if config is not None and (max_horizon is not None or model is not None):
        raise typer.BadParameter("Give --config or --model and --max-horizon, not both: the file has them.")
    if config is not None:
        asked = Configuration.read(config)
    elif max_horizon is not None:
        asked = Configuration.of(model or "BNCDE", max_horizon)
    else:
        raise typer.BadParameter("How far ahead will be asked? Give --max-horizon, in the folder's unit of time.")
    given = {name: value for name, value in (("seed", seed), ("steps", steps)) if value is not None}
    if steps is not None and asked.settings.get("epochs") is not None:
        raise typer.BadParameter("This model counts epochs, not steps: set epochs in a --config file.")
    return asked.model_copy(update={"settings": asked.settings | given})


def _fit(asked: Configuration, folder: Path, validation: Path | None, to: Path, voice: Voice) -> None:
    from counterpath.cohort import read_cohort

    made = asked.build()
    train, held = read_cohort(folder), None if validation is None else read_cohort(validation)
    voice.say(str(train))
    report = train.check()
    voice.say(report.verdict if not report.of("warning") else f"{report.verdict} See: counterpath check {folder}")
    checkpoint = to.with_suffix(".checkpoint")
    if checkpoint.exists():
        voice.say(f"Going on from {checkpoint}.")
    try:
        made.fit(train, held, progress=voice.shows_progress, checkpoint=checkpoint)  # type: ignore[call-arg]  # neural
    except KeyboardInterrupt:
        if checkpoint.exists():
            typer.secho(f"What was learned is in {checkpoint}; the same command goes on from there.", err=True)
        raise
    made.save(to)
    checkpoint.unlink(missing_ok=True)
    voice.result(f"{made} learned from {len(train):,} patients: {to}", model=str(to), patients=len(train))
