"""Results, cell by cell: written at once, gathered into one file per experiment."""

from __future__ import annotations

import json
import math
from collections.abc import Iterable
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from counterpath.experiments.fits import file_name
from counterpath.experiments.measures import Found

Place = tuple[str, str, str, float, int]


class ReproductionError(ValueError):
    """Results that do not belong together, or an experiment that does not exist."""


@dataclass(frozen=True)
class Cell:
    """What one fit gave in one experiment at one horizon.

    Attributes:
        experiment: Its name.
        world: Where.
        model: Whose fit.
        horizon: Days ahead.
        seed: Of the fit and of its patients.
        scale: Of the run.
        figures: By what they are.
        curves: Likewise.
        record: Command, machine, versions, commit.
    """

    experiment: str
    world: str
    model: str
    horizon: float
    seed: int
    scale: str
    figures: dict[str, float]
    curves: dict[str, list[float]]
    record: dict[str, Any]

    @property
    def place(self) -> Place:
        """What tells cells of one scale apart."""
        return self.experiment, self.world, self.model, self.horizon, self.seed

    def write(self, folder: Path) -> None:
        """As a file of its own, whole or not at all."""
        folder.mkdir(parents=True, exist_ok=True)
        name = ".".join([self.experiment, self.world, file_name(self.model), f"{self.horizon:g}", str(self.seed)])
        beside = folder / f"{name}.partial"
        beside.write_text(json.dumps(asdict(self), allow_nan=False) + "\n", encoding="utf-8")
        beside.replace(folder / f"{name}.json")


def finite(found: Found) -> Found:
    """Without what is no number, such as an error beside a spread of zero."""
    return Found(
        {name: value for name, value in found.figures.items() if math.isfinite(value)},
        {name: values for name, values in found.curves.items() if all(map(math.isfinite, values))},
    )


def read_cells(folder: Path, scale: str) -> dict[Place, Cell]:
    """All that are there: in files of experiments, and those that came since."""
    found: list[Cell] = []
    for path in sorted(folder.glob("*.json")):
        content = json.loads(path.read_text(encoding="utf-8"))
        records = content["records"]
        shared = {"experiment": content["experiment"], "scale": content["scale"]}
        found += [Cell(**(shared | cell | {"record": records[cell["record"]]})) for cell in content["cells"]]
    for path in sorted((folder / "work" / "cells").glob("*.json")):
        found.append(Cell(**json.loads(path.read_text(encoding="utf-8"))))
    for cell in found:
        if cell.scale != scale:
            raise ReproductionError(
                f"{folder} holds results of scale {cell.scale!r}, and these would be of {scale!r}. Use another folder."
            )
    return {cell.place: cell for cell in found}


def write_experiment(name: str, scale: str, cells: Iterable[Cell], folder: Path) -> None:
    """All cells of an experiment in one file; what they share is said once."""
    records: list[dict[str, Any]] = []
    rows = []
    for cell in sorted(cells, key=lambda cell: cell.place):
        if cell.record not in records:
            records.append(cell.record)
        row = {key: value for key, value in asdict(cell).items() if key not in ("experiment", "scale")}
        rows.append(row | {"record": records.index(cell.record)})
    content = {"experiment": name, "scale": scale, "records": records, "cells": rows}
    (folder / f"{name}.json").write_text(json.dumps(content, indent=1, allow_nan=False) + "\n", encoding="utf-8")
