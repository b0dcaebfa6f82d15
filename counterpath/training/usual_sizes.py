"""What counts as one: the usual size of increments, levels and changes in the training patients."""

from __future__ import annotations

import math

import numpy as np
from jaxtyping import Float64

from counterpath.paths.tabulation import HistoryArrays


def usual_size(values: Float64[np.ndarray, "*any columns"]) -> Float64[np.ndarray, " columns"]:
    """Root mean square of what is not zero, for each column; 1 for a column that never moves."""
    flat = _rows(values)
    moved = np.maximum(np.count_nonzero(flat, axis=0), 1)
    size = np.sqrt((flat**2).sum(axis=0) / moved)
    return np.where(size > 0, size, 1.0)


def usual_level(history: HistoryArrays) -> Float64[np.ndarray, " known"]:
    """The usual size of what is known at a window's start; for the path's values, over the whole window."""
    channels = history.steps.shape[-1]
    levels = history.first[:, None, :channels] + np.cumsum(history.steps, axis=1)
    return np.concatenate([usual_size(levels), usual_size(history.first[:, channels:])])


def usual_change(changes: Float64[np.ndarray, "*any outcomes"]) -> Float64[np.ndarray, " outcomes"]:
    """The size that two of three changes of each outcome do not exceed."""
    flat = np.abs(_rows(changes))
    size = np.array([np.quantile(column[~np.isnan(column)], 0.68) for column in flat.T])
    return np.where(size > 0, size, 1.0)


def _rows(values: Float64[np.ndarray, "*any columns"]) -> Float64[np.ndarray, "rows columns"]:
    """All before the last axis as one; of no columns, too, such as where no static covariate is known."""
    return values.reshape(math.prod(values.shape[:-1]), values.shape[-1])
