"""Forecasts of outcomes that happened: one row for each, whoever and whenever."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, fields

import numpy as np
from jaxtyping import Bool, Float64, Int64

from counterpath.metrics import crps_draws, randomised_pit
from counterpath.predictive.law import Law

LEVELS = (0.5, 0.8, 0.95, 0.99)
DRAWS = 1_000  # from which the CRPS is computed


@dataclass(frozen=True, eq=False)
class Points:
    """Outcomes and what was said of them before.

    Attributes:
        patient: Number of the patient in the cohort that is judged.
        elapsed: Time from the forecast to the outcome.
        outcome: What happened.
        median: Of the forecast.
        lower: Lower ends of its central intervals, at `LEVELS`.
        upper: Upper ends.
        pit: Where in the forecast the outcome fell, from 0 to 1.
        crps: Of the forecast.
        model_std: Model uncertainty; NaN where the model cannot tell.
    """

    patient: Int64[np.ndarray, " points"]
    elapsed: Float64[np.ndarray, " points"]
    outcome: Float64[np.ndarray, " points"]
    median: Float64[np.ndarray, " points"]
    lower: Float64[np.ndarray, "points levels"]
    upper: Float64[np.ndarray, "points levels"]
    pit: Float64[np.ndarray, " points"]
    crps: Float64[np.ndarray, " points"]
    model_std: Float64[np.ndarray, " points"]

    def __len__(self) -> int:
        return len(self.patient)

    def keep(self, mask: Bool[np.ndarray, " points"]) -> Points:
        """Some of them."""
        return Points(*(getattr(self, field.name)[mask] for field in fields(self)))

    def in_order(self, order: Int64[np.ndarray, " points"]) -> Points:
        """The same in another order."""
        return Points(*(getattr(self, field.name)[order] for field in fields(self)))

    @classmethod
    def join(cls, parts: Sequence[Points]) -> Points:
        """All of them."""
        return cls(*(np.concatenate([getattr(part, field.name) for part in parts]) for field in fields(cls)))


def points_of(
    law: Law,
    patients: Int64[np.ndarray, " patients"],
    elapsed: Float64[np.ndarray, "patients horizons"],
    outcomes: Float64[np.ndarray, "patients horizons"],
    *,
    rng: np.random.Generator,
) -> Points:
    """A row for every outcome that is known.

    Args:
        law: Of the outcome, for each patient and horizon.
        patients: Their numbers.
        elapsed: The horizons of each.
        outcomes: What happened; NaN where nobody looked.
        rng: For draws, and where an outcome is one of several values that the forecast cannot tell apart.
    """
    row, column = np.nonzero(~np.isnan(outcomes))

    def at(values: np.ndarray) -> np.ndarray:
        return values[row, column]

    def quantile(level: float) -> np.ndarray:
        return at(law.quantile(np.full((1, 1), level)))

    known = at(outcomes)
    filled = np.nan_to_num(outcomes)
    # A forecast may give some values a probability of their own, such as the bound of the outcome.
    pit = randomised_pit(at(law.below(np.nextafter(filled, -np.inf))), at(law.below(filled)), rng)
    return Points(
        patient=patients[row],
        elapsed=at(elapsed),
        outcome=known,
        median=quantile(0.5),
        lower=np.stack([quantile((1 - level) / 2) for level in LEVELS], axis=1),
        upper=np.stack([quantile((1 + level) / 2) for level in LEVELS], axis=1),
        pit=pit,
        crps=crps_draws(known, law.sample(DRAWS, rng)[:, row, column]),
        model_std=np.sqrt(at(law.model_variance)),
    )
