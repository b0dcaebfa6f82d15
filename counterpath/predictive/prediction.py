"""The predictive distribution of an outcome, for every patient at every horizon."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import polars as pl
from jaxtyping import Float64

from counterpath.cohort import Variable
from counterpath.cohort.frames import FrameKind, to_kind


def draws_quantile(draws: Float64[np.ndarray, "draws *points"], level: float) -> Float64[np.ndarray, "*points"]:
    """The quantile below which a further draw falls with probability `level`.

    Order statistic number level · (n + 1): an interval between two of them holds an exchangeable outcome exactly as
    often as it says. The usual interpolation, level · (n − 1) + 1, is too narrow by 0.2 points at 99% of 1,000 draws.
    """
    return np.asarray(np.quantile(draws, level, axis=0, method="weibull"))


@dataclass(frozen=True, eq=False)
class Prediction:
    """Draws from the posterior predictive distribution.

    Each horizon is a marginal: bands are pointwise, and draws at two horizons are not a trajectory.

    Attributes:
        patients: Whom it is about.
        horizons: Elapsed times, in the cohort's unit.
        outcome: What is predicted.
        draws: Equally likely values.
        patient_column: What the patient's column is called in frames.
        frames: The kind of frame that is given back.
    """

    patients: pl.Series
    horizons: Float64[np.ndarray, " horizons"]
    outcome: Variable
    draws: Float64[np.ndarray, "draws patients horizons"]
    patient_column: str = "patient"
    frames: FrameKind = "polars"

    @property
    def mean(self) -> Float64[np.ndarray, "patients horizons"]:
        """The expected outcome."""
        return self.draws.mean(axis=0)

    @property
    def median(self) -> Float64[np.ndarray, "patients horizons"]:
        """Half of the probability lies below."""
        return self.quantile(0.5)

    def quantile(self, level: float) -> Float64[np.ndarray, "patients horizons"]:
        """The value below which the outcome lies with this probability."""
        if not 0.0 <= level <= 1.0:
            raise ValueError(f"level={level} is not a probability.")
        return draws_quantile(self.draws, level)

    def interval(
        self, level: float = 0.95
    ) -> tuple[Float64[np.ndarray, "patients horizons"], Float64[np.ndarray, "patients horizons"]]:
        """The central interval that holds the outcome with this probability, with as much outside on either side."""
        if not 0.0 < level < 1.0:
            raise ValueError(f"level={level} is not between 0 and 1. For 95% write level=0.95.")
        return draws_quantile(self.draws, (1 - level) / 2), draws_quantile(self.draws, (1 + level) / 2)

    def summary(self, level: float = 0.95) -> Any:
        """A line per patient and horizon: mean, median and interval."""
        lower, upper = self.interval(level)
        number, horizons = len(self.patients), len(self.horizons)
        frame = pl.DataFrame(
            [
                self.patients.gather(np.repeat(np.arange(number), horizons)).alias(self.patient_column),
                pl.Series("elapsed", np.tile(self.horizons, number)),
                pl.Series("mean", self.mean.ravel()),
                pl.Series("median", self.median.ravel()),
                pl.Series("lower", lower.ravel()),
                pl.Series("upper", upper.ravel()),
            ]
        )
        return to_kind(frame, self.frames)
