"""Where treatments are guessed, for balanced representations: at each cut, and at the outcomes that follow it."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
from jaxtyping import Bool, Float64

from counterpath.cohort import Cohort
from counterpath.paths.ragged_search import QueryTimes, rows_before
from counterpath.training.cut_times import ROUNDING, CutTimes
from counterpath.training.visits import grid_interval

STRETCHES = 8  # of the longest horizon; a decision is about one of them where treatments lie on no grid


def with_cuts_themselves(found: CutTimes) -> CutTimes:
    """The same with one more place after each cut: none at all, where the state is the encoder's."""
    none = np.zeros((*found.times.shape, 1))

    def wider(places: Float64[np.ndarray, "patients cuts #targets"]) -> Float64[np.ndarray, "patients cuts #wider"]:
        return np.concatenate([places, none], axis=-1) if places.shape[-1] == found.elapsed.shape[-1] else places

    return replace(
        found,
        row=np.concatenate([found.row, none.astype(np.int64)], axis=-1),
        elapsed=np.concatenate([found.elapsed, none], axis=-1),
        present=np.concatenate([found.present, none.astype(bool)], axis=-1),
        came=wider(found.came),
        exposure=wider(found.exposure),
    )


def decisions(
    cohort: Cohort, found: CutTimes, max_horizon: float, outcomes: float
) -> tuple[Float64[np.ndarray, "patients cuts places treatments"], Float64[np.ndarray, "patients cuts places"]]:
    """What was given at each place, and how much each counts: all of them together as much as the outcomes.

    Args:
        cohort: Whole trajectories.
        found: Cuts with outcomes, and themselves as the last place.
        max_horizon: The longest horizon.
        outcomes: Their number.
    """
    interval = grid_interval(cohort.events.start, max_horizon)
    window = min(interval, max_horizon) or max_horizon / STRETCHES
    # The times of records as they are: a sum of two parts would miss them by a bit.
    times = np.where(found.present, cohort.records.times[found.row], found.times[..., None] + found.elapsed)
    is_place = found.present.copy()
    is_place[..., -1] = True
    # What is given after the end of follow-up, nobody knows; on a grid, a time stands for itself alone.
    known_until = times if interval else times + window
    end = cohort.history_end[:, None, None]
    known = known_until < end - ROUNDING if interval else known_until <= end * (1 + ROUNDING)
    counts = is_place & found.is_real[..., None] & known
    given = given_within(cohort, times.reshape(len(cohort), -1), window).reshape(*times.shape, -1)
    return given.astype(np.float64), counts * (outcomes / max(counts.sum(), 1))


def given_within(cohort: Cohort, times: QueryTimes, window: float) -> Bool[np.ndarray, "patients queries treatments"]:
    """Whether each treatment began within a window from each time on, or was running then."""
    near, columns = ROUNDING * window, []
    for treatment in range(len(cohort.schema.treatments)):
        events = cohort.events.keep(cohort.events.treatment == treatment)
        begun, before = (
            rows_before(events.offsets, events.start, at, side="left") for at in (times + window - near, times - near)
        )
        lasting = events.keep(~events.is_dose)  # one after the other
        started, stopped = (
            rows_before(lasting.offsets, edge, times, side="right") for edge in (lasting.start, lasting.stop)
        )
        columns.append((begun > before) | (started > stopped))
    return np.stack(columns, axis=-1)
