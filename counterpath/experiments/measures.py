"""What the experiments measure of one fit at one horizon: plain numbers, and curves."""

from __future__ import annotations

from collections import defaultdict
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from scipy.stats import spearmanr

from counterpath.experiments.answers import LEVELS, SMALLEST_CM3, Judged
from counterpath.experiments.world import USUAL_NOISE, followed_through_noise
from counterpath.metrics import absolute_error, covered, deferral_curve, paired_ratio, squared_error

# Of the oracle that knows another noise than the patients have.
BELIEVING = f", believing in {USUAL_NOISE:g}"


@dataclass(frozen=True)
class Found:
    """Of one fit at one horizon.

    Attributes:
        figures: By what they are.
        curves: Values over the horizontal axis that the experiment names.
    """

    figures: dict[str, float] = field(default_factory=dict)
    curves: dict[str, list[float]] = field(default_factory=dict)

    def __or__(self, other: Found) -> Found:
        return Found(self.figures | other.figures, self.curves | other.curves)


def faithfulness(judged: Judged, horizon: float) -> Found:
    """Share of outcomes inside the interval, at each level."""
    figures, curves = {}, {}
    for protocol in judged.world.protocols(horizon):
        asked, said, at = judged.asked(protocol), judged.said(protocol), judged.horizons.index(horizon)
        outcome, seen = judged.outcomes(protocol)[:, at], asked.seen[:, judged.world.horizons.index(horizon)]
        inside = np.array([covered(outcome, said.lower[i, :, at], said.upper[i, :, at]) for i in range(len(LEVELS))])
        about = "" if protocol == "factual" else f", {protocol}"
        figures[f"95% holds{about}"], figures[f"99% holds{about}"] = (float(inside[i].mean()) for i in (0, -1))
        if protocol == "factual":
            figures["95% holds, seen"], figures["99% holds, seen"] = (float(inside[i, seen].mean()) for i in (0, -1))
            curves["coverage"] = inside.mean(axis=1).tolist()
    return Found(figures, curves)


def sharpness(judged: Judged, horizon: float) -> Found:
    """Median width of the intervals, in standard deviations of the outcome, and beside the oracle's."""
    widths = _widths(judged, horizon)
    curve = (widths / judged.world.usual_size(judged.scale)).tolist()
    figures = {"95% width": curve[0], "99% width": curve[-1]}
    if judged.oracle is not None:
        best = _widths(judged.oracle, horizon)
        figures |= {
            "95% width ÷ oracle": float(widths[0] / best[0]),
            "99% width ÷ oracle": float(widths[-1] / best[-1]),
        }
    return Found(figures, {"width": curve})


def _widths(judged: Judged, horizon: float) -> np.ndarray:
    said, at = judged.said(), judged.horizons.index(horizon)
    return np.median(said.upper[:, :, at] - said.lower[:, :, at], axis=1)


def closeness(judged: Judged, horizon: float) -> Found:
    """CRPS, in standard deviations of the outcome and beside the oracle's; and whether a forecast leaves all bounds."""
    said, at = judged.said(), judged.horizons.index(horizon)
    crps, largest = said.crps[:, at], float(judged.outcomes()[:, at].max())
    figures = {
        "CRPS": float(crps.mean()) / judged.world.usual_size(judged.scale),
        "largest mean ÷ largest outcome": float(said.mean[:, at].max()) / largest,
        "largest median ÷ largest outcome": float(said.median[:, at].max()) / largest,
        "forecasts that are no number": float(1 - np.isfinite(said.mean[:, at] + said.median[:, at]).mean()),
    }
    if judged.oracle is not None:
        best = judged.oracle.said().crps[:, judged.oracle.horizons.index(horizon)]
        ratio = paired_ratio(crps, best, judged.asked("factual").persons)
        figures |= {
            "CRPS ÷ oracle": ratio.value,
            "CRPS ÷ oracle, lower": ratio.lower,
            "CRPS ÷ oracle, upper": ratio.upper,
        }
    return Found(figures)


def point_error(judged: Judged, horizon: float) -> Found:
    """Errors of the median while the test patients' noise grows: of all of them first, then of the same ones."""
    scale, at = judged.world.usual_size(judged.scale), judged.horizons.index(horizon)
    outcome, median = judged.outcomes()[:, at] / scale, judged.said().median[:, at] / scale
    figures = {f"{name} at noise {USUAL_NOISE:g}": value for name, value in _errors(outcome, median).items()}
    if judged.oracle is not None:
        best = judged.oracle.said().median[:, judged.oracle.horizons.index(horizon)] / scale
        ratio = squared_error(outcome, median).mean() / squared_error(outcome, best).mean()
        figures["mean squared error ÷ oracle"] = float(ratio)
    curves: dict[str, list[float]] = defaultdict(list)
    for noise_std in judged.scale.noises:
        own = (
            judged.outcomes("factual", noise_std)[:, at] / scale,
            judged.said("factual", noise_std).median[:, at] / scale,
        )
        if noise_std == USUAL_NOISE:
            same = followed_through_noise(len(outcome), judged.scale)
            own = outcome[same], median[same]
        for name, value in _errors(*own).items():
            curves[name].append(value)
    most = judged.scale.noises[-1]
    figures |= {f"{name} at noise {most:g}": values[-1] for name, values in curves.items()}
    noisy = judged.outcomes("factual", most)[:, at], judged.said("factual", most).mean[:, at]
    figures[f"mean squared error of the mean at noise {most:g}"] = float(squared_error(*noisy).mean() / scale**2)
    return Found(figures, dict(curves))


def _errors(outcome: np.ndarray, median: np.ndarray) -> dict[str, float]:
    squared, absolute = squared_error(outcome, median), absolute_error(outcome, median)
    return {
        "mean squared error": float(squared.mean()),
        "median squared error": float(np.median(squared)),
        "median absolute error": float(np.median(absolute)),
    }


def deferral(judged: Judged, horizon: float) -> Found:
    """Error of the effect between the arms while patients of whom the model is least sure are withheld.

    As in the literature, the two arms of a patient have histories of their own; in `branching` they part on day 54.
    The model's scale is relative: who is withheld by it has a small tumour, whose effect in cm³ is never far off. So
    what it says of errors is looked at where errors are relative too.
    """
    figures, curves = {}, {}
    at = judged.horizons.index(horizon)
    first, outcome = judged.said(), judged.outcomes()[:, at]

    def put(name: str, about: str, error: np.ndarray, unsure: np.ndarray) -> None:
        curve = deferral_curve(error, unsure)
        figures[f"area {name}{about}"] = curve.area
        if not about:
            curves[f"error of the rest, {name}"] = curve.error.tolist()

    for protocol in judged.world.protocols(horizon)[1:]:
        second = judged.said(protocol)
        other = judged.outcomes(protocol)[:, at]
        error = squared_error(outcome - other, first.mean[:, at] - second.mean[:, at])
        about = "" if protocol == "other arm" else f", {protocol}"
        by_volume, by_scale = (
            np.hypot(getattr(first, name)[:, at], getattr(second, name)[:, at]) for name in ("model_std", "spread")
        )
        if not error.mean() > 0:
            continue
        if _ranks_anybody(by_volume):
            put("by volume", about, error, by_volume)
            # Who would be withheld by a ranking that knows nothing but the size of the forecast.
            put("by size alone", about, error, np.hypot(first.mean[:, at], second.mean[:, at]))
            figures[f"area by volume − by size alone{about}"] = (
                figures[f"area by volume{about}"] - figures[f"area by size alone{about}"]
            )
        if _ranks_anybody(by_scale):
            ratio = _log_ratio(first.median[:, at], second.median[:, at])
            put("by the model's scale", about, error, by_scale)
            put("by the model's scale, relative", about, squared_error(_log_ratio(outcome, other), ratio), by_scale)
            figures[f"Spearman of spread and volume{about}"] = rank_correlation(by_scale, first.median[:, at])
    return Found(figures, curves)


def _ranks_anybody(unsure: np.ndarray) -> bool:
    return bool(not np.isnan(unsure).any() and np.ptp(unsure) > 0)


def _log_ratio(volume: np.ndarray, other: np.ndarray) -> np.ndarray:
    return np.log(np.maximum(volume, SMALLEST_CM3) / np.maximum(other, SMALLEST_CM3))


def outcome_uncertainty(judged: Judged, horizon: float) -> Found:
    """Rank correlation of the predicted standard deviation, and of the part no data would lower, with the error."""
    figures = _ranks(judged, horizon)
    if judged.oracle is not None:
        figures |= {f"{name} − oracle": figures[name] - best for name, best in _ranks(judged.oracle, horizon).items()}
    return Found(figures)


def _ranks(judged: Judged, horizon: float) -> dict[str, float]:
    said, at = judged.said(), judged.horizons.index(horizon)
    outcome, median = judged.outcomes()[:, at], said.median[:, at]
    relative = np.abs(_log_ratio(outcome, median))
    pairs = {
        "Spearman, volume": (said.std[:, at], absolute_error(outcome, median)),
        "Spearman, outcome uncertainty alone": (said.outcome_std[:, at], absolute_error(outcome, median)),
        "Spearman, relative": (said.relative_std[:, at], relative),
    }
    return {
        name: rank_correlation(unsure, error) if np.ptp(unsure) > 0 and np.ptp(error) > 0 else 0.0
        for name, (unsure, error) in pairs.items()
        if not np.isnan(unsure).any()  # draws that mix noise and ignorance have no outcome uncertainty alone
    }


def rank_correlation(first: np.ndarray, second: np.ndarray) -> float:
    """Spearman's."""
    found: Any = spearmanr(first, second)
    return float(found.statistic)
