"""Calibration in plain words."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

from scipy.special import ndtri

from counterpath.metrics import Estimate

ENOUGH = 0.01  # a coverage within a point of its level is called right, however many patients show the difference
SKEWED = 0.03  # likewise for the share of outcomes below the median


@dataclass(frozen=True)
class Held:
    """How many outcomes the intervals of one bin of elapsed time held.

    Attributes:
        bin: In words, such as `4–5 days`.
        share: Of outcomes.
    """

    bin: str
    share: Estimate


def verdict(level: float, overall: Estimate, bins: Sequence[Held], below_median: Estimate) -> str:
    """One line: how many outcomes the intervals held, and where they are too narrow or too wide.

    A difference counts where it is more than a point and more than chance: beyond the 5% limit for as many bins.

    Args:
        level: Of the intervals.
        overall: Share of all outcomes that they held.
        bins: The same by elapsed time.
        below_median: Share of outcomes below the median.
    """
    limit = float(ndtri(1 - 0.025 / max(len(bins), 1)))
    narrow = [held.bin for held in bins if _off(held.share, level, limit) < 0]
    wide = [held.bin for held in bins if _off(held.share, level, limit) > 0]
    found = []
    for where, what in ((narrow, "too narrow"), (wide, "too wide")):
        if where:
            found.append(what if len(where) == len(bins) else f"{what} at {', '.join(where)}")
    if not found:  # all together may show what none shows alone
        off = _off(overall, level, float(ndtri(0.975)))
        found = ["too narrow" if off < 0 else "too wide"] if off else ["well calibrated"]
    side = _off(below_median, 0.5, float(ndtri(0.995)), enough=SKEWED)
    if side:
        direction = "lower" if side > 0 else "higher"
        found.append(f"outcomes are {direction} than predicted ({_said(below_median, 0)} lie below the median)")
    return f"{level:.0%} intervals held {_said(overall, 1)} of outcomes: {'; '.join(found)}"


def _off(share: Estimate, level: float, limit: float, enough: float = ENOUGH) -> int:
    """−1 where the share is too low, 1 where it is too high, 0 where it is right or chance."""
    # A sample in which all were held has no spread of its own, so that of a right forecast is the least.
    error = max(share.standard_error if math.isfinite(share.standard_error) else 0.0, _least_error(share, level))
    difference = share.value - level
    return 0 if abs(difference) <= max(enough, limit * error) else int(math.copysign(1, difference))


def _least_error(share: Estimate, level: float) -> float:
    return math.sqrt(level * (1 - level) / share.patients)


def _said(share: Estimate, decimals: int) -> str:
    if not math.isfinite(share.standard_error):
        return f"{share.value:.{decimals}%}"
    return f"{share.value:.{decimals}%} ± {share.standard_error:.{decimals}%}"
