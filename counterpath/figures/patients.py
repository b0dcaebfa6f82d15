"""Patients as they were recorded: outcomes above, treatments below, on one clock."""

from __future__ import annotations

from os import PathLike
from typing import Any

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.lines import Line2D
from matplotlib.patches import Patch

from counterpath.cohort import Cohort, CohortError
from counterpath.cohort.findings import did_you_mean
from counterpath.cohort.tables_out import static_table
from counterpath.figures.style import FAINT, INK, OUTCOME, TREATMENTS, house_style


def draw_patients(
    cohort: Cohort,
    patients: Any = None,
    *,
    outcome: str | None = None,
    path: str | PathLike[str] | None = None,
) -> Figure:
    """Draw some patients' records: each visit with its outcome, held until the next, and what was given when.

    Args:
        cohort: Where they are.
        patients: As in `cohort[…]`: ids, a slice or a mask; default: the first six.
        outcome: Which outcome; default: the first.
        path: Write the picture to this file too.
    """
    chosen = cohort[:6] if patients is None else cohort[patients]
    if not len(chosen):
        raise CohortError("There is no patient to draw.")
    names = [variable.name for variable in cohort.schema.outcomes]
    if outcome is not None and outcome not in names:
        raise CohortError(f"{outcome!r} is no outcome. {did_you_mean(outcome, names)}")
    column = names.index(outcome) if outcome is not None else 0
    columns = min(3, len(chosen))
    rows = -(-len(chosen) // columns)
    lanes = len(cohort.schema.treatments)
    with house_style():
        figure = Figure(figsize=(4.1 * columns, (2.3 + 0.24 * lanes) * rows + 0.5), layout="constrained")
        cells = figure.add_gridspec(rows, columns)
        seen = chosen.records.values[:, column]
        for i in range(len(chosen)):
            heights = [5.0, 0.2 + 0.55 * lanes] if lanes else [1.0]
            inner = cells[divmod(i, columns)].subgridspec(len(heights), 1, height_ratios=heights, hspace=0.04)
            axes = figure.add_subplot(inner[0])
            one = chosen[i : i + 1]
            _draw_outcome(axes, one, column)
            axes.set_ylim(*_limits(seen))
            axes.set_title(_title(one))
            last = axes
            if lanes:
                last = figure.add_subplot(inner[1], sharex=axes)
                axes.tick_params(axis="x", labelbottom=False, length=0)
                _draw_treatments(last, one)
                last.tick_params(labelleft=i % columns == 0)
            if i % columns == 0:
                axes.set_ylabel(cohort.schema.outcomes[column].label)
            if i + columns >= len(chosen):
                last.set_xlabel(f"time ({cohort.schema.time_unit}s)")
        figure.legend(handles=_legend(cohort, column), loc="outside lower center", ncols=6, fontsize=8.5)
        if path is not None:
            figure.savefig(path)
    return figure


def _limits(values: np.ndarray) -> tuple[float, float]:
    """The same range for all, so that patients can be compared."""
    present = values[~np.isnan(values)]
    if not len(present):
        return 0.0, 1.0
    low, high = float(present.min()), float(present.max())
    margin = 0.08 * (high - low) or 1.0
    return low - margin, high + margin


def _title(patient: Cohort) -> str:
    table = static_table(patient)
    described = [
        f"{table[v.name][0]}{f' {v.unit}' if v.unit else ''}"
        for v in patient.schema.static[:3]
        if table[v.name][0] is not None
    ]
    return f"{patient.patients[0]}" + (f"   {', '.join(described)}" if described else "")


def _draw_outcome(axes: Axes, patient: Cohort, column: int) -> None:
    values, times = patient.records.values[:, column], patient.records.times
    present = ~np.isnan(values)
    end = float(patient.history_end[0])
    if present.any():
        held = np.append(times[present], max(end, times[present][-1]))
        levels = np.append(values[present], values[present][-1])
        axes.step(held, levels, where="post", color=OUTCOME, lw=0.9, alpha=0.45)
        axes.plot(times[present], values[present], "o", color=OUTCOME, ms=3.6, clip_on=False, zorder=3)
    blank = times[~present]
    axes.plot(blank, np.zeros(len(blank)), "|", ms=9, color=FAINT, transform=axes.get_xaxis_transform())
    if not np.isnan(patient.follow_up_end[0]):
        axes.axvline(end, color=INK, lw=0.9, ls=(0, (3, 2)))


def _draw_treatments(axes: Axes, patient: Cohort) -> None:
    events, schema = patient.events, patient.schema
    end = float(patient.history_end[0])
    for lane, treatment in enumerate(schema.treatments):
        colour = TREATMENTS[lane % len(TREATMENTS)]
        mine = events.treatment == lane
        doses = mine & events.is_dose
        if doses.any():
            most = treatment.dose.highest if treatment.dose else events.amount[doses].max()
            size = 18 + 60 * events.amount[doses] / most
            axes.scatter(events.start[doses], np.full(doses.sum(), lane), s=size, marker="v", color=colour, lw=0)
        for row in np.flatnonzero(mine & ~events.is_dose):
            most = treatment.rate.highest if treatment.rate else events.amount[row]
            stop = min(events.stop[row], max(end, events.start[row]))
            height = 0.25 + 0.55 * events.amount[row] / most
            axes.barh(lane, stop - events.start[row], left=events.start[row], height=height, color=colour, lw=0)
    axes.set_ylim(len(schema.treatments) - 0.4, -0.6)
    axes.set_yticks(range(len(schema.treatments)), [treatment.name for treatment in schema.treatments], fontsize=8)
    axes.tick_params(axis="y", length=0)
    axes.spines["left"].set_visible(False)
    if not np.isnan(patient.follow_up_end[0]):
        axes.axvline(end, color=INK, lw=0.9, ls=(0, (3, 2)))


def _legend(cohort: Cohort, column: int) -> list[Line2D | Patch]:
    handles: list[Line2D | Patch] = [
        Line2D([], [], color=OUTCOME, marker="o", ms=4, lw=0.9, label=cohort.schema.outcomes[column].label)
    ]
    if np.isnan(cohort.records.values[:, column]).any():
        handles.append(Line2D([], [], color=FAINT, marker="|", ls="", ms=8, label="visit without it"))
    for lane, treatment in enumerate(cohort.schema.treatments):
        colour = TREATMENTS[lane % len(TREATMENTS)]
        if treatment.dose:
            handles.append(Line2D([], [], color=colour, marker="v", ls="", label=f"{treatment.label}, dose"))
        if treatment.rate:
            handles.append(Patch(color=colour, label=f"{treatment.label}, rate"))
    if not np.isnan(cohort.follow_up_end).all():
        handles.append(Line2D([], [], color=INK, lw=0.9, ls=(0, (3, 2)), label="end of follow-up"))
    return handles
