"""How honest forecasts were: coverage, spread of outcomes over them, sharpness, deferral."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from os import PathLike

import numpy as np
from jaxtyping import Float64
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from counterpath.figures.style import FAINT, INK, OUTCOME, TREATMENTS, house_style
from counterpath.metrics import DeferralCurve

PIT_BINS = 20
BESIDE = 0.07  # of a bin: levels do not hide each other
SHOWN = (0.2, 0.9985)  # coverage beyond is drawn at the edge


def draw_calibration(
    bins: Sequence[str],
    coverage: Mapping[float, Sequence[tuple[float, float]]],
    pit: Float64[np.ndarray, " points"],
    crps: Sequence[tuple[float, float]],
    width: Sequence[float],
    deferral: DeferralCurve,
    *,
    title: str,
    unit: str,
    path: str | PathLike[str] | None = None,
) -> Figure:
    """Draw four panels.

    Args:
        bins: Of elapsed time, in words.
        coverage: By level: share and standard error in each bin.
        pit: Where in their forecasts outcomes fell.
        crps: With its standard error, in each bin.
        width: Median width of the 95% interval, in each bin.
        deferral: Error of those kept.
        title: Above all.
        unit: Of CRPS and width.
        path: Write the picture to this file too.
    """
    with house_style():
        figure = Figure(figsize=(9.2, 6.6), layout="constrained")
        (held, spread), (sharp, defer) = figure.subplots(2, 2)
        _draw_coverage(held, bins, coverage)
        _draw_pit(spread, pit)
        _draw_sharpness(sharp, bins, crps, width, unit)
        _draw_deferral(defer, deferral)
        figure.suptitle(title, fontsize=10, x=0.01, ha="left", color=INK)
        if path is not None:
            figure.savefig(path)
    return figure


def _draw_coverage(axes: Axes, bins: Sequence[str], coverage: Mapping[float, Sequence[tuple[float, float]]]) -> None:
    place = np.arange(len(bins))
    colours = (*TREATMENTS[:3], OUTCOME)
    for i, ((level, shares), colour) in enumerate(zip(coverage.items(), colours, strict=True)):
        share, error = np.array(shares).T
        reach = 1.96 * np.where(np.isfinite(error), error, 0.0)
        ends = np.clip([share - reach, share, share + reach], *SHOWN)
        axes.axhline(level, color=colour, lw=0.8, ls=(0, (3, 2)))
        beside = place + BESIDE * (i - 1.5)
        axes.errorbar(beside, ends[1], np.diff(ends, axis=0), fmt="o", ms=4, color=colour, capsize=3)
    axes.set_xticks(place, bins, fontsize=8)
    axes.set_yscale("logit")  # so that 95 and 99% are told apart
    axes.set_ylim(*SHOWN)
    axes.set_yticks(list(coverage), [f"{level:.0%}" for level in coverage])
    axes.set_yticks([], minor=True)
    axes.set_ylabel("outcomes inside")
    axes.set_title("Do intervals hold what they say?")


def _draw_pit(axes: Axes, pit: np.ndarray) -> None:
    counts, edges = np.histogram(pit, bins=PIT_BINS, range=(0, 1))
    expected = len(pit) / PIT_BINS
    chance = 1.96 * np.sqrt(expected * (1 - 1 / PIT_BINS)) / expected
    axes.axhspan(1 - chance, 1 + chance, color=FAINT, alpha=0.25, lw=0)
    axes.stairs(counts / expected, edges, fill=True, color=OUTCOME, alpha=0.5)
    axes.axhline(1.0, color=INK, lw=0.8, ls=(0, (3, 2)))
    axes.set_xlabel("where in its forecast an outcome fell")
    axes.set_ylabel("share ÷ expected")
    axes.set_title("Flat is right; heaps at the ends are too narrow")


def _draw_sharpness(
    axes: Axes, bins: Sequence[str], crps: Sequence[tuple[float, float]], width: Sequence[float], unit: str
) -> None:
    place = np.arange(len(bins))
    value, error = np.array(crps).T
    shown = 1.96 * np.where(np.isfinite(error), error, 0.0)
    axes.errorbar(place - 0.06, value, shown, fmt="o", ms=4, color=OUTCOME, capsize=3, label="CRPS (mean, 95%)")
    axes.plot(place + 0.06, width, "s", ms=4, color=TREATMENTS[0], label="95% interval (median width)")
    axes.set_xticks(place, bins, fontsize=8)
    axes.set_ylim(bottom=0)
    axes.set_ylabel(unit)
    axes.legend(fontsize=8)
    axes.set_title("How close, and how sharp?")


def _draw_deferral(axes: Axes, curve: DeferralCurve) -> None:
    axes.plot(100 * curve.shares, curve.random, color=INK, lw=0.8, ls=(0, (3, 2)), label="at random")
    if curve.resampled is not None:
        axes.fill_between(100 * curve.shares, *curve.interval(), color=OUTCOME, alpha=0.2, lw=0)
    axes.plot(100 * curve.shares, curve.error, color=OUTCOME, lw=1.6, label="widest intervals first")
    axes.set_ylim(bottom=0)
    axes.set_xlabel("forecasts handed to somebody else (%)")
    axes.set_ylabel("error of the rest ÷ error of all")
    axes.legend(fontsize=8)
    axes.set_title("Does it know where it is unsure?")
