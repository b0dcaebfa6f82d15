"""How predictions did against what happened."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from os import PathLike
from typing import TYPE_CHECKING, Any

import numpy as np
import polars as pl
from jaxtyping import Bool, Float64

from counterpath.cohort import Cohort, CohortError, Variable
from counterpath.cohort.frames import FrameKind, to_kind
from counterpath.metrics import (
    DeferralCurve,
    Estimate,
    Uniformity,
    absolute_error,
    covered,
    deferral_curve,
    interval_score,
    interval_width,
    mean_by_patient,
    pit_uniformity,
    squared_error,
)
from counterpath.predictive.elapsed_bins import bin_names, elapsed_bins
from counterpath.predictive.points import LEVELS, Points
from counterpath.predictive.verdict import Held, verdict

if TYPE_CHECKING:
    from matplotlib.figure import Figure

JUDGED = 0.95  # the level of the verdict


@dataclass(frozen=True)
class Scores:
    """How forecasts did in one bin of elapsed time, for all patients or for a subgroup.

    Attributes:
        subgroup: `all`, or its name.
        bin: Elapsed time in words.
        horizon: Mean elapsed time.
        points: How many outcomes.
        patients: Of how many patients.
        crps: In outcome units over `scale`.
        mse: Of the median, in those units, squared.
        mae: Of the median.
        coverage: Share of outcomes inside the central interval, by level.
        width: Median width of the interval over `scale`, by level.
        interval_score: Width and misses of the 95% interval in one number, in those units.
        pit: How evenly outcomes are spread over their forecasts.
        below_median: Share of outcomes below the median.
    """

    subgroup: str
    bin: str
    horizon: float
    points: int
    patients: int
    crps: Estimate
    mse: Estimate
    mae: Estimate
    coverage: dict[float, Estimate]
    width: dict[float, float]
    interval_score: Estimate
    pit: Uniformity
    below_median: Estimate


@dataclass(frozen=True, eq=False)
class Evaluation:
    """Scores by elapsed time, for all patients and for subgroups.

    Attributes:
        model: Whose predictions they are.
        outcome: What was predicted.
        time_unit: Of elapsed times.
        points: Every forecast beside its outcome.
        scores: One per bin of elapsed time: all patients.
        overall: Of all bins together.
        subgroups: One per subgroup and bin.
        scale: What outcomes were divided by, such as the training patients' standard deviation.
        frames: The kind of frame that is given back.
        estimator: The model itself, where it is known.
        cohort: The patients, where they are known.
    """

    model: str
    outcome: Variable
    time_unit: str
    points: Points
    scores: tuple[Scores, ...]
    overall: Scores
    subgroups: tuple[Scores, ...] = ()
    scale: float = 1.0
    frames: FrameKind = "polars"
    estimator: object = None
    cohort: Cohort | None = None

    @property
    def verdict(self) -> str:
        """Calibration in one line of plain words."""
        bins = [Held(score.bin, score.coverage[JUDGED]) for score in self.scores]
        return verdict(JUDGED, self.overall.coverage[JUDGED], bins, self.overall.below_median)

    def __str__(self) -> str:
        return f"{self.model}: {self.verdict}"

    def unscaled(self) -> Evaluation:
        """The same in the outcome's own unit."""

        def times(estimate: Estimate, power: int = 1) -> Estimate:
            factor = self.scale**power
            return replace(estimate, value=estimate.value * factor, standard_error=estimate.standard_error * factor)

        def rescaled(score: Scores) -> Scores:
            return replace(
                score,
                crps=times(score.crps),
                mse=times(score.mse, 2),
                mae=times(score.mae),
                width={level: width * self.scale for level, width in score.width.items()},
                interval_score=times(score.interval_score),
            )

        return replace(
            self,
            scores=tuple(rescaled(score) for score in self.scores),
            overall=rescaled(self.overall),
            subgroups=tuple(rescaled(score) for score in self.subgroups),
            scale=1.0,
        )

    @property
    def deferral(self) -> DeferralCurve:
        """Whether the error falls when the patients with the widest intervals are handed to somebody else."""
        level = LEVELS.index(JUDGED)
        return deferral_curve(
            absolute_error(self.points.outcome, self.points.median),
            self.points.upper[:, level] - self.points.lower[:, level],
            patients=self.points.patient,
        )

    def to_frame(self) -> Any:
        """A line per subgroup and bin, with standard errors by patient."""
        return to_kind(
            pl.DataFrame([self._row(score) for score in (*self.scores, self.overall, *self.subgroups)]), self.frames
        )

    def _row(self, score: Scores) -> dict[str, object]:
        row: dict[str, object] = {
            "model": self.model,
            "outcome": self.outcome.name,
            "subgroup": score.subgroup,
            "bin": score.bin,
            "elapsed": score.horizon,
            "outcomes": score.points,
            "patients": score.patients,
            "crps": score.crps.value,
            "crps_error": score.crps.standard_error,
            "mse_of_median": score.mse.value,
            "mse_error": score.mse.standard_error,
            "mae_of_median": score.mae.value,
            "mae_error": score.mae.standard_error,
        }
        for level in LEVELS:
            name = f"{level:.0%}".rstrip("%")
            row[f"coverage_{name}"] = score.coverage[level].value
            row[f"coverage_{name}_error"] = score.coverage[level].standard_error
            row[f"width_{name}"] = score.width[level]
        row["interval_score_95"] = score.interval_score.value
        row["interval_score_95_error"] = score.interval_score.standard_error
        row["below_median"] = score.below_median.value
        row["below_median_error"] = score.below_median.standard_error
        row["pit_distance"] = score.pit.distance
        return row

    def plot(self, path: str | PathLike[str] | None = None, *, titled: bool = True) -> Figure:
        """Coverage, where outcomes fell in their forecasts, sharpness and error, and deferral, on one page.

        Args:
            path: Write the picture to this file too.
            titled: Whether the verdict stands above.
        """
        from counterpath.figures.calibration import draw_calibration

        return draw_calibration(
            [score.bin for score in self.scores],
            {
                level: [(s.coverage[level].value, s.coverage[level].standard_error) for s in self.scores]
                for level in LEVELS
            },
            self.points.pit,
            [_with_error(score.crps) for score in self.scores],
            [score.width[JUDGED] for score in self.scores],
            self.deferral,
            title=str(self) if titled else "",
            unit=self.outcome.label if self.scale == 1.0 else f"{self.outcome.name} ÷ {self.scale:.3g}",
            path=path,
        )


def evaluate_points(
    points: Points,
    *,
    model: str,
    outcome: Variable,
    time_unit: str,
    subgroups: Mapping[str, Bool[np.ndarray, " patients"]] | None = None,
    scale: float = 1.0,
    frames: FrameKind = "polars",
) -> Evaluation:
    """Score forecasts by elapsed time, and by subgroup.

    Args:
        points: Forecasts and outcomes.
        model: A name for the table.
        outcome: What was predicted.
        time_unit: Of elapsed times.
        subgroups: A mask over the judged patients for each name.
        scale: Divide outcomes and predictions by this.
        frames: The kind of frame to give back.
    """
    if not len(points):
        raise CohortError("No outcome follows within the horizons, so there is nothing to judge.")
    bins = _bins(points.elapsed, time_unit)
    every = [_scores("all", name, points.keep(mask), scale) for name, mask in bins.items()]
    parts = []
    for group, members in (subgroups or {}).items():
        inside = members[points.patient]
        if not inside.any():
            raise CohortError(f"Nobody in subgroup {group!r} has an outcome to judge.")
        parts += [
            _scores(group, name, points.keep(mask & inside), scale)
            for name, mask in bins.items()
            if (mask & inside).any()
        ]
        parts.append(_scores(group, "all", points.keep(inside), scale))
    overall = _scores("all", "all", points, scale)
    return Evaluation(model, outcome, time_unit, points, tuple(every), overall, tuple(parts), scale, frames)


def _with_error(estimate: Estimate) -> tuple[float, float]:
    return estimate.value, estimate.standard_error


def _scores(subgroup: str, name: str, points: Points, scale: float) -> Scores:
    outcome, median = points.outcome / scale, points.median / scale
    coverage, width = {}, {}
    for i, level in enumerate(LEVELS):
        lower, upper = points.lower[:, i] / scale, points.upper[:, i] / scale
        coverage[level] = mean_by_patient(covered(outcome, lower, upper), points.patient)
        width[level] = float(np.median(interval_width(lower, upper)))
    judged = LEVELS.index(JUDGED)
    score = interval_score(outcome, points.lower[:, judged] / scale, points.upper[:, judged] / scale, JUDGED)
    return Scores(
        subgroup,
        name,
        float(points.elapsed.mean()),
        len(points),
        len(np.unique(points.patient)),
        mean_by_patient(points.crps / scale, points.patient),
        mean_by_patient(squared_error(outcome, median), points.patient),
        mean_by_patient(absolute_error(outcome, median), points.patient),
        coverage,
        width,
        mean_by_patient(score, points.patient),
        pit_uniformity(points.pit),
        mean_by_patient(points.pit < 0.5, points.patient),
    )


def _bins(elapsed: Float64[np.ndarray, " points"], time_unit: str) -> dict[str, np.ndarray]:
    edges = elapsed_bins(elapsed)
    which = np.searchsorted(edges, elapsed, side="left")
    names = bin_names(elapsed, edges, time_unit)
    return {name: which == i for i, name in enumerate(names) if (which == i).any()}
