"""Treatments as a path: counts, doses, rates and infused amounts, each without what happens at the instant itself.

At equal times an outcome precedes a dose, so a treatment enters the path just after its time.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from jaxtyping import Float64

from counterpath.cohort import Grid, Scaler, TreatmentEvents
from counterpath.cohort.schema import Schema
from counterpath.paths.ragged_search import PathValues, QueryTimes, rows_before, running_sum


@dataclass(frozen=True)
class TreatmentPath:
    """What has been given before a time.

    Attributes:
        schema: Which channels there are.
        scaler: The amounts that count as one.
        events: Doses and intervals of all patients.
        grid: Of the solver; infused amounts are usual rates times shares of its lookback.
        window_start: Where each patient's clock starts.
    """

    schema: Schema
    scaler: Scaler
    events: TreatmentEvents
    grid: Grid
    window_start: Float64[np.ndarray, " patients"]

    def values(self, times: QueryTimes) -> PathValues:
        """The channels at each time, left-continuous."""
        columns = []
        for code, treatment in enumerate(self.schema.treatments):
            mine = self.events.keep(self.events.treatment == code)
            doses, intervals = mine.keep(mine.is_dose), mine.keep(~mine.is_dose)
            begun = rows_before(mine.offsets, mine.start, times, side="left")
            columns.append(begun.astype(np.float64))
            if treatment.dose:
                given = rows_before(doses.offsets, doses.start, times, side="left") if intervals.rows else begun
                columns.append(given_so_far(doses, self.scaler.doses[code], given))
                left = self.grid.share_left(doses.start - self.window_start[doses.patient_of_row]) - 0.5
                columns.append(at_row(doses, running_sum(doses.offsets, left[:, None])[:, 0], given))
            if treatment.rate:
                columns += infused_and_rate(intervals, self.scaler.rates[code], self.grid.lookback, times)
        return np.stack(columns, axis=-1) if columns else np.empty((*times.shape, 0))


def given_so_far(doses: TreatmentEvents, usual: float, number: np.ndarray) -> np.ndarray:
    """The sum of a patient's first `number` doses, in usual ones."""
    return at_row(doses, running_sum(doses.offsets, doses.amount[:, None] / usual)[:, 0], number)


def at_row(events: TreatmentEvents, column: np.ndarray, number: np.ndarray, otherwise: float = 0.0) -> np.ndarray:
    """The column's value in the last of a patient's first `number` rows."""
    if not events.rows:
        return np.full(number.shape, otherwise)
    row = events.offsets[:-1, None] + number - 1
    return np.where(number > 0, column[np.maximum(row, 0)], otherwise)


def infused_and_rate(
    intervals: TreatmentEvents, usual: float, time_scale: float, times: np.ndarray
) -> list[np.ndarray]:
    """Intervals of one treatment do not overlap, so all but the last that began are over."""
    rate = intervals.amount / usual
    whole = rate * (intervals.stop - intervals.start) / time_scale
    over = running_sum(intervals.offsets, np.where(np.isfinite(whole), whole, 0.0)[:, None])[:, 0]
    begun = rows_before(intervals.offsets, intervals.start, times, side="left")
    before = at_row(intervals, over, np.maximum(begun - 1, 0))
    start = at_row(intervals, intervals.start, begun, np.inf)
    stop = at_row(intervals, intervals.stop, begun, -np.inf)
    present = at_row(intervals, rate, begun)
    lasted = np.where(begun > 0, np.minimum(stop, times) - np.where(begun > 0, start, 0.0), 0.0)
    return [before + present * lasted / time_scale, np.where(stop >= times, present, 0.0)]
