"""The default path: a value stays until the next record. Causal at every time."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np
from jaxtyping import Float64, Int64

from counterpath.cohort import Cohort, Grid, Scaler, TreatmentEvents
from counterpath.paths.answers import answers
from counterpath.paths.channels import Channel, history_channels
from counterpath.paths.coefficient_law import Coefficients
from counterpath.paths.control_path import ControlPath
from counterpath.paths.linear_response import Led, LinearResponse, at_rows
from counterpath.paths.ragged_search import PathValues, QueryTimes, last_present, rows_before, running_sum
from counterpath.paths.static_columns import static_columns
from counterpath.paths.treatment_channels import TreatmentPath


@dataclass(frozen=True, eq=False)
class HoldPath(ControlPath):
    """X(t) with every value held since its record.

    For each outcome: its held value, its change since the one before per cell width (over at least one cell, so that it
    never exceeds the change), time since it was seen, a flag while it has not been, how early in their cells its
    records came, how it answered to treatments, and the patient's own linear response. Then covariates, counts of
    records, and treatments. What has not been seen yet stands at the training mean, which is 0.

    Attributes:
        cohort: The histories.
        grid: Of the model.
        window_start: Where each patient's clock starts.
        scaled: Records on the model's scale.
        treatments: What was given.
        response: What is usual for linear responses; None where they are not asked for, and 0.
    """

    cohort: Cohort
    grid: Grid
    window_start: Float64[np.ndarray, " patients"]
    scaled: Float64[np.ndarray, "rows variables"]
    treatments: TreatmentPath
    response: LinearResponse | None = None

    @classmethod
    def of(
        cls,
        cohort: Cohort,
        scaler: Scaler,
        grid: Grid,
        window_start: np.ndarray,
        response: LinearResponse | None = None,
    ) -> HoldPath:
        """The path of each patient's records, scaled."""
        treatments = TreatmentPath(cohort.schema, scaler, cohort.events, grid, window_start)
        return cls(cohort, grid, window_start, scaler.values(cohort.records.values), treatments, response)

    @property
    def layout(self) -> tuple[Channel, ...]:
        """What each channel is, in order."""
        return history_channels(self.cohort.schema)

    @property
    def time_scale(self) -> float:
        """The clock runs from 0 to 1 over the grid's lookback."""
        return self.grid.lookback

    def clock(self, times: QueryTimes) -> QueryTimes:
        """Time since each patient's window started, in lookbacks."""
        return (times - self.window_start[:, None]) / self.time_scale

    def values(self, times: QueryTimes) -> PathValues:
        """X at each time."""
        records, schema = self.cohort.records, self.cohort.schema
        row, latest = self._row(times), self._latest
        columns = [self.clock(times)]
        for j in range(len(schema.outcomes)):
            columns += self._outcome(times, row, j)
        for j, covariate in enumerate(schema.covariates, start=len(schema.outcomes)):
            unseen = 0.0 if covariate.kind == "numeric" else -1.0  # the training mean, or no level
            held = _lookup(self.scaled[:, j], _lookup(latest[:, j], row, -1), unseen)
            if covariate.kind == "categorical":
                columns += [(held == code).astype(np.float64) for code in range(len(covariate.levels))]
            else:
                columns.append(held)
        seen = np.cumsum(~np.isnan(self.scaled), axis=0)
        before = np.concatenate([np.zeros((1, seen.shape[1]), dtype=seen.dtype), seen])[records.offsets[:-1]]
        for j in range(len(schema.variables)):
            columns.append(np.where(row >= 0, _lookup(seen[:, j], row, 0) - before[:, j, None], 0).astype(np.float64))
        return np.concatenate([np.stack(columns, axis=-1), self.treatments.values(times)], axis=-1)

    def led_to(
        self, j: int, cuts: QueryTimes, events: TreatmentEvents, elapsed: Float64[np.ndarray, "patients cuts horizons"]
    ) -> Led:
        """Where linear response leads to from the last outcome before each cut.

        Without such a response the last outcome stays, and the training mean where it has not been seen; then what is
        far is as far as outcomes are from their mean, which is 1.

        Args:
            j: Number of the outcome.
            cuts: Times up to which it is known.
            events: What was given up to the cut, and what is given from then on.
            elapsed: Times after each cut.
        """
        last = _lookup(self._latest[:, j], self._row(cuts), -1)
        value = _lookup(self.scaled[:, j], last, 0.0)
        stays, far = np.broadcast_to(value[..., None], elapsed.shape), np.ones(elapsed.shape)
        coefficients = 2 + len(self.cohort.schema.treatments)
        nothing = np.zeros((*elapsed.shape, coefficients))
        if self.response is None or not self.cohort.records.rows:
            return Led(stays, stays, far, nothing)
        seen_at = _lookup(self.cohort.records.times, last, 0.0)
        later = (cuts[..., None] + elapsed).reshape(len(cuts), cuts.shape[1] * elapsed.shape[2])
        begin, end = (self.response.terms(j, self.treatments.scaler, events, times) for times in (seen_at, later))
        known = Coefficients(*(part[np.maximum(last, 0)] for part in self._linear[j]))
        moved = end.reshape(*elapsed.shape, end.shape[-1]) - begin[:, :, None]
        unseen = (last < 0)[..., None]
        led = self.response.lead(j, value, np.where(unseen[..., None], 0.0, moved), known)
        return Led(
            stays,
            np.where(unseen, stays, led.there),
            np.where(unseen, far, led.off),
            np.where(unseen[..., None], nothing, led.unsure),
        )

    def _row(self, times: QueryTimes) -> Int64[np.ndarray, "patients queries"]:
        """The last record up to each time; -1 where there is none."""
        records = self.cohort.records
        number = rows_before(records.offsets, records.times, times, side="right")
        return np.where(number > 0, records.offsets[:-1, None] + number - 1, -1)

    @cached_property
    def _latest(self) -> Int64[np.ndarray, "rows variables"]:
        return last_present(self.cohort.records.offsets, self.scaled)

    def _outcome(self, times: np.ndarray, row: np.ndarray, j: int) -> list[np.ndarray]:
        records, latest = self.cohort.records, self._latest[:, j]
        last = _lookup(latest, row, -1)  # the row of the last outcome, as known at each time
        start = self.window_start[:, None]
        held = _lookup(self.scaled[:, j], last, 0.0)
        seen_at = np.where(last >= 0, _lookup(records.times, last, 0.0), start)
        # The one before: the latest outcome up to the previous row, if that row is the same patient's.
        previous = np.where(last > records.offsets[:-1, None], _lookup(latest, last - 1, -1), -1)
        gap = seen_at - _lookup(records.times, previous, 0.0)
        width = self.grid.width_at(seen_at - start)
        change = held - _lookup(self.scaled[:, j], previous, 0.0)
        slope = np.where(previous >= 0, change / np.maximum(gap / width, 1.0), 0.0)
        known = [held, slope, (times - seen_at) / self.time_scale, (last < 0).astype(np.float64)]
        return known + [_lookup(column, last, 0.0) for column in self._totals[j].T]

    @cached_property
    def _totals(self) -> list[np.ndarray]:
        """For each outcome, its channels of timing, answers and linear response after each of its records."""
        return [self._totals_of(j) for j in range(len(self.cohort.schema.outcomes))]

    def _totals_of(self, j: int) -> np.ndarray:
        recorded: np.ndarray = ~np.isnan(self.scaled[:, j])
        own = self.cohort.records.keep(recorded)
        left = self.grid.share_left(own.times - self.window_start[own.patient_of_row], side="left") - 0.5
        treatments = len(self.cohort.schema.treatments)
        answered = answers(own, self.scaled[recorded, j], self.treatments.events, treatments)
        answered[:, 2::3] /= self.time_scale
        totals = np.empty((len(recorded), 1 + answered.shape[1]))  # rows without the outcome are never looked up
        totals[recorded] = np.concatenate([running_sum(own.offsets, left[:, None]), answered], axis=1)
        return np.concatenate([totals, self._pace(j)], axis=1)

    def _pace(self, j: int) -> np.ndarray:
        """How the patient's outcome is thought to move after each record, by itself and with each treatment."""
        mean, value = self._linear[j].mean, self.scaled[:, j]
        by_itself = mean[:, 0] + mean[:, -1] * np.where(np.isnan(value), 0.0, value)
        return np.concatenate([by_itself[:, None], mean[:, 1:-1]], axis=1)

    @cached_property
    def _linear(self) -> list[Coefficients]:
        """For each outcome, the linear response after each of its records; 0 where it is not asked for."""
        return [self._linear_of(j) for j in range(len(self.cohort.schema.outcomes))]

    def _linear_of(self, j: int) -> Coefficients:
        rows, number = len(self.scaled), 2 + len(self.cohort.schema.treatments)
        found = Coefficients(np.zeros((rows, number)), np.zeros((rows, number, number)))
        response, recorded = self.response, ~np.isnan(self.scaled[:, j])
        if response is not None:
            own, given = self.cohort.records.keep(recorded), self.treatments
            moved = at_rows(own, lambda times: response.terms(j, given.scaler, given.events, times))
            static = static_columns(self.cohort, given.scaler)
            known = response.coefficients(j, own, self.scaled[recorded, j], moved, static)
            found.mean[recorded], found.covariance[recorded] = known
        return found


def _lookup(column: np.ndarray, row: np.ndarray, otherwise: float) -> np.ndarray:
    """column[row], and `otherwise` where there is no row."""
    if not len(column):
        return np.full(row.shape, otherwise)
    return np.where(row >= 0, column[np.maximum(row, 0)], otherwise)
