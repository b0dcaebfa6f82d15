"""A figure over seeds, with as many digits as its spread leaves meaning to."""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np

SMALL = 1e-3  # below it a power of ten is written
_RAISED = str.maketrans("-0123456789", "⁻⁰¹²³⁴⁵⁶⁷⁸⁹")


def stated(values: Sequence[float], *, percent: bool = False) -> str:
    """Mean ± standard deviation; of one value, the value.

    Args:
        values: Of each seed.
        percent: With one decimal.
    """
    mean = float(np.mean(values))
    std = float(np.std(values, ddof=1)) if len(values) > 1 else None
    if percent:
        return f"{100 * mean:.1f}%" if std is None else f"{100 * mean:.1f} ± {100 * std:.1f}%"
    exponent = math.floor(math.log10(abs(mean))) if 0 < abs(mean) < SMALL else 0
    mean, std = mean / 10.0**exponent, None if std is None else std / 10.0**exponent
    if std is None:
        text = f"{mean:.{max(2 - _exponent(mean), 0)}f}"
    else:
        # Two digits of a spread that begins with one: 0.010 and 0.014 are not the same.
        digits = -_exponent(std) + f"{std:e}".startswith("1") if std else 2 - _exponent(mean)
        text = f"{mean:.{max(digits, 0)}f} ± {std:.{max(digits, 0)}f}"
    if not exponent:
        return text
    raised = str(exponent).translate(_RAISED)
    return f"({text})·10{raised}" if std is not None else f"{text}·10{raised}"


def _exponent(value: float) -> int:
    return math.floor(math.log10(abs(value))) if value else 1
