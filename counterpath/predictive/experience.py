"""What training patients were given, and after what: how often a plan like this was seen after a history like this.

A situation is, for each treatment, a coarse class of what was given lately and one of what is given from now on. Only
numbers of training windows per situation are kept, nothing of a single patient.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np
from jaxtyping import Bool, Float64, Int8, Int64

from counterpath.cohort import Cohort, TreatmentEvents
from counterpath.cohort.rounding import rounded_up
from counterpath.cohort.schema import Treatment
from counterpath.paths.ragged_search import rows_before, running_sum
from counterpath.paths.treatment_channels import at_row, infused_and_rate

SHARES = np.arange(1, 6) / 5  # of the longest horizon, at which plans are compared
WINDOWS, WINDOWS_PER_PATIENT = 100_000, 64
PLANNED = np.concatenate([[0.5, 1.5, 2.5, 3.5], 4.5 * 1.5 ** np.arange(12)])  # usual doses, or usual rates
LATELY = np.concatenate([[0.5, 1.5], 3.0 * 2.0 ** np.arange(8)])  # the same, within one longest horizon before now
LONGER_AGO = np.array([2.0, 4.0])  # longest horizons since the last, where there was none lately
NEVER = -len(LONGER_AGO) - 2
LEVELS = np.arange(1, 100) / 100
DIGITS = 2

Times = Float64[np.ndarray, "patients times"]
Situations = Int8[np.ndarray, "situations classes"]


@dataclass(frozen=True, eq=False)
class Experience:
    """Training windows by situation.

    Attributes:
        horizons: Elapsed times at which plans are compared.
        windows: How many training windows were followed so long.
        situations: Each that was seen: number of the horizon, then what was given lately, then what was planned.
        counts: In how many windows.
        longest_unseen: The longest time from an outcome to a cut after it.
        usual_spread: Of the model's means, on its own scale, for validation patients: quantiles at `LEVELS`.
    """

    horizons: Float64[np.ndarray, " horizons"]
    windows: Int64[np.ndarray, " horizons"]
    situations: Situations
    counts: Int64[np.ndarray, " situations"]
    longest_unseen: float
    usual_spread: Float64[np.ndarray, "horizons outcomes levels"] | None = None

    def __post_init__(self):
        number, rows = len(self.horizons), len(self.counts)
        whole = self.windows.shape == (number,) and self.situations.shape[:1] == (rows,) and self.situations.ndim == 2
        kinds = self.situations.dtype == np.int8 and self.counts.dtype == np.int64
        if not (whole and kinds) or (
            rows and not 0 <= self.situations[:, 0].min() <= self.situations[:, 0].max() < number
        ):
            raise ValueError("what training patients were given is not told in full")
        if self.usual_spread is not None and self.usual_spread.shape[::2] != (number, len(LEVELS)):
            raise ValueError("the usual spread is not told at every level")

    @classmethod
    def of(cls, train: Cohort, max_horizon: float) -> Experience:
        """From whole trajectories, cut at times that are spread evenly over each."""
        horizons = max_horizon * SHARES
        number = int(np.clip(WINDOWS // max(len(train), 1), 1, WINDOWS_PER_PATIENT))
        first, last = first_record(train), train.history_end - horizons[0]
        share = (np.arange(number) + 0.5) / number
        cuts = first[:, None] + share * np.maximum(last - first, 0.0)[:, None]
        lately = given_lately(train, cuts, max_horizon)
        rows, windows = [], []
        for i, horizon in enumerate(horizons):
            followed = (last >= first)[:, None] & (cuts + horizon <= train.history_end[:, None])
            planned = classes_given(train.schema.treatments, train.events, cuts, cuts + horizon, PLANNED)
            both = np.concatenate([lately, planned], axis=-1)[followed]
            rows.append(np.concatenate([np.full((len(both), 1), i, dtype=np.int8), both], axis=1))
            windows.append(len(both))
        situations, counts = np.unique(np.concatenate(rows), axis=0, return_counts=True)
        unseen = cuts - last_outcome(train, cuts)
        longest = float(np.max(unseen, initial=0.0, where=np.isfinite(unseen)))
        return cls(horizons, np.array(windows), situations, counts, rounded_up(longest, DIGITS))

    def with_spread(
        self, elapsed: Float64[np.ndarray, "*windows"], spread: Float64[np.ndarray, "*windows outcomes"]
    ) -> Experience:
        """With the spread of the model's means for validation patients, at elapsed times; NaN where there is none."""
        number = self.at(elapsed.ravel())
        spread = spread.reshape(len(number), -1)
        usual = np.full((len(self.horizons), spread.shape[1], len(LEVELS)), np.nan)
        for i, outcome in np.ndindex(usual.shape[:2]):
            known = ~np.isnan(spread[:, outcome])
            there = known & (number == i)
            if known.any():
                usual[i, outcome] = np.quantile(spread[there if there.sum() >= len(LEVELS) else known, outcome], LEVELS)
        return replace(self, usual_spread=usual)

    @cached_property
    def _count_of(self) -> dict[bytes, int]:
        return {row.tobytes(): int(count) for row, count in zip(self.situations, self.counts, strict=True)}

    def at(self, horizons: Float64[np.ndarray, " horizons"]) -> Int64[np.ndarray, " horizons"]:
        """Number of the elapsed time at which a plan for this horizon is compared: the next."""
        return np.minimum(np.searchsorted(self.horizons, horizons * (1 - 1e-9)), len(self.horizons) - 1)

    def comparable(
        self, history: Cohort, planned: TreatmentEvents, horizons: Float64[np.ndarray, " horizons"]
    ) -> Int64[np.ndarray, "patients horizons"]:
        """How many training windows had a comparable plan after a comparable history."""
        situations = self._situations(history, planned, horizons)
        flat = situations.reshape(-1, situations.shape[-1])
        seen, which = np.unique(flat, axis=0, return_inverse=True)
        counts = np.array([self._count_of.get(row.tobytes(), 0) for row in seen], dtype=np.int64)
        return counts[which.ravel()].reshape(situations.shape[:2])

    def _situations(self, history: Cohort, planned: TreatmentEvents, horizons: np.ndarray) -> np.ndarray:
        lately = given_lately(history, history.history_end[:, None], self.horizons[-1])
        until = np.broadcast_to(horizons, (len(history), len(horizons)))
        classes = classes_given(history.schema.treatments, planned, np.zeros(until.shape), until, PLANNED)
        number = np.broadcast_to(self.at(horizons)[:, None], (*until.shape, 1)).astype(np.int8)
        return np.concatenate([number, np.broadcast_to(lately, classes.shape), classes], axis=-1)

    def more_than_ever(
        self, history: Cohort, planned: TreatmentEvents, horizons: Float64[np.ndarray, " horizons"]
    ) -> Bool[np.ndarray, "patients horizons"]:
        """Whether a plan gives more of some treatment, up to a horizon, than any training window had."""
        situations = self._situations(history, planned, horizons)
        treatments = len(history.schema.treatments)
        most = np.zeros((len(self.horizons), treatments), dtype=np.int8)
        np.maximum.at(most, self.situations[:, 0], self.situations[:, 1 + treatments :])
        return np.any(situations[..., 1 + treatments :] > most[self.at(horizons)], axis=-1)

    def spread_rank(
        self, spread: Float64[np.ndarray, "patients horizons outcomes"], horizons: Float64[np.ndarray, " horizons"]
    ) -> Float64[np.ndarray, "patients horizons"]:
        """Share of validation windows of about the same horizon with a smaller spread; of outcomes, the largest."""
        if self.usual_spread is None:
            return np.full(spread.shape[:2], np.nan)
        usual = self.usual_spread[self.at(horizons)]
        below = (usual < spread[..., None]).sum(axis=-1) / (len(LEVELS) + 1)
        return np.where(np.isnan(spread) | np.isnan(usual[..., 0]), np.nan, below).max(axis=-1)


def first_record(cohort: Cohort) -> Float64[np.ndarray, " patients"]:
    """When something of a patient was first recorded; the end of the history where nothing was."""
    rows = np.minimum(cohort.records.offsets[:-1], max(cohort.records.rows - 1, 0))
    has_one = cohort.records.per_patient > 0
    return np.where(has_one, cohort.records.times[rows] if cohort.records.rows else 0.0, cohort.history_end)


def last_outcome(cohort: Cohort, times: Times) -> Times:
    """When an outcome was last seen, up to each time; minus infinity where none was."""
    outcomes = cohort.records.values[:, : len(cohort.schema.outcomes)]
    seen = cohort.records.keep(np.asarray(~np.isnan(outcomes).all(axis=1)))
    number = rows_before(seen.offsets, seen.times, times, side="right")
    if not seen.rows:
        return np.full(times.shape, -np.inf)
    return np.where(number > 0, seen.times[np.maximum(seen.offsets[:-1, None] + number - 1, 0)], -np.inf)


def given_lately(cohort: Cohort, now: Times, within: float) -> Int8[np.ndarray, "patients times treatments"]:
    """How much of each treatment was given within a time before now, or else how long ago the last was."""
    amount = classes_given(cohort.schema.treatments, cohort.events, now - within, now, LATELY)
    ago = np.empty(amount.shape)
    for code in range(len(cohort.schema.treatments)):
        ago[..., code] = _since_last(cohort, code, now) / within
    longer = np.where(np.isfinite(ago), -1 - np.searchsorted(LONGER_AGO, ago), NEVER)
    return np.where(amount > 0, amount, longer).astype(np.int8)


def classes_given(
    treatments: tuple[Treatment, ...], events: TreatmentEvents, start: Times, stop: Times, edges: np.ndarray
) -> Int8[np.ndarray, "patients times treatments"]:
    """How much of each treatment is given from each start until each stop: 0 for nothing, then the class of the amount.

    Doses add up in units of the usual one. A rate counts by its mean over the time, in units of the usual rate.
    """
    found = np.zeros((*start.shape, len(treatments)), dtype=np.int8)
    for code, treatment in enumerate(treatments):
        mine = events.keep(events.treatment == code)
        doses, intervals = mine.keep(mine.is_dose), mine.keep(~mine.is_dose)
        amount = np.zeros(start.shape)
        if treatment.dose is not None and doses.rows:
            total = running_sum(doses.offsets, doses.amount[:, None] / treatment.dose.usual)[:, 0]
            begun = [rows_before(doses.offsets, doses.start, times, side="left") for times in (start, stop)]
            amount += at_row(doses, total, begun[1]) - at_row(doses, total, begun[0])
        if treatment.rate is not None and intervals.rows:
            before, until = (
                infused_and_rate(intervals, treatment.rate.usual, 1.0, times)[0] for times in (start, stop)
            )
            amount += (until - before) / (stop - start)
        found[..., code] = np.where(amount > 1e-9, 1 + np.searchsorted(edges, amount, side="right"), 0)
    return found


def _since_last(cohort: Cohort, code: int, now: Times) -> Times:
    """Time since a treatment was last given; infinite where it never was."""
    mine = cohort.events.keep(cohort.events.treatment == code)
    begun = rows_before(mine.offsets, mine.start, now, side="left")
    ended = np.where(mine.is_dose, mine.start, mine.stop)
    return now - np.minimum(at_row(mine, ended, begun, -np.inf), now)
