"""How an outcome answered to treatments: what each record says about what was given since the one before.

The change of an outcome from one record to the next is the effect of whatever was given in between. Within one cell of
the grid a network could not tell which change belongs to which treatment, so the path says it.
"""

from __future__ import annotations

import numpy as np
from jaxtyping import Float64

from counterpath.cohort import TreatmentEvents
from counterpath.cohort.records import Observations
from counterpath.paths.ragged_search import rows_before_each, running_sum


def answers(
    records: Observations, outcome: Float64[np.ndarray, " rows"], events: TreatmentEvents, treatments: int
) -> Float64[np.ndarray, "rows columns"]:
    """For each treatment, what is known after each record.

    How many were begun before it; over all pairs of successive records with that treatment between them, the outcome's
    total change; and the time these took.

    Args:
        records: Those that hold the outcome.
        outcome: Its value in each.
        events: What was given.
        treatments: Number of treatments in the schema.
    """
    patient, times = records.patient_of_row, records.times
    previous = np.maximum(np.arange(records.rows) - 1, 0)
    follows = (patient[previous] == patient) & (np.arange(records.rows) > 0)
    change, gap = outcome - outcome[previous], times - times[previous]
    columns = []
    for code in range(treatments):
        mine = events.keep(events.treatment == code)
        doses, intervals = mine.keep(mine.is_dose), mine.keep(~mine.is_dose)
        given = rows_before_each(doses.offsets, doses.start, patient, times, side="left")
        begun = rows_before_each(intervals.offsets, intervals.start, patient, times, side="left")
        # Intervals of one treatment do not overlap, so their ends are sorted as well.
        over = rows_before_each(intervals.offsets, intervals.stop, patient, times[previous], side="right")
        between = follows & ((given > given[previous]) | (begun > over))
        totals = running_sum(records.offsets, np.where(between[:, None], np.stack([change, gap], axis=1), 0.0))
        columns += [(given + begun).astype(np.float64), *totals.T]
    return np.stack(columns, axis=1) if columns else np.empty((records.rows, 0))
