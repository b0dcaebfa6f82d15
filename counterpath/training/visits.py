"""Where the rate of visits is learned: places after each cut, with or without a visit."""

from __future__ import annotations

import math
from dataclasses import replace

import jax.numpy as jnp
import numpy as np
from jaxtyping import Float64

from counterpath.cohort import Cohort
from counterpath.cohort.records import Observations
from counterpath.models.inputs import Visits
from counterpath.paths.ragged_search import rows_before
from counterpath.training.cut_times import ROUNDING, CutTimes, cuts_at, first_records

PLACES = 8  # at which the integral of a rate is taken, one at random from each of equal stretches
MOST_ON_GRID = 32  # times of a grid within the longest horizon: a finer one is as good as none


def seen_outcomes(cohort: Cohort) -> Observations:
    """Records with at least one outcome."""
    return cohort.records.keep(~np.all(np.isnan(cohort.records.values[:, : len(cohort.schema.outcomes)]), axis=1))


def visit_interval(cohort: Cohort, max_horizon: float) -> float:
    """Of the grid on which all outcomes were seen."""
    return grid_interval(seen_outcomes(cohort).times, max_horizon)


def grid_interval(times: Float64[np.ndarray, " rows"], max_horizon: float) -> float:
    """Of the grid on which all times lie, such as a day; 0 where there is none."""
    times = np.unique(times)
    gaps = np.diff(times)
    if not len(gaps):
        return 0.0
    interval = float(gaps.min())
    steps = (times - times[0]) / interval
    is_grid = np.allclose(steps, np.round(steps), atol=1e-6) and max_horizon / interval <= MOST_ON_GRID
    return interval if is_grid else 0.0


def with_visits(
    cohort: Cohort, found: CutTimes, max_horizon: float, interval: float, rng: np.random.Generator
) -> CutTimes:
    """The same cuts with more horizons after their outcomes: at which somebody came, or could have come.

    Args:
        cohort: Whole trajectories.
        found: Their cuts and outcomes.
        max_horizon: The longest horizon.
        interval: Of the grid on which visits lie; 0 where there is none.
        rng: For places between visits.
    """
    seen, end = seen_outcomes(cohort), cohort.history_end[:, None]
    targets = np.zeros(found.elapsed.shape)
    if interval:
        first = seen.times.min(initial=np.inf)
        number = int(np.floor(max_horizon / interval * (1 + ROUNDING)))
        next_step = np.floor((found.times - first) / interval * (1 + ROUNDING) + ROUNDING) + 1
        places = first + (next_step[..., None] + np.arange(number)) * interval
        shape, flat = places.shape, places.reshape(len(cohort), -1)
        near = interval / 4
        visits = rows_before(seen.offsets, seen.times, flat + near, side="right") - rows_before(
            seen.offsets, seen.times, flat - near, side="right"
        )
        elapsed = places - found.times[..., None]
        counts = (places <= end[..., None] + near) & (elapsed <= max_horizon * (1 + ROUNDING))
        has_come = counts & (visits.reshape(shape) > 0)
        came, exposure = has_come.astype(np.float64), (counts & ~has_come).astype(np.float64)
    else:
        span = np.clip(end - found.times, 0.0, max_horizon)
        stretch = (np.arange(PLACES) + rng.random((*found.times.shape, PLACES))) / PLACES
        elapsed = span[..., None] * stretch
        came, exposure = np.zeros(elapsed.shape), np.broadcast_to(span[..., None] / PLACES, elapsed.shape)
        after, until = (
            rows_before(seen.offsets, seen.times, times, side="right")
            for times in (found.times, found.times + max_horizon * (1 + ROUNDING))
        )
        # Of many visits only some are targets, and these stand for all.
        targets = found.present * ((until - after) / np.maximum(found.present.sum(axis=-1), 1))[..., None]
    real = found.is_real[..., None]
    none = np.zeros(elapsed.shape, dtype=bool)
    return replace(
        found,
        row=np.concatenate([found.row, np.zeros(elapsed.shape, dtype=np.int64)], axis=-1),
        elapsed=np.concatenate([found.elapsed, np.clip(elapsed, 0.0, max_horizon)], axis=-1),
        present=np.concatenate([found.present, none], axis=-1),
        came=np.concatenate([targets, came], axis=-1) * real,
        exposure=np.concatenate([np.zeros(targets.shape), exposure], axis=-1) * real,
    )


def with_cuts_for_visits(
    cohort: Cohort, found: CutTimes, max_horizon: float, interval: float, rng: np.random.Generator
) -> CutTimes:
    """One more cut of each patient, after the others: visits are learned there, and outcomes where they were.

    After a cut before the last outcome everybody is seen, since that visit has chosen it. The further one is chosen by
    no visit: it lies before any time of the follow-up, as if an outcome had been recorded then.

    Args:
        cohort: Whole trajectories.
        found: Their cuts and outcomes.
        max_horizon: The longest horizon.
        interval: Of the grid on which visits lie; 0 where there is none.
        rng: For where the cuts lie, and for places between visits.
    """
    first, end = first_records(cohort), cohort.history_end
    times = np.where(end > first, np.maximum(_any_time(cohort, interval, rng) - max_horizon, first), end)
    further = cuts_at(cohort, times[:, None], max_horizon, rng, keeps_unfollowed=True)
    further = with_visits(cohort, further, max_horizon, interval, rng)
    width = max(found.elapsed.shape[-1], further.elapsed.shape[-1])
    one, other = (_of_width(cuts, width, max_horizon) for cuts in (found, further))
    none = np.zeros(one.elapsed.shape)
    return CutTimes(
        times=np.concatenate([one.times, np.where(other.is_real, other.times, one.times[:, -1:])], axis=1),
        number=one.number + other.number,
        row=np.concatenate([one.row, other.row], axis=1),
        elapsed=np.concatenate([one.elapsed, other.elapsed], axis=1),
        present=np.concatenate([one.present, np.zeros(other.present.shape, dtype=bool)], axis=1),
        came=np.concatenate([none, other.came], axis=1),
        exposure=np.concatenate([none, other.exposure], axis=1),
    )


def _any_time(cohort: Cohort, interval: float, rng: np.random.Generator) -> Float64[np.ndarray, " patients"]:
    """Of each patient, after the first record and up to the end: on the grid, where there is one."""
    end, share = cohort.history_end, rng.random(len(cohort))
    first = np.minimum(first_records(cohort), end)
    if not interval:
        return end - share * (end - first)
    start = seen_outcomes(cohort).times.min(initial=np.inf)
    before, until = (np.floor((time - start) / interval * (1 + ROUNDING) + ROUNDING) for time in (first, end))
    return np.where(until > before, start + (until - np.floor(share * (until - before))) * interval, end)


def _of_width(cuts: CutTimes, width: int, max_horizon: float) -> CutTimes:
    """With as many places after each cut."""
    more = ((0, 0), (0, 0), (0, width - cuts.elapsed.shape[-1]))
    return replace(
        cuts,
        row=np.pad(cuts.row, more),
        elapsed=np.pad(cuts.elapsed, more, constant_values=max_horizon),
        present=np.pad(cuts.present, more),
        came=np.pad(cuts.came, more) if cuts.came.shape == cuts.elapsed.shape else cuts.came,
        exposure=np.pad(cuts.exposure, more) if cuts.exposure.shape == cuts.elapsed.shape else cuts.exposure,
    )


def usual_visits(visits: Visits) -> float:
    """The logit of the share of places of a grid with a visit, or the logarithm of visits per unit of time."""
    came, exposure = (float(jnp.sum(part)) for part in (visits.came, visits.exposure))
    return math.log(max(came, 0.5) / max(exposure, 0.5))
