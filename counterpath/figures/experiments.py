"""Curves of several models side by side: a column for each horizon, a row for each quantity."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import zip_longest
from os import PathLike
from typing import Any, Literal

import matplotlib as mpl
import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.ticker import FuncFormatter, LogLocator, MaxNLocator, NullFormatter, NullLocator

from counterpath.figures.style import FAINT, INK, OUTCOME, TREATMENTS, house_style

MARKERS = "osD^vPX<>"
SHARES = (0.05, 0.1, 0.2, 0.5, 0.8, 0.9, 0.95, 0.97, 0.98, 0.99, 0.999)  # ticks of a `logit` axis

CLOSE_TICKS, CLOSE_TICKS_FROM = (0.97, 0.98), 0.7  # which lie on one another where an axis begins lower

WRAPPED_FROM = 2  # rows of a single column, above which they stand in two
TICKED = 5  # values of a horizontal axis that each have a tick
NOMINAL = "nominal"  # in the legend

AxisScale = Literal["linear", "log", "logit"]


@dataclass(frozen=True)
class Row:
    """One quantity.

    Attributes:
        label: Of the vertical axis.
        over: Label of the horizontal axis.
        at: Values there.
        scale: Of the vertical axis; `logit` sets shares near one apart.
        reference: Drawn as a dashed line: where both axes are equal, or at a height.
        curves: By model and column: a curve for each seed; not a number where a seed was not measured.
        lowest: Where the vertical axis begins; who stays below is named there.
    """

    label: str
    over: str
    at: Sequence[float]
    scale: AxisScale
    reference: str | float | None
    curves: Mapping[tuple[str, str], Sequence[Sequence[float]]]
    lowest: float | None = None


def draw_curves(
    rows: Sequence[Row],
    columns: Sequence[str],
    models: Sequence[str],
    limits: Sequence[str],
    *,
    title: str,
    paths: Sequence[str | PathLike[str]],
) -> Figure:
    """Means over seeds, with a band from the lowest to the highest where there are several.

    A single column is wrapped into two.

    Args:
        rows: Quantities.
        columns: Horizons, in words.
        models: In the order of the legend, each in a colour; `NAME.paper` is dashed, in the colour of `NAME`.
        limits: What models are compared with, at most two, in black and grey.
        title: Above all.
        paths: Files to write.
    """
    known = (OUTCOME, *TREATMENTS)
    published = {model: own for model in models if (own := model.replace(".paper", "")) != model and own in models}
    own_colour = [model for model in models if model not in published]
    colours = {model: known[i % len(known)] for i, model in enumerate(own_colour)}
    colours |= {model: colours[own] for model, own in published.items()}
    colours |= dict(zip(limits, (INK, FAINT)[: len(limits)], strict=True))
    models = (*models, *limits)
    looks = {
        model: {"color": colours[model], "marker": MARKERS[i % len(MARKERS)], "ls": "--" if model in published else "-"}
        for i, model in enumerate(models)
    }
    with house_style(), mpl.rc_context({"svg.hashsalt": "counterpath"}):
        wrapped = len(columns) == 1 and len(rows) > WRAPPED_FROM
        across, down = (2, math.ceil(len(rows) / 2)) if wrapped else (len(columns), len(rows))
        figure = Figure(figsize=(2.8 + 2.6 * across, 0.9 + 2.3 * down), layout="constrained")
        shared: Any = {} if wrapped else {"sharex": "row", "sharey": "row"}
        grid = figure.subplots(down, across, squeeze=False, **shared)
        if wrapped:
            for row, axes in zip_longest(rows, grid.ravel()):
                if row is None:
                    axes.set_axis_off()
                    continue
                _draw(axes, row, columns[0], looks)
                axes.set_ylabel(row.label)
        else:
            for row, line in zip(rows, grid, strict=True):
                for column, axes in zip(columns, line, strict=True):
                    _draw(axes, row, column, looks)
                line[0].set_ylabel(row.label)
        for column, axes in zip(columns, grid[0], strict=False):
            axes.set_title(column)
        handles, labels = {}, []
        for axes in grid.ravel():
            handles |= {label: handle for handle, label in zip(*axes.get_legend_handles_labels(), strict=True)}
        labels = [model for model in (*models, NOMINAL) if model in handles]
        figure.legend([handles[label] for label in labels], labels, loc="outside right center", fontsize=8)
        figure.suptitle(title, fontsize=10, x=0.01, ha="left", color=INK)
        for path in paths:
            figure.savefig(path, metadata={"Date": None} if str(path).endswith(".svg") else {"Software": None})
    return figure


def _draw(axes: Axes, row: Row, column: str, looks: Mapping[str, Mapping[str, Any]]) -> None:
    at = np.asarray(row.at)
    if row.reference == "diagonal":
        axes.plot(at, at, color=INK, lw=0.8, ls=(0, (3, 2)), label=NOMINAL)
    elif row.reference is not None:
        axes.axhline(float(row.reference), color=INK, lw=0.8, ls=(0, (3, 2)))
    below, lacking = [], []
    for model, look in looks.items():
        seeds = np.array(row.curves.get((model, column), ()))
        if not seeds.size:
            if any(model == other for other, _ in row.curves):
                lacking.append(model)
            continue
        there = ~np.isnan(seeds).all(axis=0)
        mean, low, high = (of(seeds[:, there], axis=0) for of in (np.nanmean, np.nanmin, np.nanmax))
        if row.lowest and mean.max() < row.lowest:
            below.append(f"{model} {mean.min():.0%} to {mean.max():.0%}")
            # The legend keeps its place.
            axes.plot([], [], ms=3, lw=1.2, label=model, **look)
            continue
        if row.scale == "logit":
            mean = np.clip(mean, 1 - SHARES[-1], SHARES[-1])  # one would be infinitely far away
        axes.plot(at[there], mean, ms=3, lw=1.2, label=model, **look)
        if len(seeds) > 1:
            axes.fill_between(at[there], low, high, color=look["color"], alpha=0.15, lw=0)
    notes = [
        *(["not measured: " + ", ".join(lacking)] if lacking else []),
        *(["below: " + ", ".join(below)] if below else []),
    ]
    if notes:
        axes.annotate(
            "\n".join(notes), (1.0, 1.01), xycoords="axes fraction", ha="right", va="bottom", fontsize=6.5, color=FAINT
        )
    _scale(axes, row)
    if len(at) <= TICKED:
        axes.set_xticks(at, [f"{value:g}" for value in at])
    else:
        axes.xaxis.set_major_locator(MaxNLocator(5, steps=[1, 2, 5, 10]))
    axes.set_xlabel(row.over)


def _scale(axes: Axes, row: Row) -> None:
    """Of the vertical axis, once everything is drawn."""
    if row.scale == "logit":
        lowest = axes.get_ylim()[0] if row.lowest is None else row.lowest
        ticks = [tick for tick in SHARES if lowest <= tick and (lowest > CLOSE_TICKS_FROM or tick not in CLOSE_TICKS)]
        axes.set_yscale("logit", nonpositive="clip")
        axes.set_yticks(ticks, [f"{tick:g}" for tick in ticks])
        axes.yaxis.set_minor_locator(NullLocator())
        axes.set_ylim(row.lowest, SHARES[-1])
        return
    axes.set_yscale(row.scale)
    if row.lowest is not None:
        axes.set_ylim(bottom=row.lowest)
    if row.scale == "log" and isinstance(row.reference, float):  # a ratio: read in plain numbers
        axes.yaxis.set_major_locator(LogLocator(subs=(1.0, 2.0, 5.0)))
        axes.yaxis.set_major_formatter(FuncFormatter(lambda value, _: f"{value:g}"))
        axes.yaxis.set_minor_formatter(NullFormatter())
