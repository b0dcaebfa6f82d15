"""Elapsed times in bins: each its own where they are few, else bins with about as many outcomes each."""

from __future__ import annotations

import numpy as np
from jaxtyping import Float64

MOST_HORIZONS = 10  # so many different elapsed times have a bin each
BINS = 5


def elapsed_bins(elapsed: Float64[np.ndarray, " points"]) -> Float64[np.ndarray, " edges"]:
    """Edges between the bins; a time on an edge belongs to the bin before it."""
    distinct = np.unique(np.round(elapsed, 9))
    if len(distinct) <= MOST_HORIZONS:
        return (distinct[1:] + distinct[:-1]) / 2
    inner = np.quantile(elapsed, np.arange(1, BINS) / BINS)
    return np.unique([float(f"{edge:.2g}") for edge in inner])


def bin_names(elapsed: Float64[np.ndarray, " points"], edges: np.ndarray, time_unit: str) -> list[str]:
    """Each bin in words: its one time, or from where to where."""
    which = np.searchsorted(edges, elapsed, side="left")
    names = []
    for number in range(len(edges) + 1):
        inside = elapsed[which == number]
        if not len(inside):
            low, high = np.nan, np.nan
        elif np.ptp(inside) <= 1e-9 * inside.max():
            low = high = inside[0]
        else:
            low = edges[number - 1] if number else float(f"{inside.min():.2g}")
            high = edges[number] if number < len(edges) else float(f"{inside.max():.2g}")
        said = f"{high:.6g}" if low == high else f"{low:.6g}–{high:.6g}"
        names.append(f"{said} {time_unit}{'' if high == 1 else 's'}")
    return names
