"""`counterpath import`: from the files of a hospital's format to a folder of tables."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from counterpath.cli.voice import AsJson, Quiet, speaking


def import_records(
    source: Annotated[Path, typer.Argument(help="A MEDS data set: the folder that holds `data` and `metadata`.")],
    folder: Annotated[Path, typer.Argument(help="Where the tables go; it must not exist yet.")],
    spec: Annotated[str, typer.Option(help="What to take: a TOML or JSON file, or a ready one by its name.")],
    split: Annotated[str | None, typer.Option(help="Only this part of the data set, such as train.")] = None,
    quiet: Quiet = False,
    as_json: AsJson = False,
) -> None:
    """Read records of another format and write the tables that `counterpath check` reads.

    Example: `counterpath import mimic-iv-meds icu --spec icu-haemodynamics --split train`
    """
    with speaking(quiet=quiet, as_json=as_json) as voice:
        from counterpath.importers import read_meds

        if folder.exists():
            raise FileExistsError(f"{folder} is there already. Choose another name.")
        cohort = read_meds(source, spec, split=split, progress=voice.shows_progress)
        cohort.save(folder)
        voice.say(f"{cohort}\n")
        voice.result(f"Written to {folder}. Next: counterpath check {folder}", folder=str(folder), patients=len(cohort))
