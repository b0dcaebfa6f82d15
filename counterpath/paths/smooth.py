"""Paths that run smoothly through the records: linear, and cubic Hermite with backward differences (the paper's).

Between two records such a path moves towards the later one. It can therefore be cut only where the past is complete: at
the end of the history, or at a record where every variable was recorded.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

import numpy as np
from jaxtyping import Bool, Float64, Int64

from counterpath.cohort import Finding
from counterpath.cohort.findings import name_patients
from counterpath.cohort.records import Ragged, offsets_from
from counterpath.paths.channels import Channel
from counterpath.paths.control_path import ControlPath, PathError
from counterpath.paths.hold import HoldPath
from counterpath.paths.ragged_search import PathValues, QueryTimes, rows_before

# A slope holds over at most this many times the gap it was measured over. Without a limit the slope between two records
# minutes apart, carried over a gap of months, leads to thousands of times the data.
FARTHEST_CARRY = 3.0


@dataclass(frozen=True, eq=False)
class Knots(Ragged):
    """What a curve of each patient passes through.

    Attributes:
        times: Increasing within a patient.
        heights: At these times; no column where only the times matter.
    """

    times: Float64[np.ndarray, " rows"]
    heights: Float64[np.ndarray, "rows columns"]


@dataclass(frozen=True, eq=False)
class SmoothPath(ControlPath):
    """Each variable's values interpolated between its own records, everything else linearly between all records.

    Only measured values follow the cubic. Clocks, counts and treatments are known functions of time, and a slope of
    theirs says nothing about what comes next.

    Attributes:
        hold: The records, and what is derived from them.
        kind: `linear` or `hermite`.
        knots: Times of the records, and of the end of the history.
        may_be_cut: Knots where the past is complete: every variable was recorded, or nothing follows.
    """

    hold: HoldPath
    kind: Literal["linear", "hermite"]
    knots: Knots
    may_be_cut: Bool[np.ndarray, " rows"]

    @property
    def layout(self) -> tuple[Channel, ...]:
        """As for `hold`."""
        return self.hold.layout

    @property
    def time_scale(self) -> float:
        """As for `hold`."""
        return self.hold.time_scale

    @classmethod
    def through(cls, hold: HoldPath, kind: Literal["linear", "hermite"]) -> SmoothPath:
        """Knots at the records and at the end of the history, where nothing new is seen."""
        records, end = hold.cohort.records, hold.cohort.history_end
        patient = np.concatenate([records.patient_of_row, np.arange(len(end))])
        times = np.concatenate([records.times, end])
        complete = np.concatenate([~np.isnan(records.values).any(axis=1), np.ones(len(end), bool)])
        order = np.lexsort((complete, times, patient))
        patient, times, complete = patient[order], times[order], complete[order]
        last = np.ones(len(times), bool)  # of equal times, where a record is at the end of the history
        last[:-1] = (np.diff(patient) != 0) | (np.diff(times) != 0)
        knots = Knots(offsets_from(patient[last], len(end)), times[last], np.empty((int(last.sum()), 0)))
        return cls(hold, kind, knots, complete[last])

    def require_causal(self, cuts: Float64[np.ndarray, "patients cuts"]) -> None:
        """A cut must be at a knot where the past is complete."""
        row, _ = _rows_around(self.knots, cuts)
        allowed = (self.knots.times[row] == cuts) & self.may_be_cut[row]
        if allowed.all():
            return
        patient, cut = np.argwhere(~allowed)[0]
        who = self.hold.cohort.patients.gather(np.unique(np.argwhere(~allowed)[:, 0]))
        raise PathError(
            [
                Finding(
                    "sees_the_future",
                    "error",
                    f"{self.kind!r} interpolation cannot be cut at {self.hold.cohort.schema.time_unit} "
                    f"{cuts[patient, cut]:g} of patient {self.hold.cohort.patients[int(patient)]} "
                    f"({name_patients(who)} in all): it would see the next record.",
                    "Cut at a record with every variable, or use interpolation='hold'.",
                    count=int((~allowed).sum()),
                    patients=tuple(who),
                )
            ]
        )

    def values(self, times: QueryTimes) -> PathValues:
        """X at each time; outside the knots it stays where it is at the nearest."""
        row, later = _rows_around(self.knots, times)
        before, after = self.knots.times[row], self.knots.times[later]
        values = self.hold.values(before)
        values += _share(times, before, after)[..., None] * (self.hold.values(after) - values)
        layout = self.layout
        for j in range(len(self.hold.cohort.schema.variables)):
            own = [i for i, channel in enumerate(layout) if channel.role == "value" and channel.variable == j]
            if own:  # a category that nobody has has no level
                values[..., own] = _curve(self.kind, self._knots_of(j, [layout[i].level for i in own]), times)
        return values

    def _knots_of(self, j: int, levels: list[int | None]) -> Knots:
        """A variable's own records, and the first record of all, where it is at the training mean if not recorded.

        Between two of its records a variable has one curve, whatever else is recorded there; after its last it is held.
        """
        records, column = self.hold.cohort.records, self.hold.scaled[:, j]
        heights = np.stack([column if level is None else np.where(column == level, 1.0, 0.0) for level in levels], -1)
        known = ~np.isnan(column)
        heights[~known] = 0.0
        known[records.offsets[:-1][records.per_patient > 0]] = True
        return Knots(records.offsets, records.times, heights).keep(known)


def _rows_around(knots: Knots, times: QueryTimes) -> tuple[Int64[np.ndarray, "patients queries"], ...]:
    """The knots of the interval that holds each time: the last that is not later, and the next, if there are such."""
    first, last = knots.offsets[:-1, None], knots.offsets[1:, None] - 1
    row = np.maximum(first + rows_before(knots.offsets, knots.times, times, side="right") - 1, first)
    return row, np.minimum(row + 1, last)


def _share(times: np.ndarray, before: np.ndarray, after: np.ndarray) -> np.ndarray:
    """How much of the way from `before` to `after` is done, from 0 to 1."""
    gap = after - before
    done = np.maximum(times, before) - before  # a time before the first knot, over a tiny gap, would overflow
    return np.minimum(done / np.where(gap > 0, gap, 1.0), np.where(gap > 0, 1.0, 0.0))


def _curve(kind: str, knots: Knots, times: QueryTimes) -> PathValues:
    """The interpolation at each time; 0, the training mean, for a patient without any knot.

    With u from 0 to 1 between two knots, Δy the change between them and m the slope of the interval before, carried on
    over T, the length of this one (diffrax's backward Hermite cubic, in other words):

        y = y₀ + Δy u² (2 - u) + m T u (1 - u)²

    The first term runs from 0 to Δy without a swing, and u (1 - u)² ≤ 4/27. As T counts for at most three times the
    interval before, the curve leaves the range of its two knots by at most 3 · 4/27 = 4/9 of the change before.
    """
    some = np.flatnonzero(knots.per_patient > 0)
    knots = knots.take(some)
    y, at = knots.heights, knots.times
    row, later = _rows_around(knots, times[some])
    earlier = np.maximum(row - 1, knots.offsets[:-1, None])
    u = _share(times[some], at[row], at[later])[..., None]
    change = y[later] - y[row]
    values = np.zeros((*times.shape, y.shape[1]))
    if kind == "linear":
        values[some] = y[row] + change * u
        return values
    gap, gap_before = at[later] - at[row], at[row] - at[earlier]
    has_before = gap_before > 0
    reach = np.minimum(gap, FARTHEST_CARRY * gap_before) / np.where(has_before, gap_before, 1.0)
    # In the first interval, as in diffrax, the slope is its own.
    carried = np.where(has_before[..., None], (y[row] - y[earlier]) * reach[..., None], change)
    values[some] = y[row] + change * u**2 * (2 - u) + carried * u * (1 - u) ** 2
    return values
