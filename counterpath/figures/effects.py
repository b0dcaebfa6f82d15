"""Effects of a plan on all patients, and how often each of several plans is the best."""

from __future__ import annotations

import textwrap
from os import PathLike

import numpy as np
from jaxtyping import Float64
from matplotlib.figure import Figure
from matplotlib.lines import Line2D
from matplotlib.patches import Patch

from counterpath.cohort import Variable
from counterpath.figures.style import FAINT, INK, OUTCOME, TREATMENTS, house_style

MOST_COLUMNS = 5
LETTERS_PER_INCH = 13  # of the label, at its size


def draw_effects(
    horizons: Float64[np.ndarray, " horizons"],
    mean: Float64[np.ndarray, "patients horizons"],
    lower: Float64[np.ndarray, "patients horizons"],
    upper: Float64[np.ndarray, "patients horizons"],
    *,
    average: tuple[
        Float64[np.ndarray, " horizons"], Float64[np.ndarray, " horizons"], Float64[np.ndarray, " horizons"]
    ],
    outcome: Variable,
    time_unit: str,
    label: str,
    better: str | None = None,
    path: str | PathLike[str] | None = None,
) -> Figure:
    """Draw the effect on each patient, from the lowest to the highest, with its interval.

    Args:
        horizons: Elapsed times: a panel each.
        mean: Expected effect.
        lower: Lower end of its 95% interval.
        upper: Upper end.
        average: Mean effect on all patients, with its interval.
        outcome: What is predicted.
        time_unit: Of the horizons.
        label: What the numbers may be called.
        better: Whether `lower` or `higher` outcomes are better, if known.
        path: Write the picture to this file too.
    """
    columns = min(len(horizons), MOST_COLUMNS)
    rows = -(-len(horizons) // columns)
    with house_style():
        figure = Figure(figsize=(max(2.6 * columns, 4.6), 2.9 * rows + 0.9), layout="constrained")
        every = figure.subplots(rows, columns, sharey=True, squeeze=False)
        for i, axes in enumerate(every.flat):
            if i >= len(horizons):
                axes.set_visible(False)
                continue
            order = np.argsort(mean[:, i])
            place = np.arange(len(order)) + 1
            axes.vlines(
                place, lower[order, i], upper[order, i], color=OUTCOME, alpha=0.35, lw=max(0.3, 120 / len(order))
            )
            axes.plot(place, mean[order, i], "-", color=OUTCOME, lw=1.4)
            middle, low, high = (part[i] for part in average)
            axes.axhspan(low, high, color=TREATMENTS[0], alpha=0.25, lw=0)
            axes.axhline(middle, color=TREATMENTS[0], lw=1.2)
            axes.axhline(0.0, color=INK, lw=0.8, ls=(0, (3, 2)))
            axes.set_title(f"after {horizons[i]:g} {time_unit}{'' if horizons[i] == 1 else 's'}")
            if i % columns == 0:
                axes.set_ylabel(f"change of {outcome.label}")
            axes.set_xlabel("patients, in order")
        handles: list[Line2D | Patch] = [
            Line2D([], [], color=OUTCOME, lw=1.6, label="expected effect and its 95% interval, by patient"),
            Patch(color=TREATMENTS[0], alpha=0.5, label="mean effect, 95%"),
        ]
        if better is not None:
            handles.append(Line2D([], [], lw=0, label=f"{better} is better"))
        figure.legend(handles=handles, loc="outside lower center", ncols=3, fontsize=8.5)
        _name(figure, label)
        if path is not None:
            figure.savefig(path)
    return figure


def draw_ranking(
    names: list[str],
    horizons: Float64[np.ndarray, " horizons"],
    best: Float64[np.ndarray, "plans patients horizons"],
    *,
    time_unit: str,
    label: str,
    path: str | PathLike[str] | None = None,
) -> Figure:
    """Draw the probability that each plan is best in expectation: mean over patients, and each patient as a dot.

    Args:
        names: Of the plans.
        horizons: Elapsed times: a panel each.
        best: Probability of being the best.
        time_unit: Of the horizons.
        label: What the numbers may be called.
        path: Write the picture to this file too.
    """
    columns = min(len(horizons), MOST_COLUMNS)
    rows = -(-len(horizons) // columns)
    with house_style():
        size = (max(2.4 * columns + 1.0, 4.6), (0.45 * len(names) + 1.1) * rows + 0.4)
        figure = Figure(figsize=size, layout="constrained")
        every = figure.subplots(rows, columns, sharey=True, squeeze=False)
        rng = np.random.default_rng(0)  # only moves dots apart
        for i, axes in enumerate(every.flat):
            if i >= len(horizons):
                axes.set_visible(False)
                continue
            axes.barh(range(len(names)), best[:, :, i].mean(axis=1), height=0.62, color=OUTCOME, alpha=0.35, lw=0)
            for lane in range(len(names)):
                apart = lane + rng.uniform(-0.2, 0.2, best.shape[1])
                axes.plot(best[lane, :, i], apart, ".", color=FAINT, ms=2.5, alpha=0.6)
            axes.set_xlim(-0.02, 1.02)
            axes.set_yticks(range(len(names)), names)
            axes.set_title(f"after {horizons[i]:g} {time_unit}{'' if horizons[i] == 1 else 's'}")
            axes.set_xlabel("probability of being best")
        every[0, 0].invert_yaxis()
        _name(figure, label)
        if path is not None:
            figure.savefig(path)
    return figure


def _name(figure: Figure, label: str) -> None:
    """What the numbers may be called, above them, in as many lines as it takes."""
    width = int(LETTERS_PER_INCH * figure.get_figwidth())
    figure.suptitle(textwrap.fill(label, width), fontsize=8.5, color=INK, x=0.01, ha="left")
