"""A trajectory cut at a time: what was known then, what was given after, and what came of it.

At equal times an outcome precedes a dose: the history up to t̄ holds observations at times ≤ t̄ and what was given
before t̄. A dose at t̄, and the stop of an interval at t̄, are decisions taken then; they belong to the plan.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import numpy as np
import polars as pl
from jaxtyping import Float64

from counterpath.cohort.frames import to_kind
from counterpath.cohort.records import Observations, TreatmentEvents
from counterpath.cohort.values import as_column

if TYPE_CHECKING:
    from counterpath.cohort.cohort import Cohort
    from counterpath.cohort.plan import Plan

ROUNDING = 1e-9  # 18.1 − 12.1 is a little more than 6


def events_until(events: TreatmentEvents, history_end: Float64[np.ndarray, " patients"]) -> TreatmentEvents:
    """What was given before each patient's `history_end`; what was running then is open."""
    before = events.start < history_end[events.patient_of_row]
    known = events.keep(before)
    end = history_end[known.patient_of_row]
    return replace(known, stop=np.where(known.stop >= end, np.inf, known.stop))


def events_from(events: TreatmentEvents, history_end: Float64[np.ndarray, " patients"]) -> TreatmentEvents:
    """What was given from each patient's `history_end` on, in elapsed time; running intervals start at 0."""
    end = history_end[events.patient_of_row]
    later = events.keep((events.start >= end) | (events.stop > end))
    end = history_end[later.patient_of_row]
    return replace(later, start=np.maximum(later.start - end, 0.0), stop=later.stop - end)


def events_until_and_from(
    events: TreatmentEvents, history_end: Float64[np.ndarray, " patients"], planned: TreatmentEvents
) -> TreatmentEvents:
    """What was given before each patient's `history_end`, and what is planned from then on in elapsed time: in one."""
    before = events.keep(events.start < history_end[events.patient_of_row])
    until = np.minimum(before.stop, history_end[before.patient_of_row])
    shift = history_end[planned.patient_of_row]
    later = replace(planned, start=planned.start + shift, stop=planned.stop + shift)
    both = (replace(before, stop=until), later)
    columns = [
        np.concatenate([getattr(part, name) for part in both]) for name in ("treatment", "start", "stop", "amount")
    ]
    patient = np.concatenate([part.patient_of_row for part in both])
    return TreatmentEvents.from_rows(patient, *columns, patients=events.patients)


def running(events: TreatmentEvents, history_end: Float64[np.ndarray, " patients"]) -> TreatmentEvents:
    """The intervals that run at each patient's `history_end`, as a plan that keeps them for good."""
    end = history_end[events.patient_of_row]
    # `until` has opened what ran then; a stop that is recorded is known, also one at the very end.
    now = events.keep((events.start < end) & (events.stop > end))
    return replace(now, start=np.zeros(now.rows), stop=np.full(now.rows, np.inf))


@dataclass(frozen=True)
class Cut:
    """One trajectory per patient, cut in two.

    Attributes:
        history: What was known at the cut.
        plan: What was really given from the cut on.
        later: Outcomes after the cut, by elapsed time.
    """

    history: Cohort
    plan: Plan
    later: Observations

    def outcomes(self) -> Any:
        """The later outcomes as a frame: patient, elapsed, one column per outcome."""
        schema = self.history.schema
        columns = [
            self.history.patients.gather(self.later.patient_of_row).alias(schema.patient_column),
            pl.Series("elapsed", self.later.times),
        ]
        columns += [as_column(v, self.later.values[:, j]) for j, v in enumerate(schema.outcomes)]
        return to_kind(pl.DataFrame(columns), self.history.frames)


def outcomes_after(cohort: Cohort, history: Cohort, max_horizon: float | None = None) -> Observations:
    """Outcomes of `cohort` later than the end of each history, in elapsed time."""
    source = cohort.records.take(cohort.positions(history.patients))
    end = history.history_end[source.patient_of_row]
    number = len(cohort.schema.outcomes)
    values = source.values[:, :number]
    wanted = (source.times > end) & ~np.isnan(values).all(axis=1)
    if max_horizon is not None:
        wanted &= source.times - end <= max_horizon * (1 + ROUNDING)
    later = source.keep(wanted)
    elapsed = later.times - history.history_end[later.patient_of_row]
    if max_horizon is not None:
        elapsed = np.minimum(elapsed, max_horizon)
    return Observations(later.offsets, elapsed, np.asfortranarray(later.values[:, :number]))
