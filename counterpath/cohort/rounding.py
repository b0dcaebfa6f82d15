"""Numbers that a model keeps are rounded, so that the largest or a middle value is not that of a patient any more."""

from __future__ import annotations

import math


def rounded(value: float, digits: int) -> float:
    """To so many significant digits."""
    return float(f"{value:.{digits - 1}e}") if math.isfinite(value) else value


def rounded_up(value: float, digits: int) -> float:
    """Not below the value, and the value itself where it has so few digits already."""
    return _away(value, digits, up=True)


def rounded_down(value: float, digits: int) -> float:
    """Not above the value, and the value itself where it has so few digits already."""
    return _away(value, digits, up=False)


def _away(value: float, digits: int, *, up: bool) -> float:
    near = rounded(value, digits)
    if near == value or not math.isfinite(value) or (near > value) == up:
        return near
    unit = 10.0 ** (math.floor(math.log10(abs(near))) - digits + 1)
    return rounded(near + unit if up else near - unit, digits)
