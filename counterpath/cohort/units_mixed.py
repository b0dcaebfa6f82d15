"""Do the values of a variable look as if they came in two units?"""

from __future__ import annotations

import numpy as np

# Usual pairs: g/dL and g/L, mg/dL and mmol/L (glucose, urea, creatinine, cholesterol, bilirubin), kPa and mmHg,
# kg and lb, cm and inch, °C and °F near body temperature, and powers of ten.
KNOWN_FACTORS = (2.2046, 2.54, 2.655, 7.5006, 10.0, 17.1, 18.016, 28.0, 38.67, 88.42, 100.0, 113.1, 1000.0)
TOLERANCE = 0.15
SEPARATION = 5.0  # distance of the two groups in standard deviations of their members
SMALLEST_GROUP = 5
FEWEST_VALUES = 3
SAMPLE = 20_000


def looks_like_two_units(values: np.ndarray) -> tuple[float, float, int] | None:
    """The two typical values and the number near the higher, where values form two groups a known factor apart.

    Positive values are split on the log scale where the two parts are tightest (Otsu's criterion). Two units show as
    two narrow groups whose medians differ by a conversion factor; a wide distribution, or an atom far off, does not.

    Args:
        values: What was recorded, without gaps.
    """
    if len(values) < 4 * SMALLEST_GROUP or np.min(values) <= 0:
        return None
    some = values if len(values) <= SAMPLE else np.random.default_rng(0).choice(values, SAMPLE, replace=False)
    logs = np.sort(np.log(some))
    number = np.arange(1, len(logs))
    sums, squares = np.cumsum(logs), np.cumsum(logs**2)
    left = squares[:-1] - sums[:-1] ** 2 / number
    right = (squares[-1] - squares[:-1]) - (sums[-1] - sums[:-1]) ** 2 / (len(logs) - number)
    within = np.maximum(left, 0) + np.maximum(right, 0)
    split = int(np.argmin(within)) + 1
    low, high = logs[:split], logs[split:]
    if min(len(low), len(high)) < max(SMALLEST_GROUP, 0.01 * len(logs)):
        return None
    if min(len(np.unique(low)), len(np.unique(high))) < FEWEST_VALUES:
        return None  # a code or a dose with two strengths
    spread = np.sqrt(within[split - 1] / len(logs))
    distance = float(np.median(high) - np.median(low))
    factor = np.exp(distance)
    if distance < SEPARATION * spread or not any(abs(factor / known - 1) < TOLERANCE for known in KNOWN_FACTORS):
        return None
    near_high = int(np.sum(np.log(values) > (low[-1] + high[0]) / 2))
    return float(np.exp(np.median(low))), float(np.exp(np.median(high))), near_high
