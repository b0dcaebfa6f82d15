"""`counterpath explore`: a page and an HTTP API on a model."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Annotated

import typer

from counterpath.cli.voice import AsJson, Quiet, speaking

LOCAL = "127.0.0.1"
FEWEST_SIGNS = 16  # of a token


def explore(
    model: Annotated[
        Path | None, typer.Argument(metavar="[MODEL]", help="A file that `counterpath fit` wrote.", show_default=False)
    ] = None,
    data: Annotated[
        Path | None, typer.Option(help="Patients to choose from, as `counterpath check` reads them.")
    ] = None,
    demo: Annotated[
        bool, typer.Option("--demo", help="A small model of simulated patients, trained on the spot.")
    ] = False,
    host: Annotated[
        str, typer.Option(help="Address to listen on; any but this machine's own needs a token.")
    ] = "127.0.0.1",
    port: Annotated[int, typer.Option(min=0, max=65_535, help="0 for any that is free.")] = 8765,
    token: Annotated[
        str | None,
        typer.Option(envvar="COUNTERPATH_TOKEN", help="Without it nothing is answered; at least 16 signs."),
    ] = None,
    quiet: Quiet = False,
    as_json: AsJson = False,
) -> None:
    """Open a model in a browser: choose a patient, change the plan, see the course and how sure the model is of it.

    Example: `counterpath explore model.safetensors --data judge`
    """
    with speaking(quiet=quiet, as_json=as_json) as voice:
        if demo == (model is not None):
            raise typer.BadParameter("Name a model, or say --demo.")
        if demo and data is not None:
            raise typer.BadParameter("--demo has patients of its own. Leave --data out.", param_hint="--data")
        if token is not None and len(token) < FEWEST_SIGNS:
            raise typer.BadParameter(f"A token has at least {FEWEST_SIGNS} signs.", param_hint="--token")
        try:
            from counterpath.explorer.server import demo_model, serve
        except ImportError as error:
            raise typer.BadParameter("Install more packages first: pip install 'counterpath[explorer]'.") from error
        from counterpath._version import __version__
        from counterpath.cohort import read_cohort
        from counterpath.estimators import load

        if model is None:
            folder = _cache() / f"explorer-{__version__}"
            fitted, cohort = demo_model(folder, progress=voice.shows_progress)
        else:
            fitted, cohort = load(model), None if data is None else read_cohort(data)
        serve(fitted, cohort, host=host, port=port, token=token, say=lambda text: voice.result(text))


def _cache() -> Path:
    return Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "counterpath"
