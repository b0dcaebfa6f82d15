"""Fits whose errors are far from those of the other seeds: in a mean they would hide, or be all of it."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence

import numpy as np

from counterpath.experiments.cells import Cell
from counterpath.experiments.experiment import Experiment
from counterpath.experiments.scales import Scale

FAR = 10.0  # times the median over seeds
ENOUGH = 3  # seeds: of two nobody could say which is the usual one


def strays(experiment: Experiment, cells: Sequence[Cell], scale: Scale) -> list[str]:
    """A sentence for each fit and curve of errors, with the median over seeds beside it."""
    seeds: dict[tuple[str, str, float], list[Cell]] = defaultdict(list)
    for cell in cells:
        seeds[cell.model, cell.world, cell.horizon].append(cell)
    found = []
    for curve in experiment.curves:
        if curve.reference is not None:  # a share, or a ratio that may come near zero
            continue
        for (model, world, horizon), own in seeds.items():
            fits = [cell for cell in own if curve.name in cell.curves]
            if len(fits) < ENOUGH:
                continue
            values = np.array([cell.curves[curve.name] for cell in fits])
            usual = np.median(values, axis=0)
            for fit, far in zip(fits, values > FAR * usual, strict=True):
                if far.any():
                    came, median, places = (
                        _listed(numbers[far])
                        for numbers in (np.array(fit.curves[curve.name]), usual, np.array(curve.places(scale)))
                    )
                    found.append(
                        f"{model} in {world}, seed {fit.seed}, Δ = {horizon:g}: {curve.label} {came} where the "
                        f"{curve.over} is {places}; the median over seeds is {median}."
                    )
    return found


def _listed(numbers: np.ndarray) -> str:
    return ", ".join(f"{number:.3g}" for number in numbers)
