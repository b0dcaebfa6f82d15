"""Patients with what may come: history, doses, and a band for each plan."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from os import PathLike

import numpy as np
from jaxtyping import Float64
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.lines import Line2D
from matplotlib.patches import Patch

from counterpath.cohort import Cohort, CohortError, Plan
from counterpath.figures.style import FAINT, INK, TREATMENTS, house_style

PLAN_COLOURS = ("#0072B2", "#D55E00", "#009E73", "#CC79A7")
PLAN_LINES = ("-", (0, (4, 1.5)), (0, (1, 1)), (0, (4, 1, 1, 1)))  # told apart in print as well


@dataclass(frozen=True, eq=False)
class Forecast:
    """What a model expects under one plan.

    Attributes:
        label: The plan's name in the legend.
        plan: What is given; its doses are marked.
        elapsed: Horizons.
        lower: Lower end of the band.
        median: Its middle.
        upper: Upper end.
        level: The probability that the band holds the outcome, at each horizon by itself.
    """

    label: str
    plan: Plan
    elapsed: Float64[np.ndarray, " horizons"]
    lower: Float64[np.ndarray, "patients horizons"]
    median: Float64[np.ndarray, "patients horizons"]
    upper: Float64[np.ndarray, "patients horizons"]
    level: float = 0.95


def draw_forecasts(
    history: Cohort,
    forecasts: Sequence[Forecast],
    *,
    back: float,
    outcome: str | None = None,
    columns: int = 4,
    path: str | PathLike[str] | None = None,
) -> Figure:
    """Draw each patient's recent past and one band per plan.

    Args:
        history: The patients, at the time of the decision.
        forecasts: One per plan, for the same patients.
        back: How much of the past to show.
        outcome: Which; default: the first.
        columns: How many patients stand side by side.
        path: Write the picture to this file too.
    """
    if not len(history) or not forecasts:
        raise CohortError("There is no patient or no forecast to draw.")
    columns = min(columns, len(history))
    rows = -(-len(history) // columns)
    schema = history.schema
    names = [variable.name for variable in schema.outcomes]
    column = 0 if outcome is None else names.index(outcome)
    with house_style():
        figure = Figure(figsize=(3.3 * columns, 2.7 * rows + 0.5), layout="constrained")
        cells = figure.add_gridspec(rows, columns)
        for i in range(len(history)):
            axes = figure.add_subplot(cells[divmod(i, columns)])
            _draw_past(axes, history[i : i + 1], column, back)
            for number, forecast in enumerate(forecasts):
                _draw_band(axes, history, i, column, forecast, number % len(PLAN_COLOURS))
            low, high = axes.get_ylim()
            axes.set_ylim(low - 0.18 * (high - low), high)  # room for the doses
            axes.set_yticks([tick for tick in axes.get_yticks() if low <= tick <= high])
            axes.set_xlim(-1.03 * back, 1.05 * max(float(forecast.elapsed.max()) for forecast in forecasts))
            axes.axvline(0.0, color=INK, lw=0.8, ls=(0, (3, 2)))
            axes.set_title(f"patient {history.patients[i]}")
            if i % columns == 0:
                axes.set_ylabel(schema.outcomes[column].label)
            if i + columns >= len(history):
                axes.set_xlabel(f"{schema.time_unit}s from now")
        figure.legend(handles=_legend(history, forecasts), loc="outside lower center", ncols=6, fontsize=8.5)
        if path is not None:
            figure.savefig(path)
    return figure


def _draw_past(axes: Axes, patient: Cohort, column: int, back: float) -> None:
    now = float(patient.history_end[0])
    values, times = patient.records.values[:, column], patient.records.times - now
    shown = ~np.isnan(values) & (times >= -back)
    axes.plot(times[shown], values[shown], "-", color=FAINT, lw=0.8)
    axes.plot(times[shown], values[shown], "o", color=INK, ms=3.4, zorder=3)
    events = patient.events
    for code, _ in enumerate(patient.schema.treatments):
        given = events.start[(events.treatment == code) & (events.start >= now - back)] - now
        _mark(axes, given, code)


def _draw_band(axes: Axes, history: Cohort, i: int, column: int, forecast: Forecast, number: int) -> None:
    last = history[i : i + 1].records
    # The band starts at the last value, if that was seen just now.
    now = [last.values[-1, column]] if last.times[-1] == history.history_end[i] else []
    elapsed = np.append(np.zeros(len(now)), forecast.elapsed)
    lower, median, upper = (np.append(now, part[i]) for part in (forecast.lower, forecast.median, forecast.upper))
    colour = PLAN_COLOURS[number]
    axes.fill_between(elapsed, lower, upper, color=colour, alpha=0.22, lw=0)
    axes.plot(elapsed, median, ls=PLAN_LINES[number], color=colour, lw=1.6)
    planned = forecast.plan.resolve(history[i : i + 1])
    for code, _ in enumerate(history.schema.treatments):
        given = planned.start[(planned.treatment == code) & (planned.start <= elapsed[-1])]
        _mark(axes, given, code, edge=colour)


def _mark(axes: Axes, times: np.ndarray, code: int, edge: str | None = None) -> None:
    """Doses stand on the bottom edge, one row per treatment."""
    colour = TREATMENTS[(code + 3) % len(TREATMENTS)]
    height = np.full(len(times), 0.03 + 0.07 * code)
    axes.plot(
        times,
        height,
        "v",
        ms=5,
        color=colour,
        mec=edge or colour,
        mew=1.0,
        transform=axes.get_xaxis_transform(),
        zorder=4,
    )


def _legend(history: Cohort, forecasts: Sequence[Forecast]) -> list[Line2D | Patch]:
    handles: list[Line2D | Patch] = [Line2D([], [], color=INK, marker="o", ms=4, lw=0, label="seen")]
    for number, forecast in enumerate(forecasts):
        look = {"color": PLAN_COLOURS[number % len(PLAN_COLOURS)], "ls": PLAN_LINES[number % len(PLAN_LINES)]}
        handles.append(Line2D([], [], lw=1.6, label=f"{forecast.label}: median and {forecast.level:.0%}", **look))
    for code, treatment in enumerate(history.schema.treatments):
        colour = TREATMENTS[(code + 3) % len(TREATMENTS)]
        handles.append(Line2D([], [], color=colour, marker="v", ls="", label=treatment.label))
    return handles
