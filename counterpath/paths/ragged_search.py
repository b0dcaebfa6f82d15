"""Binary search and running sums within each patient's own rows.

Both work row by row within a patient, never across: a patient's numbers do not depend, even in their last bit, on who
else is in the cohort or on what comes later.
"""

from __future__ import annotations

from typing import Literal

import numpy as np
from jaxtyping import Float64, Int64

QueryTimes = Float64[np.ndarray, "patients queries"]
PathValues = Float64[np.ndarray, "patients queries channels"]

PADDED_CELLS = 2**20  # in one block of a running sum: 8 MiB


def rows_before(
    offsets: Int64[np.ndarray, " offsets"],
    times: Float64[np.ndarray, " rows"],
    queries: QueryTimes,
    *,
    side: Literal["left", "right"],
) -> Int64[np.ndarray, "patients queries"]:
    """How many of a patient's rows lie before each query, as `np.searchsorted` counts them.

    Args:
        offsets: Where each patient's rows begin and end.
        times: Sorted within each patient.
        queries: Times to look up.
        side: `right` counts rows at the query's own time, `left` does not.
    """
    first, stop = (np.broadcast_to(edge[:, None], queries.shape) for edge in (offsets[:-1], offsets[1:]))
    return _rows_before(first, stop, times, queries, side)


def rows_before_each(
    offsets: Int64[np.ndarray, " offsets"],
    times: Float64[np.ndarray, " rows"],
    patient: Int64[np.ndarray, " queries"],
    queries: Float64[np.ndarray, " queries"],
    *,
    side: Literal["left", "right"],
) -> Int64[np.ndarray, " queries"]:
    """The same for queries that each belong to a patient.

    Args:
        offsets: Where each patient's rows begin and end.
        times: Sorted within each patient.
        patient: Of each query.
        queries: Times to look up.
        side: `right` counts rows at the query's own time, `left` does not.
    """
    return _rows_before(offsets[patient], offsets[patient + 1], times, queries, side)


def _rows_before(first, stop, times, queries, side):
    low, high = first.copy(), stop.copy()
    for _ in range(int(np.max(stop - first, initial=0)).bit_length()):
        searching = low < high
        middle = (low + high) // 2
        at = times[np.where(searching, middle, 0)] if len(times) else np.zeros(queries.shape)
        passed = searching & ((at <= queries) if side == "right" else (at < queries))
        low = np.where(passed, middle + 1, low)
        high = np.where(searching & ~passed, middle, high)
    return low - first


def running_sum(
    offsets: Int64[np.ndarray, " offsets"], values: Float64[np.ndarray, "rows columns"]
) -> Float64[np.ndarray, "rows columns"]:
    """Sum of a patient's rows up to and including each row.

    Patients are padded to the longest of a block of similar length, so that a single one with very many rows does not
    cost memory for everybody.
    """
    counts, columns = np.diff(offsets), values.shape[1]
    longest_first = np.argsort(-counts, kind="stable")[: np.count_nonzero(counts)]
    sums = np.empty_like(values)
    done = 0
    while done < len(longest_first) and columns:
        longest = int(counts[longest_first[done]])
        block = longest_first[done : done + max(PADDED_CELLS // (longest * columns), 1)]
        done += len(block)
        number = np.repeat(np.arange(len(block)), counts[block])
        place = np.arange(len(number)) - np.repeat(np.cumsum(counts[block]) - counts[block], counts[block])
        row = offsets[block][number] + place
        padded = np.zeros((len(block), longest, columns))
        padded[number, place] = values[row]
        sums[row] = np.cumsum(padded, axis=1, out=padded)[number, place]
    return sums


def last_present(
    offsets: Int64[np.ndarray, " offsets"], values: Float64[np.ndarray, "rows columns"]
) -> Int64[np.ndarray, "rows columns"]:
    """The latest row of the same patient, up to each row, in which a column is not NaN; -1 where there is none."""
    rows = np.arange(len(values))[:, None]
    latest = np.maximum.accumulate(np.where(np.isnan(values), -1, rows), axis=0)
    begins = np.repeat(offsets[:-1], np.diff(offsets))[:, None]
    return np.where(latest >= begins, latest, -1)
