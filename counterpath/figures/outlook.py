"""One patient's past and what may come under a plan, with the two uncertainties told apart."""

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

from counterpath.cohort import Cohort, Plan, Variable
from counterpath.cohort.records import TreatmentEvents
from counterpath.cohort.schema import Amounts, Treatment
from counterpath.figures.style import FAINT, INK, OUTCOME, TREATMENTS, house_style

MODEL = "#D55E00"
SHADES = (0.38, 0.24, 0.13)  # of the bands, from the narrowest to the widest
LANE = 0.42  # inches per treatment


@dataclass(frozen=True, eq=False)
class Outlook:
    """What may become of one outcome of one patient.

    Attributes:
        elapsed: Horizons, increasing.
        median: At each.
        bands: Lower and upper end by level, from the narrowest to the widest.
        mean: The expected outcome.
        model_std: How unsure the model is of it; None where it cannot tell.
    """

    elapsed: Float64[np.ndarray, " horizons"]
    median: Float64[np.ndarray, " horizons"]
    bands: dict[float, tuple[Float64[np.ndarray, " horizons"], Float64[np.ndarray, " horizons"]]]
    mean: Float64[np.ndarray, " horizons"]
    model_std: Float64[np.ndarray, " horizons"] | None


def draw_outlook(
    patient: Cohort,
    plan: Plan,
    outcomes: Sequence[Variable],
    outlooks: Sequence[Outlook],
    *,
    back: float | None = None,
    said: str = "",
    path: str | PathLike[str] | None = None,
) -> Figure:
    """Draw each outcome above, what was given and is planned below, on one clock with 0 now.

    Args:
        patient: One, as they are known now.
        plan: What is given from now on.
        outcomes: What is drawn.
        outlooks: One per outcome.
        back: How much of the past to show; default: three times the longest horizon.
        said: Of how well the prediction is supported.
        path: Write the picture to this file too.
    """
    schema = patient.schema
    longest = float(outlooks[0].elapsed[-1])
    back = 3 * longest if back is None else back
    lanes = len(schema.treatments)
    heights = [2.6] * len(outcomes) + ([0.25 + LANE * lanes] if lanes else [])
    with house_style():
        figure = Figure(figsize=(7.6, sum(heights) + 1.0), layout="constrained")
        every = figure.subplots(len(heights), 1, sharex=True, squeeze=False, height_ratios=heights)[:, 0]
        names = [variable.name for variable in schema.variables]
        for axes, variable, outlook in zip(every, outcomes, outlooks, strict=False):
            _draw_outcome(axes, patient, names.index(variable.name), outlook, back)
            axes.set_ylabel(variable.label)
        if lanes:
            _draw_lanes(every[-1], patient, plan.resolve(patient), back, longest)
        for axes in every:
            axes.axvline(0.0, color=INK, lw=0.8, ls=(0, (3, 2)))
        every[0].set_title(f"{schema.patient_column} {patient.patients[0]}", loc="left")
        every[0].set_title(said, loc="right", fontsize=8.5, color=INK)
        every[-1].set_xlim(-1.02 * back, 1.03 * longest)
        every[-1].set_xlabel(f"{schema.time_unit}s from now")
        figure.legend(handles=_legend(outlooks[0]), loc="outside lower center", ncols=3, fontsize=8.5)
        if path is not None:
            figure.savefig(path)
    return figure


def _draw_outcome(axes: Axes, patient: Cohort, column: int, outlook: Outlook, back: float) -> None:
    times = patient.records.times - patient.history_end[0]
    values = patient.records.values[:, column]
    seen = ~np.isnan(values) & (times >= -back)
    axes.plot(times[seen], values[seen], "-", color=FAINT, lw=0.8)
    axes.plot(times[seen], values[seen], "o", color=INK, ms=3.6, zorder=4)
    # Bands start at the last value, if that was seen just now.
    now = values[seen][-1:] if seen.any() and times[seen][-1] == 0 else values[:0]
    elapsed = np.append(np.zeros(len(now)), outlook.elapsed)
    for (lower, upper), shade in zip(reversed(outlook.bands.values()), reversed(SHADES), strict=True):
        axes.fill_between(elapsed, np.append(now, lower), np.append(now, upper), color=OUTCOME, alpha=shade, lw=0)
    axes.plot(elapsed, np.append(now, outlook.median), "-", color=OUTCOME, lw=1.6)
    axes.plot(outlook.elapsed, outlook.median, "o", color=OUTCOME, ms=2.6)
    if outlook.model_std is not None:
        axes.errorbar(
            outlook.elapsed, outlook.mean, 1.96 * outlook.model_std, fmt="none", ecolor=MODEL, elinewidth=1.6, capsize=3
        )


def _draw_lanes(axes: Axes, patient: Cohort, planned: TreatmentEvents, back: float, longest: float) -> None:
    """What was given is solid, what is planned is an outline."""
    now = float(patient.history_end[0])
    for lane, treatment in enumerate(patient.schema.treatments):
        colour = TREATMENTS[lane % len(TREATMENTS)]
        for events, zero, is_plan in ((patient.events, now, False), (planned, 0.0, True)):
            mine = events.treatment == lane
            start, stop = events.start[mine] - zero, events.stop[mine] - zero
            end = longest if is_plan else 0.0
            face = "white" if is_plan else colour
            doses = events.is_dose[mine]
            shown = doses & (start >= -back) & (start <= end)
            size = 60 * _relative(events.amount[mine][shown], treatment, "dose") + 12
            lanes = np.full(shown.sum(), lane)
            axes.scatter(start[shown], lanes, s=size, marker="v", facecolor=face, edgecolor=colour, lw=1.2)
            for row in np.flatnonzero(~doses & (stop > -back) & (start < end)):
                height = 0.2 + 0.5 * _relative(events.amount[mine][row], treatment, "rate")
                left, right = max(start[row], -back), min(stop[row], end)
                axes.barh(lane, right - left, left=left, height=height, facecolor=face, edgecolor=colour, lw=1.2)
    axes.set_yticks(range(len(patient.schema.treatments)), [t.label for t in patient.schema.treatments], fontsize=8)
    axes.set_ylim(len(patient.schema.treatments) - 0.4, -0.6)
    axes.tick_params(axis="y", length=0)
    axes.spines["left"].set_visible(False)


def _relative(amount: np.ndarray, treatment: Treatment, kind: str) -> np.ndarray:
    """To the largest that the cohort received."""
    amounts: Amounts | None = getattr(treatment, kind)
    return amount / amounts.highest if amounts is not None else np.ones_like(amount)


def _legend(outlook: Outlook) -> list[Line2D | Patch]:
    handles: list[Line2D | Patch] = [
        Line2D([], [], color=INK, marker="o", ms=4, lw=0, label="seen"),
        Line2D([], [], color=OUTCOME, lw=1.6, label="median"),
    ]
    for level, shade in zip(outlook.bands, SHADES, strict=True):
        handles.append(Patch(color=OUTCOME, alpha=shade, lw=0, label=f"{level:.0%} of outcomes"))
    if outlook.model_std is not None:
        handles.append(Line2D([], [], color=MODEL, marker="_", lw=1.6, label="expected outcome, 95% of models"))
    handles.append(Line2D([], [], color=INK, marker="v", ls="", label="given"))
    handles.append(Line2D([], [], color=INK, marker="v", mfc="white", ls="", label="planned"))
    return handles
