"""Where a trajectory is cut to judge a model, and what was recorded after each cut."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
from jaxtyping import Float64

from counterpath.cohort import Cohort, CohortError
from counterpath.cohort.cuts import outcomes_after

SAME_TIME = 1e-6  # of the horizon: a record this near counts as taken at it
MOST_OUTCOMES = 8  # after one cut; of more, some are chosen that are spread over them


def recorded_outcomes(
    cohort: Cohort, history: Cohort, horizons: Float64[np.ndarray, " horizons"], which: int = 0
) -> Float64[np.ndarray, "patients horizons"]:
    """One outcome as it was recorded at each horizon; NaN where there was no record."""
    later = outcomes_after(cohort, history)
    found = np.full((len(history), len(horizons)), np.nan)
    for i, horizon in enumerate(horizons):
        at = np.abs(later.times - horizon) <= SAME_TIME * horizon
        found[later.patient_of_row[at], i] = later.values[at, which]
    return found


def later_outcomes(
    cohort: Cohort, history: Cohort, max_horizon: float, which: int = 0
) -> tuple[Float64[np.ndarray, "patients horizons"], Float64[np.ndarray, "patients horizons"]]:
    """Elapsed times and values of what was recorded after each history; NaN values where others had more."""
    later = outcomes_after(cohort, history, max_horizon)
    later = later.keep(~np.isnan(later.values[:, which]))
    width = int(min(np.max(later.per_patient, initial=1), MOST_OUTCOMES))
    elapsed = np.full((len(history), width), max_horizon)
    values = np.full((len(history), width), np.nan)
    for patient in range(len(history)):
        rows = np.arange(later.offsets[patient], later.offsets[patient + 1])
        chosen = _spread_over(rows, width)
        elapsed[patient, : len(chosen)] = later.times[chosen]
        values[patient, : len(chosen)] = later.values[chosen, which]
    return elapsed, values


def histories_along(cohort: Cohort, max_horizon: float, cuts: int) -> Iterator[Cohort]:
    """Everybody's first cut, then the second of those who have one, and so on. Outcomes follow each of them."""
    chosen = [_spread_over(times, cuts) for times in _followed_records(cohort, max_horizon)]
    for number in range(cuts):
        who = np.array([i for i, times in enumerate(chosen) if len(times) > number], dtype=np.int64)
        if len(who):
            yield cohort.take(who).until(np.array([chosen[i][number] for i in who]))


def history_at_random(cohort: Cohort, max_horizon: float, rng: np.random.Generator) -> Cohort:
    """Each patient cut once, at a random record that outcomes follow; those without one are left out."""
    followed = _followed_records(cohort, max_horizon)
    who = np.array([i for i, times in enumerate(followed) if len(times)], dtype=np.int64)
    if not len(who):
        raise CohortError("No outcome follows an earlier record within max_horizon, so there is nothing to learn from.")
    return cohort.take(who).until(np.array([rng.choice(followed[i]) for i in who]))


def _followed_records(cohort: Cohort, max_horizon: float) -> list[np.ndarray]:
    """Times of each patient's records that an outcome follows within the longest horizon."""
    known = np.asarray(~np.isnan(cohort.records.values[:, : len(cohort.schema.outcomes)]).all(axis=1))
    found = []
    for patient in range(len(cohort)):
        rows = slice(cohort.records.offsets[patient], cohort.records.offsets[patient + 1])
        times, seen = cohort.records.times[rows], cohort.records.times[rows][known[rows]]
        followed = np.searchsorted(seen, times, side="right") < np.searchsorted(seen, times + max_horizon, side="right")
        found.append(times[followed])
    return found


def _spread_over(values: np.ndarray, number: int) -> np.ndarray:
    """At most so many of them, from the first to the last."""
    if len(values) <= number:
        return values
    return values[np.round(np.linspace(0, len(values) - 1, number)).astype(np.int64)]
