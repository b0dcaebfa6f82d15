"""`counterpath tune`: a search over settings."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from counterpath.cli.arguments import Folder, Overwrite
from counterpath.cli.output import may_write
from counterpath.cli.voice import AsJson, Quiet, speaking


def tune(
    folder: Folder,
    to: Annotated[Path, typer.Option(help="Where the best settings are written: a TOML file for fit --config.")],
    max_horizon: Annotated[float | None, typer.Option(help="The longest time ahead, in the folder's unit.")] = None,
    model: Annotated[str, typer.Option(help="Where the search starts: a model as for fit.")] = "BNCDE.paper",
    config: Annotated[Path | None, typer.Option(help="A TOML file instead of --model and --max-horizon.")] = None,
    space: Annotated[
        Path | None,
        typer.Option(help="A TOML file with a list of values for each setting. Default: the paper's, drift and σ."),
    ] = None,
    validation: Annotated[
        Path | None, typer.Option(help="Patients to score on. Default: some of the folder's.")
    ] = None,
    trials: Annotated[int | None, typer.Option(min=1, help="In all. Default: every combination.")] = None,
    storage: Annotated[
        str | None,
        typer.Option(
            help="A journal file, or a database such as sqlite:///study.db, which several machines may share."
        ),
    ] = None,
    study: Annotated[str, typer.Option(help="Its name in the storage.")] = "counterpath",
    seed: Annotated[int, typer.Option(min=0, help="Of who is held out, where no validation patients are given.")] = 0,
    overwrite: Overwrite = False,
    quiet: Quiet = False,
    as_json: AsJson = False,
) -> None:
    """Find settings by the evidence bound on validation patients, as the paper did.

    Ctrl-C stops it; the same command goes on, also from other machines that share the storage.

    Example: `counterpath tune tumours-train --max-horizon 1 --to best.toml --storage study.journal`
    """
    with speaking(quiet=quiet, as_json=as_json) as voice:
        may_write(to, overwrite=overwrite, suffixes=(".toml",))
        from counterpath.cohort import read_cohort
        from counterpath.estimators import Configuration
        from counterpath.experiments.tuning import PAPER_SPACE, read_space
        from counterpath.experiments.tuning import tune as search

        if config is None and max_horizon is None:
            raise typer.BadParameter("How far ahead will be asked? Give --max-horizon, in the folder's unit of time.")
        start = Configuration.read(config) if config is not None else Configuration.of(model, max_horizon or 0.0)
        if config is not None:  # a file may leave defaults out
            start = start.complete()
        train = read_cohort(folder)
        held = read_cohort(validation) if validation is not None else None
        if held is None:
            train, held = train.split((0.85, 0.15), seed=seed)
        best, found = search(
            start,
            train,
            held,
            space=PAPER_SPACE if space is None else read_space(space),
            trials=trials,
            storage=storage or str(to.with_suffix(".journal")),
            study=study,
            say=voice.say,
            keep=lambda better: _write(better.to_toml(), to),
        )
        _write(best.to_toml(), to)
        voice.result(
            f"The best of {len(found):,} trials: {to}",
            settings=str(to),
            trials=[vars(trial) for trial in found],
        )


def _write(text: str, to: Path) -> None:
    beside = to.with_suffix(".partial")
    beside.write_text(text, encoding="utf-8")
    beside.replace(to)
