"""`counterpath import`: from the files of a hospital's format to a folder of tables."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any

import typer

from counterpath.cli.voice import AsJson, Quiet, speaking

HDF5 = (".h5", ".hdf", ".hdf5")


def import_records(
    source: Annotated[
        Path,
        typer.Argument(
            help="A MEDS data set (the folder that holds `data` and `metadata`), or a file of MIMIC-Extract."
        ),
    ],
    folder: Annotated[Path, typer.Argument(help="Where the tables go; it must not exist yet.")],
    spec: Annotated[
        str | None, typer.Option(help="MEDS: what to take, a TOML or JSON file, or a ready one by its name.")
    ] = None,
    split: Annotated[str | None, typer.Option(help="MEDS: only this part of the data set, such as train.")] = None,
    outcome: Annotated[
        str | None, typer.Option(help="MIMIC-Extract: what is to be predicted. Default: diastolic blood pressure.")
    ] = None,
    covariate: Annotated[
        list[str] | None,
        typer.Option(help="MIMIC-Extract: what else is measured; may be repeated. Default: the paper's."),
    ] = None,
    treatment: Annotated[
        list[str] | None, typer.Option(help="MIMIC-Extract: what is given; may be repeated. Default: vaso and vent.")
    ] = None,
    hours: Annotated[float | None, typer.Option(help="MIMIC-Extract: of each stay, at most so many.")] = None,
    quiet: Quiet = False,
    as_json: AsJson = False,
) -> None:
    """Read records of another format and write the tables that `counterpath check` reads.

    Example: `counterpath import mimic-iv-meds icu --spec icu-haemodynamics --split train`
    """
    with speaking(quiet=quiet, as_json=as_json) as voice:
        from counterpath.importers import read_meds, read_mimic_extract

        if folder.exists():
            raise FileExistsError(f"{folder} is there already. Choose another name.")
        of_meds = {"--spec": spec, "--split": split}
        of_extract = {"--outcome": outcome, "--covariate": covariate, "--treatment": treatment, "--hours": hours}
        if source.suffix.lower() in HDF5:
            _refuse(of_meds, source, "a file of MIMIC-Extract")
            asked: Any = {"outcome": outcome, "covariates": covariate, "treatments": treatment, "hours": hours}
            cohort = read_mimic_extract(source, **{name: value for name, value in asked.items() if value is not None})
        else:
            _refuse(of_extract, source, "a MEDS data set")
            if spec is None:
                raise typer.BadParameter(
                    "MEDS needs one: a TOML or JSON file, or icu-haemodynamics.", param_hint="--spec"
                )
            cohort = read_meds(source, spec, split=split, progress=voice.shows_progress)
        cohort.save(folder)
        voice.say(f"{cohort}\n")
        voice.result(f"Written to {folder}. Next: counterpath check {folder}", folder=str(folder), patients=len(cohort))


def _refuse(options: dict[str, Any], source: Path, kind: str) -> None:
    """What would have no effect is not taken."""
    for name, value in options.items():
        if value is not None:
            raise typer.BadParameter(f"{source} would be {kind}, which has no such option.", param_hint=name)
