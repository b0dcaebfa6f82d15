"""How much of the training stands behind an answer."""

from __future__ import annotations

import warnings
from dataclasses import dataclass, replace

import numpy as np
from jaxtyping import Bool, Float64, Int64

from counterpath.cohort import Cohort, Plan, TreatmentEvents
from counterpath.cohort.findings import PlanWarning, counted
from counterpath.cohort.schema import Schema
from counterpath.predictive.experience import Experience, last_outcome

JUST_OUTSIDE = 1e-6  # relative: not outside a range


class UnsupportedPlanWarning(PlanWarning):
    """Nobody in training had a comparable plan after a comparable history."""


@dataclass(frozen=True, eq=False)
class Support:
    """What was seen in training of situations like each patient's, up to each horizon.

    Attributes:
        windows: How many training windows had a comparable plan after a comparable history; 0: never observed.
        of: How many windows there are to compare with.
        dose_outside: Whether the plan has a dose or rate outside the range that training patients received.
        more_than_ever: Whether it gives more of a treatment than any training window did.
        longer_unseen: Whether the outcome has not been seen for longer than before any training cut.
        spread_rank: Share of windows of validation patients, of about this horizon, about which the model is surer; NaN
            where the model cannot tell.
    """

    windows: Int64[np.ndarray, "patients horizons"]
    of: Int64[np.ndarray, " horizons"]
    dose_outside: Bool[np.ndarray, "patients horizons"]
    more_than_ever: Bool[np.ndarray, "patients horizons"]
    longer_unseen: Bool[np.ndarray, "patients horizons"]
    spread_rank: Float64[np.ndarray, "patients horizons"]

    @property
    def never_observed(self) -> Bool[np.ndarray, "patients horizons"]:
        """Where no training window is comparable."""
        return self.windows == 0

    @property
    def warning(self) -> str:
        """For how many patients an answer is extrapolated; empty where for none."""
        unseen = int(self.never_observed.any(axis=1).sum())
        if not unseen:
            return ""
        whom = counted(unseen, "patient") if unseen < len(self.windows) else "all patients"
        return f"never observed for {whom}: no training window had a comparable plan after a comparable history"

    def columns(self) -> dict[str, np.ndarray]:
        """By name, for frames."""
        return {
            "support": self.windows,
            "dose_outside": self.dose_outside,
            "more_than_ever": self.more_than_ever,
            "longer_unseen": self.longer_unseen,
            "spread_rank": self.spread_rank,
        }

    def at(self, chosen: slice) -> Support:
        """At some of the horizons."""
        of_patients = {name: values[:, chosen] for name, values in vars(self).items() if name != "of"}
        return replace(self, of=self.of[chosen], **of_patients)

    def patients(self, chosen: slice | np.ndarray) -> Support:
        """Of some of them."""
        of_patients = {name: values[chosen] for name, values in vars(self).items() if name != "of"}
        return replace(self, **of_patients)

    def weaker(self, other: Support) -> Support:
        """What stands behind two answers that are taken together."""
        return replace(
            self,
            windows=np.minimum(self.windows, other.windows),
            dose_outside=self.dose_outside | other.dose_outside,
            more_than_ever=self.more_than_ever | other.more_than_ever,
            longer_unseen=self.longer_unseen | other.longer_unseen,
            spread_rank=np.maximum(self.spread_rank, other.spread_rank),
        )


def support_of(
    experience: Experience,
    trained_on: Schema,
    history: Cohort,
    plan: Plan,
    horizons: Float64[np.ndarray, " horizons"],
    spread: Float64[np.ndarray, "patients horizons outcomes"] | None = None,
) -> Support:
    """The support of a plan for each patient.

    Args:
        experience: From the training patients.
        trained_on: Their schema, with the ranges of doses.
        history: Patients as they are known now.
        plan: What is given from now on.
        horizons: Elapsed times.
        spread: Of the model's means over draws of its weights, on its own scale, by outcome.
    """
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", PlanWarning)  # the prediction itself has said so
        planned = plan.resolve(history.until(history.history_end))
    now = history.history_end[:, None]
    unseen = now - last_outcome(history, now)
    shape = (len(history), len(horizons))
    return Support(
        windows=experience.comparable(history, planned, horizons),
        of=experience.windows[experience.at(horizons)],
        dose_outside=_dose_outside(trained_on, planned, horizons),
        more_than_ever=experience.more_than_ever(history, planned, horizons),
        longer_unseen=np.broadcast_to(unseen > experience.longest_unseen * (1 + JUST_OUTSIDE), shape),
        spread_rank=np.full(shape, np.nan) if spread is None else experience.spread_rank(spread, horizons),
    )


def _dose_outside(
    trained_on: Schema, planned: TreatmentEvents, horizons: Float64[np.ndarray, " horizons"]
) -> Bool[np.ndarray, "patients horizons"]:
    outside = np.zeros((planned.patients, len(horizons)), dtype=bool)
    for code, treatment in enumerate(trained_on.treatments):
        for seen, of_kind in ((treatment.dose, planned.is_dose), (treatment.rate, ~planned.is_dose)):
            mine = (planned.treatment == code) & of_kind
            if seen is not None:
                lowest, highest = seen.lowest * (1 - JUST_OUTSIDE), seen.highest * (1 + JUST_OUTSIDE)
                mine &= (planned.amount < lowest) | (planned.amount > highest)
            rows = np.flatnonzero(mine)
            np.logical_or.at(outside, planned.patient_of_row[rows], planned.start[rows, None] < horizons)
    return outside
