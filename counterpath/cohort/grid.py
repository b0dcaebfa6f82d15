"""The solver's grid: cells of time chosen from the records themselves.

The grid belongs to a model, not to a batch. Real spans differ by a thousand within one cohort, so cells of equal width
would put most records of a short patient into one cell; quantiles of the record times do not.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

import numpy as np
from jaxtyping import Float64, Int64

from counterpath.cohort.findings import CohortError
from counterpath.cohort.records import Observations, freeze

NARROWEST = 1e-9  # of the lookback; a cell's width divides
ROUNDING = 1e-9  # of the lookback; a window may be longer by as much
BITS = 12  # to which the time of a single record is rounded


@dataclass(frozen=True, eq=False)
class Grid:
    """Edges of the cells, in time since the start of a window; from 0 to `lookback`.

    Cell k holds observations in (edges[k], edges[k + 1]] and doses in [edges[k], edges[k + 1]).
    """

    edges: Float64[np.ndarray, " edges"]

    def __post_init__(self):
        if self.edges[0] != 0.0 or not np.all(np.diff(self.edges) > 0) or not np.isfinite(self.edges).all():
            raise CohortError("Edges of a grid start at 0, increase and are finite.")
        freeze(self.edges)

    @property
    def cells(self) -> int:
        """Number of cells."""
        return len(self.edges) - 1

    @property
    def lookback(self) -> float:
        """The longest window."""
        return float(self.edges[-1])

    @property
    def typical_width(self) -> float:
        """The median width of a cell."""
        return float(np.median(np.diff(self.edges)))

    def cell_of(self, elapsed: Float64[np.ndarray, "*any"]) -> Int64[np.ndarray, "*any"]:
        """The cell that holds an observation at this time; times outside count to the nearest."""
        return np.clip(np.searchsorted(self.edges, elapsed, side="left") - 1, 0, self.cells - 1).astype(np.int64)

    def share_left(
        self, elapsed: Float64[np.ndarray, "*any"], *, side: Literal["left", "right"] = "right"
    ) -> Float64[np.ndarray, "*any"]:
        """How much of its cell is left after something at this time: 1 at the cell's start, towards 0 at its end.

        Args:
            elapsed: Times since the window began.
            side: On an edge, `right` is a dose, which belongs to the later cell; `left` an observation, which belongs
                to the earlier one.
        """
        cell = np.clip(np.searchsorted(self.edges, elapsed, side=side) - 1, 0, self.cells - 1)
        return np.clip((self.edges[cell + 1] - elapsed) / np.diff(self.edges)[cell], 0.0, 1.0)

    def width_at(self, elapsed: Float64[np.ndarray, "*any"]) -> Float64[np.ndarray, "*any"]:
        """The width of the cell that holds this time."""
        return np.diff(self.edges)[self.cell_of(elapsed)]


def window_starts(
    records: Observations, history_end: Float64[np.ndarray, " patients"], lookback: float
) -> Float64[np.ndarray, " patients"]:
    """Where each patient's window begins: at the first record, or `lookback` before the end of the history."""
    first = np.full(records.patients, np.inf)
    has = records.per_patient > 0
    first[has] = records.times[records.offsets[:-1][has]]
    first = np.minimum(first, history_end)
    # end - (end - first) may miss the first record by a rounding, and a window that starts after it would not hold it.
    return np.where(first >= history_end - lookback * (1 + ROUNDING), first, history_end - lookback)


def choose_grid(
    records: Observations,
    history_end: Float64[np.ndarray, " patients"],
    *,
    lookback: float | None = None,
    cells: int = 64,
) -> Grid:
    """A grid from the times of (training) records within `lookback`.

    With at most `cells` distinct times, each ends a cell of its own, as in a daily study. With more, the edges are
    quantiles, so that every cell holds about the same number of records.

    Args:
        records: Of the training patients.
        history_end: Up to when each is known.
        lookback: The longest window; default: the longest history.
        cells: The most cells.
    """
    if cells < 1:
        raise CohortError(f"cells={cells} is not a number of cells. Use 1 or more.")
    first = window_starts(records, history_end, np.inf)
    longest = float(np.max(history_end - first, initial=0.0))
    if lookback is None:
        lookback = float(_rounded_up(np.array([longest]), longest)[0]) if longest > 0 else 1.0
    if not (np.isfinite(lookback) and lookback > 0):
        raise CohortError(f"lookback={lookback} is not a positive time.")
    start = window_starts(records, history_end, lookback)
    return grid_through(records.times - start[records.patient_of_row], lookback, cells)


def grid_through(elapsed: Float64[np.ndarray, " times"], lookback: float, cells: int) -> Grid:
    """Edges at each of these times if they are few, at their quantiles if they are many."""
    inside = np.sort(elapsed[(elapsed > 0) & (elapsed <= lookback)])
    times, counts = np.unique(inside, return_counts=True)
    distinct = times[times < lookback]
    if len(distinct) < cells:  # the end of the window is an edge too
        inner = distinct
    else:
        inner = np.unique(np.quantile(inside, np.arange(1, cells) / cells, method="inverted_cdf"))
    # A model keeps its edges. Those that were the time of one record only are not kept as they are.
    inner = np.unique(np.where(np.isin(inner, times[counts == 1]), _rounded_up(inner, lookback), inner))
    apart = np.diff(inner, prepend=0.0) > NARROWEST * lookback  # nearly coincident records are no cell of their own
    inner = inner[apart & (inner < lookback)]
    return Grid(np.concatenate([[0.0], inner, [lookback]]))


def _rounded_up(times: np.ndarray, lookback: float) -> np.ndarray:
    """To a fraction of the lookback, and in any unit of time alike."""
    unit = 2.0 ** (np.floor(np.log2(lookback)) - BITS)
    return np.ceil(times / unit) * unit


def share_in_shared_cells(records: Observations, history_end: Float64[np.ndarray, " patients"], grid: Grid) -> float:
    """Share of the records after a window's start that have another record of their patient in their cell."""
    start = window_starts(records, history_end, grid.lookback)
    patient = records.patient_of_row
    elapsed = records.times - start[patient]
    inside = elapsed > 0
    if not inside.any():
        return 0.0
    key = patient[inside] * np.int64(grid.cells) + grid.cell_of(elapsed[inside])
    _, where, counts = np.unique(key, return_inverse=True, return_counts=True)
    return float(np.mean(counts[where] > 1))
