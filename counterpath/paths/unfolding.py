"""What a treatment has done up to a time, where a dose does half of it within a half-life."""

from __future__ import annotations

import math

import numpy as np
from jaxtyping import Float64

from counterpath.cohort import TreatmentEvents
from counterpath.cohort.records import offsets_from
from counterpath.paths.ragged_search import QueryTimes, rows_before
from counterpath.paths.treatment_channels import given_so_far, infused_and_rate


def unfolded(
    events: TreatmentEvents, usual: tuple[float, float], half_life: float, times: QueryTimes
) -> Float64[np.ndarray, "patients queries"]:
    """All that was given before each time, in usual doses, less what of it is still to come.

    An infusion is many small doses. What is still to come of it is that of a steady state, less that of a dose of the
    same size where it began, plus that of another where it ended.

    Args:
        events: Of one treatment.
        usual: The dose, and the amount infused, that count as one.
        half_life: Of what is still to come; 0 for nothing.
        times: Whenever.
    """
    doses, intervals = events.keep(events.is_dose), events.keep(~events.is_dose)
    infused, rate = infused_and_rate(intervals, usual[1], 1.0, times)
    total = given_so_far(doses, usual[0], rows_before(doses.offsets, doses.start, times, side="left")) + infused
    if half_life == 0.0:
        return total
    lasting = intervals.amount / usual[1] * half_life / math.log(2)
    ended = np.isfinite(intervals.stop)
    of_interval = intervals.patient_of_row
    patient = np.concatenate([doses.patient_of_row, of_interval, of_interval[ended]])
    start = np.concatenate([doses.start, intervals.start, intervals.stop[ended]])
    amount = np.concatenate([doses.amount / usual[0], -lasting, lasting[ended]])
    order = np.lexsort((start, patient))
    offsets, start = offsets_from(patient[order], events.patients), start[order]
    waiting = _still_waiting(offsets, start, amount[order], half_life)
    number = rows_before(offsets, start, times, side="left")
    row = np.maximum(offsets[:-1, None] + number - 1, 0)
    if not len(start):
        return total
    since = np.where(number > 0, times - start[row], 0.0)
    to_come = np.where(number > 0, waiting[row] * 0.5 ** (since / half_life), 0.0)
    return total - to_come - rate * half_life / math.log(2)


def _still_waiting(
    offsets: np.ndarray, start: np.ndarray, amount: np.ndarray, half_life: float
) -> Float64[np.ndarray, " rows"]:
    """Just after each row, what of it and of the patient's rows before is still to come.

    After a pass each row has counted twice as many of those before it.
    """
    place = np.arange(len(start)) - np.repeat(offsets[:-1], np.diff(offsets))
    waiting, passed = amount.copy(), 1
    while passed <= int(place.max(initial=0)):
        row = np.flatnonzero(place >= passed)
        decay = 0.5 ** ((start[row] - start[row - passed]) / half_life)
        waiting[row] = waiting[row] + waiting[row - passed] * decay
        passed *= 2
    return waiting
