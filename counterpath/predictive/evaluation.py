"""How predictions did against what happened."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import polars as pl
from jaxtyping import Float64

from counterpath.cohort.frames import FrameKind, to_kind
from counterpath.metrics import (
    Estimate,
    covered,
    crps_draws,
    interval_width,
    mean_by_patient,
    squared_error,
)
from counterpath.predictive.prediction import Prediction

LEVELS = (0.95, 0.99)
DRAWS = 1_000  # from which the CRPS is computed


@dataclass(frozen=True)
class HorizonScores:
    """The scores at one horizon.

    Attributes:
        horizon: Elapsed time.
        patients: How many had an outcome there.
        crps: In outcome units over `scale`.
        mse: Of the median, in units over `scale`, squared.
        coverage: Share of outcomes inside the central interval, by level.
        width: Median width of the interval over `scale`, by level.
    """

    horizon: float
    patients: int
    crps: Estimate
    mse: Estimate
    coverage: dict[float, Estimate]
    width: dict[float, float]


@dataclass(frozen=True)
class Evaluation:
    """Scores per horizon.

    Attributes:
        model: Whose predictions they are.
        scores: One per horizon.
        scale: What outcomes were divided by, such as the training patients' standard deviation.
        frames: The kind of frame that is given back.
    """

    model: str
    scores: tuple[HorizonScores, ...]
    scale: float = 1.0
    frames: FrameKind = "polars"

    def to_frame(self) -> Any:
        """A line per horizon, with standard errors by patient."""
        rows = []
        for score in self.scores:
            row: dict[str, object] = {
                "model": self.model,
                "elapsed": score.horizon,
                "patients": score.patients,
                "crps": score.crps.value,
                "crps_error": score.crps.standard_error,
                "mse_of_median": score.mse.value,
                "mse_error": score.mse.standard_error,
            }
            for level in LEVELS:
                row[f"coverage_{level:.0%}".rstrip("%")] = score.coverage[level].value
                row[f"width_{level:.0%}".rstrip("%")] = score.width[level]
            rows.append(row)
        return to_kind(pl.DataFrame(rows), self.frames)


def evaluate_prediction(
    prediction: Prediction,
    outcomes: Float64[np.ndarray, "patients horizons"],
    *,
    model: str,
    scale: float = 1.0,
) -> Evaluation:
    """Score a prediction at each horizon; patients without an outcome there do not count.

    Args:
        prediction: Of one outcome, for every patient and horizon.
        outcomes: What happened; NaN where nobody looked.
        model: A name for the table.
        scale: Divide outcomes and predictions by this.
    """
    scores = []
    drawn, median = prediction.sample(DRAWS), prediction.median
    intervals = {level: prediction.interval(level) for level in LEVELS}
    for i, horizon in enumerate(prediction.horizons):
        known = ~np.isnan(outcomes[:, i])
        if not known.any():
            raise ValueError(f"Nobody has an outcome {horizon:g} after the cut. Choose another horizon.")
        outcome = outcomes[known, i] / scale
        coverage, width = {}, {}
        for level in LEVELS:
            lower, upper = (end[known, i] / scale for end in intervals[level])
            coverage[level] = mean_by_patient(covered(outcome, lower, upper))
            width[level] = float(np.median(interval_width(lower, upper)))
        scores.append(
            HorizonScores(
                float(horizon),
                int(known.sum()),
                mean_by_patient(crps_draws(outcome, drawn[:, known, i] / scale)),
                mean_by_patient(squared_error(outcome, median[known, i] / scale)),
                coverage,
                width,
            )
        )
    return Evaluation(model, tuple(scores), scale, prediction.frames)
