"""Where training trajectories are cut, and which outcomes follow each cut."""

from __future__ import annotations

from dataclasses import dataclass, fields
from typing import Literal

import numpy as np
from jaxtyping import Bool, Float64, Int64

from counterpath.cohort import Cohort, Grid
from counterpath.cohort.records import Observations
from counterpath.paths.ragged_search import rows_before

Cuts = Literal["many", "last"]
TARGETS_AT_MOST = 16  # outcomes after one cut; of more, as many are taken at random
CUTS_WITH_OWN_WINDOW = 16
ROUNDING = 1e-9


@dataclass(frozen=True, eq=False)
class CutTimes:
    """Where trajectories are cut, and what followed.

    Attributes:
        times: Candidates of each patient, in order; after `number` of them, the last is repeated.
        number: How many each patient has.
        row: The record that holds each target.
        elapsed: From the cut to the target.
        present: Whether there is such a target.
        came: How often each horizon counts as a visit; of no use where visits are not looked at.
        exposure: How often, or for how much time, it counts as one without.
    """

    times: Float64[np.ndarray, "patients cuts"]
    number: Int64[np.ndarray, " patients"]
    row: Int64[np.ndarray, "patients cuts targets"]
    elapsed: Float64[np.ndarray, "patients cuts targets"]
    present: Bool[np.ndarray, "patients cuts targets"]
    came: Float64[np.ndarray, "patients cuts #targets"]
    exposure: Float64[np.ndarray, "patients cuts #targets"]

    def of(self, some: slice) -> CutTimes:
        """Those of some patients."""
        return CutTimes(*(getattr(self, field.name)[some] for field in fields(self)))

    @property
    def is_real(self) -> Bool[np.ndarray, "patients cuts"]:
        """False for cuts that only fill up the row of a patient who has fewer."""
        return np.arange(self.times.shape[1]) < self.number[:, None]


def candidate_cuts(
    cohort: Cohort,
    grid: Grid,
    max_horizon: float,
    cuts: Cuts,
    rng: np.random.Generator,
    *,
    keeps_unfollowed: bool = False,
) -> CutTimes:
    """Times at which each trajectory may be cut, with the outcomes within `max_horizon` after them.

    `many`: where each record time has a cell of its own, the window's start and the end of every cell; otherwise in
    every cell of each patient one time, at a record or between records with equal chances. Where records are longer
    than the grid's lookback, a few over the whole of them. `last`: one cut, so that the last outcome is as late after
    it as may be. Cuts that no outcome follows are left out, unless they are wanted too, since that nobody came is what
    the rate of visits is learned from.
    """
    first = first_records(cohort)
    if cuts == "last":
        seen = cohort.records.keep(_has_outcome(cohort))
        has = seen.per_patient > 0
        last = np.full(len(has), -np.inf)
        last[has] = seen.times[seen.offsets[1:][has] - 1]
        times = np.maximum(last - max_horizon, first)[:, None]
    else:
        times = _one_per_cell(cohort, grid, first, rng)
    return cuts_at(cohort, times, max_horizon, rng, keeps_unfollowed=keeps_unfollowed)


def cuts_at(
    cohort: Cohort,
    times: Float64[np.ndarray, "patients cuts"],
    max_horizon: float,
    rng: np.random.Generator,
    *,
    keeps_unfollowed: bool,
) -> CutTimes:
    """Those of these times at which a patient is followed, with what followed; as `candidate_cuts`."""
    first, outcomes = first_records(cohort), _has_outcome(cohort)
    seen, numbers = cohort.records.keep(outcomes), np.flatnonzero(outcomes)
    after = rows_before(seen.offsets, seen.times, times, side="right")
    until = rows_before(seen.offsets, seen.times, times + max_horizon * (1 + ROUNDING), side="right")
    followed = times < cohort.history_end[:, None] if keeps_unfollowed else until > after
    useful = followed & (times >= first[:, None])
    order = np.argsort(~useful, axis=1, kind="stable")
    number = useful.sum(axis=1)
    order = np.take_along_axis(order, np.minimum(np.arange(order.shape[1]), np.maximum(number - 1, 0)[:, None]), 1)
    width = max(int(number.max(initial=0)), 1)
    times, after, until = (np.take_along_axis(a, order, axis=1)[:, :width] for a in (times, after, until))
    targets = min(int(np.max(until - after, initial=0)), TARGETS_AT_MOST)
    place = _spread(until - after, targets, rng)
    present = (place < (until - after)[..., None]) & (number > 0)[:, None, None]
    index = seen.offsets[:-1, None, None] + after[..., None] + place
    index = np.where(present, index, 0)
    elapsed = np.where(present, np.clip(seen.times[index] - times[..., None], 0.0, max_horizon), max_horizon)
    nothing = np.zeros((*times.shape, 1))
    return CutTimes(times, number.astype(np.int64), numbers[index], elapsed, present, nothing, nothing)


def first_records(cohort: Cohort) -> Float64[np.ndarray, " patients"]:
    """When each patient was first seen; never, where there is no record."""
    records = cohort.records
    place = np.minimum(records.offsets[:-1], records.rows - 1)
    return np.where(records.per_patient > 0, records.times[place], np.inf)


def _has_outcome(cohort: Cohort) -> Bool[np.ndarray, " rows"]:
    return ~np.all(np.isnan(cohort.records.values[:, : len(cohort.schema.outcomes)]), axis=1)


def _spread(available: np.ndarray, targets: int, rng: np.random.Generator) -> np.ndarray:
    """Which of the available outcomes are taken: all, or one at random from each of equal stretches."""
    place = np.broadcast_to(np.arange(targets), (*available.shape, targets)).copy()
    many = available > targets
    if many.any():
        share = (place[many] + rng.random((int(many.sum()), targets))) / targets
        place[many] = np.floor(share * available[many][:, None]).astype(np.int64)
    return place


def _one_per_cell(cohort: Cohort, grid: Grid, first: np.ndarray, rng: np.random.Generator) -> np.ndarray:
    records = cohort.records
    start = np.where(np.isfinite(first), first, 0.0)[:, None]
    span = cohort.history_end - start[:, 0]
    if np.any(span > grid.lookback * (1 + ROUNDING)):
        return _spread_over(records, start, span, rng)
    edges = start + grid.edges
    on_edges = np.isin(records.times - start[:, 0][records.patient_of_row], grid.edges).mean()
    if on_edges > 0.5:
        return edges
    between = edges[:, :-1] + rng.random((len(cohort), grid.cells)) * np.diff(grid.edges)
    before, until = (
        rows_before(records.offsets, records.times, e, side="right") for e in (edges[:, :-1], edges[:, 1:])
    )
    chosen = before + np.floor(rng.random(before.shape) * (until - before)).astype(np.int64)
    row = np.minimum(records.offsets[:-1, None] + chosen, max(records.rows - 1, 0))
    at_record = (until > before) & (rng.random(before.shape) < 0.5)
    return np.concatenate([start, np.where(at_record, records.times[row], between)], axis=1)


def _spread_over(records: Observations, start: np.ndarray, span: np.ndarray, rng: np.random.Generator) -> np.ndarray:
    """A few cuts over all of a long record, each of which has a window of its own: at records, and between them."""
    stretch = (np.arange(CUTS_WITH_OWN_WINDOW) + rng.random((len(start), CUTS_WITH_OWN_WINDOW))) / CUTS_WITH_OWN_WINDOW
    times = start + stretch * span[:, None]
    number = rows_before(records.offsets, records.times, times, side="right")
    row = np.minimum(records.offsets[:-1, None] + np.maximum(number - 1, 0), max(records.rows - 1, 0))
    return np.where(rng.random(times.shape) < 0.5, np.maximum(records.times[row], start), times)
