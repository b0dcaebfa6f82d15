"""The figures of an experiment."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence
from pathlib import Path

from counterpath.experiments.cells import Cell
from counterpath.experiments.experiment import Course, Curve, Experiment
from counterpath.experiments.measures import BELIEVING
from counterpath.experiments.recipes import ORACLE
from counterpath.experiments.scales import Scale
from counterpath.figures.experiments import Row, draw_curves

FOOLED = f"{ORACLE}{BELIEVING}"


def draw(experiment: Experiment, cells: Sequence[Cell], scale: Scale, folder: Path) -> list[str]:
    """Figures over the horizon, with a column for each world; curves, in a file for each world. Names of the SVGs."""
    names = []
    if experiment.courses and len(horizons := scale.among(experiment.horizons)) > 1:
        there = {cell.world for cell in cells}
        worlds = [world.name for world in experiment.worlds if world.name in there]
        rows = [
            Row(
                course.label,
                f"{experiment.unit}s ahead",
                horizons,
                course.scale,
                course.reference,
                found,
                course.lowest,
            )
            for course in experiment.courses
            if (found := _over_horizons(course, cells, horizons))
        ]
        names += _write(experiment, experiment.title, f"{experiment.name}.by-horizon", rows, worlds, folder)
    for world in experiment.worlds:
        own = [cell for cell in cells if cell.world == world.name]
        rows = [row for curve in experiment.curves if (row := _row(curve, own, scale)).curves]
        alone = len(experiment.worlds) == 1
        title = experiment.title if alone else f"{experiment.title} ({world.name})"
        name = experiment.name if alone else f"{experiment.name}.{world.name}"
        columns = [f"Δ = {horizon:g}" for horizon in scale.among(experiment.horizons)]
        names += _write(experiment, title, name, rows, columns, folder)
    return names


def _write(
    experiment: Experiment, title: str, name: str, rows: Sequence[Row], columns: Sequence[str], folder: Path
) -> list[str]:
    if not rows:
        return []
    paths = [folder / f"{name}.{kind}" for kind in ("png", "svg")]
    draw_curves(rows, columns, experiment.models, [ORACLE, FOOLED], title=title, paths=paths)
    return [paths[1].name]


def _row(curve: Curve, cells: Sequence[Cell], scale: Scale) -> Row:
    curves: dict[tuple[str, str], list[list[float]]] = defaultdict(list)
    for cell in cells:
        for model, name in ((cell.model, curve.name), (FOOLED, curve.name + BELIEVING)):
            if name in cell.curves:
                curves[model, f"Δ = {cell.horizon:g}"].append(cell.curves[name])
    return Row(curve.label, curve.over, curve.places(scale), curve.scale, curve.reference, curves, curve.lowest)


def _over_horizons(
    course: Course, cells: Sequence[Cell], horizons: Sequence[float]
) -> dict[tuple[str, str], list[list[float]]]:
    """By model and world: of each seed at every horizon, where there is no fit not a number."""
    found: dict[tuple[str, str], dict[int, dict[float, float]]] = defaultdict(lambda: defaultdict(dict))
    for cell in cells:
        if course.name in cell.figures:
            found[cell.model, cell.world][cell.seed][cell.horizon] = cell.figures[course.name]
    return {
        place: [[own.get(horizon, float("nan")) for horizon in horizons] for own in seeds.values()]
        for place, seeds in found.items()
    }
