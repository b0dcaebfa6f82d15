"""A tumour patient's record on the world's clock: what drove the tumour between any two times."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from jaxtyping import Bool, Float64, Int64

from counterpath.cohort import Cohort, Plan
from counterpath.simulators.tumor_assignment import TREATMENTS
from counterpath.simulators.tumor_dynamics import HALF_LIFE_DAYS
from counterpath.simulators.tumor_truth import TumorSettings


@dataclass(frozen=True, eq=False)
class Timeline:
    """Segments end to end, padded at the end: within a segment nothing new is given and nothing is seen.

    In the daily world each segment is a day. In continuous time it reaches from one event to the next.

    Attributes:
        steps: Length of each segment in steps of the world; 0 for padding.
        concentration: Of chemotherapy when the segment starts, with what is given then.
        radio_gy: Given when the segment starts.
        seen: Whether the volume was observed at the segment's end.
        log_volume: Its log there; 0 where not seen.
        start: Log volume where the timeline starts.
        ends: The step at which each segment ends.
    """

    steps: Int64[np.ndarray, "patients segments"]
    concentration: Float64[np.ndarray, "patients segments"]
    radio_gy: Float64[np.ndarray, "patients segments"]
    seen: Bool[np.ndarray, "patients segments"]
    log_volume: Float64[np.ndarray, "patients segments"]
    start: Float64[np.ndarray, " patients"]
    ends: Int64[np.ndarray, "patients segments"]


def observed_timeline(history: Cohort, settings: TumorSettings) -> Timeline:
    """From each patient's first visit to the last."""
    records = history.records
    first = settings.step_of(records.times[records.offsets[:-1]])
    last = settings.step_of(records.times[records.offsets[1:] - 1])
    number, step = records.patient_of_row, settings.step_of(records.times)
    logs = np.log(records.values[:, 0])
    return _timeline(history, settings, _given(history, settings), first, last, (number, step, logs), ())


def future_timeline(
    history: Cohort, plan: Plan, horizons: Float64[np.ndarray, "patients horizons"], settings: TumorSettings
) -> Timeline:
    """From each patient's last visit on, through the end of the history, to the longest horizon under a plan."""
    records = history.records
    end = settings.step_of(history.history_end)
    last = settings.step_of(records.times[records.offsets[1:] - 1])
    ahead = settings.step_of(horizons)
    planned = plan.resolve(history)
    doses = _given(history, settings)
    later = (
        planned.patient_of_row,
        settings.step_of(planned.start) + end[planned.patient_of_row],
        _kinds(history)[planned.treatment],
        planned.amount,
    )
    doses = tuple(np.concatenate([a, b]) for a, b in zip(doses, later, strict=True))
    logs = np.log(records.values[records.offsets[1:] - 1, 0])
    seen = (np.arange(len(history)), last, logs)
    marks = tuple(end + step for step in ahead.T)
    return _timeline(history, settings, doses, last, end + ahead.max(axis=1), seen, marks)


def _kinds(history: Cohort) -> Int64[np.ndarray, " treatments"]:
    return np.array([TREATMENTS.index(treatment.name) for treatment in history.schema.treatments], dtype=np.int64)


def _given(history: Cohort, settings: TumorSettings) -> tuple[np.ndarray, ...]:
    events = history.events
    return events.patient_of_row, settings.step_of(events.start), _kinds(history)[events.treatment], events.amount


def _timeline(
    history: Cohort,
    settings: TumorSettings,
    doses: tuple[np.ndarray, ...],
    begin: np.ndarray,
    finish: np.ndarray,
    visits: tuple[np.ndarray, np.ndarray, np.ndarray],
    marks: tuple[np.ndarray, ...],
) -> Timeline:
    """Cut the time from `begin` to `finish` at every dose, visit and mark."""
    number = len(history)
    who, when, kind, amount = doses
    total = int(finish.max()) + 1
    cut = np.zeros((number, total + 1), bool)
    rows = np.arange(number)
    if not settings.continuous:
        cut[:, :] = True
    cut[who[when <= total], when[when <= total]] = True
    cut[visits[0], visits[1]] = True
    for mark in (begin, finish, *marks):
        cut[rows, mark] = True
    steps = np.arange(total + 1)
    cut &= (steps >= begin[:, None]) & (steps <= finish[:, None])
    counts = cut.sum(axis=1)
    longest = int(counts.max()) - 1
    patient, step = np.nonzero(cut)
    place = np.arange(len(step)) - np.repeat(np.cumsum(counts) - counts, counts)
    edges = np.repeat(finish[:, None], longest + 1, axis=1)
    edges[patient, place] = step

    given = np.zeros((number, total + 1, 2))
    inside = when <= total
    np.add.at(given, (who[inside], when[inside], kind[inside]), amount[inside])
    half = 0.5 ** (settings.step_days / HALF_LIFE_DAYS)
    level = np.zeros((number, total + 1))
    running = np.zeros(number)
    for i in range(total + 1):
        running = running * half + given[:, i, 0] if i else given[:, 0, 0]
        level[:, i] = running
    seen = np.zeros((number, total + 1), bool)
    logs = np.zeros((number, total + 1))
    seen[visits[0], visits[1]] = True
    logs[visits[0], visits[1]] = visits[2]
    left, right = edges[:, :-1], edges[:, 1:]
    real = right > left
    return Timeline(
        steps=right - left,
        concentration=np.take_along_axis(level, left, axis=1),
        radio_gy=np.where(real, np.take_along_axis(given[:, :, 1], left, axis=1), 0.0),
        seen=np.take_along_axis(seen, right, axis=1) & real,
        log_volume=np.take_along_axis(logs, right, axis=1),
        start=logs[rows, begin],
        ends=right,
    )
