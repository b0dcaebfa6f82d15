"""`counterpath split`: patients into parts, so that a model is judged on others than it learned from."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from counterpath.cli.arguments import Folder
from counterpath.cli.voice import AsJson, Quiet, speaking


def split(
    folder: Folder,
    parts: Annotated[list[str], typer.Argument(metavar="PART=SHARE…", help="New folders and their shares, sum 1.")],
    seed: Annotated[int, typer.Option(min=0, help="The same seed gives the same parts.")] = 0,
    quiet: Quiet = False,
    as_json: AsJson = False,
) -> None:
    """Divide the patients of a folder at random. Nobody is in two parts.

    Example: `counterpath split tumours tumours-train=0.8 tumours-test=0.2`
    """
    with speaking(quiet=quiet, as_json=as_json) as voice:
        from counterpath.cohort import read_cohort

        shares = dict(_part(part) for part in parts)
        if len(shares) < len(parts):
            raise typer.BadParameter("Two parts have one name.")
        for path in shares:
            if path.exists():
                raise FileExistsError(f"{path} is there already. Choose another name.")
        cohort = read_cohort(folder)
        found = dict(zip(shares, cohort.split(list(shares.values()), seed=seed), strict=True))
        for path, part in found.items():
            part.save(path)
        voice.result(
            ", ".join(f"{len(part):,} patients in {path}" for path, part in found.items()),
            parts={str(path): len(part) for path, part in found.items()},
        )


def _part(text: str) -> tuple[Path, float]:
    name, _, share = text.rpartition("=")
    try:
        if name:
            return Path(name), float(share)
    except ValueError:
        pass
    raise typer.BadParameter(f"{text!r} is not a folder and its share, such as tumours-test=0.2.")
