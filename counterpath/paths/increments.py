"""What the solver consumes: the increment of X over each cell, and over the part of a cell up to a cut or horizon."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from jaxtyping import Float64, Int64

from counterpath.cohort import Grid
from counterpath.cohort.grid import ROUNDING
from counterpath.paths.control_path import ControlPath, PathError


@dataclass(frozen=True, eq=False)
class PathIncrements:
    """A path on the grid. `initial` plus all steps is X at the end, to rounding.

    Attributes:
        channels: Names.
        initial: X where the window starts.
        steps: Increments, one per cell (two for `rectilinear`); zero after the end of the history.
        durations: How long each step takes on the model's clock; zero after the end.
    """

    channels: tuple[str, ...]
    initial: Float64[np.ndarray, "patients channels"]
    steps: Float64[np.ndarray, "patients steps channels"]
    durations: Float64[np.ndarray, "patients steps"]


@dataclass(frozen=True, eq=False)
class PartialSteps:
    """The last step to each cut (or horizon): from the edge before it, with nothing that comes later.

    Attributes:
        cell: The cell that holds the cut; all cells before it are taken whole.
        steps: Increment from the cell's first edge to the cut (two for `rectilinear`).
        durations: How long each takes on the model's clock.
    """

    cell: Int64[np.ndarray, "patients cuts"]
    steps: Float64[np.ndarray, "patients cuts parts channels"]
    durations: Float64[np.ndarray, "patients cuts parts"]


def path_increments(
    path: ControlPath,
    grid: Grid,
    *,
    start: Float64[np.ndarray, " patients"],
    end: Float64[np.ndarray, " patients"],
) -> PathIncrements:
    """Increments over every cell from `start` on, the last one only up to `end`.

    Args:
        path: X(t).
        grid: Cells, in time since `start`.
        start: Where each patient's window starts.
        end: Up to when each path is known, at most the grid's lookback later.
    """
    _require_window(grid, start[:, None], end[:, None])
    path.require_causal(end[:, None])
    edges = np.minimum(start[:, None] + grid.edges, end[:, None])
    edges[:, 0], edges[:, -1] = np.minimum(start, end), end  # start + lookback may miss the end by a rounding
    values = path.values(edges)
    steps, durations = _steps(path, edges[:, :-1], edges[:, 1:], values[:, :-1], values[:, 1:])
    patients, cells, parts, channels = steps.shape
    return PathIncrements(
        path.channels,
        values[:, 0],
        steps.reshape(patients, cells * parts, channels),
        durations.reshape(patients, cells * parts),
    )


def partial_steps(
    path: ControlPath,
    grid: Grid,
    *,
    start: Float64[np.ndarray, " patients"],
    cuts: Float64[np.ndarray, "patients cuts"],
) -> PartialSteps:
    """The step that reaches each cut from the edge before it.

    Args:
        path: X(t).
        grid: Cells, in time since `start`.
        start: Where each patient's window starts.
        cuts: Times in the window, at most the grid's lookback after its start.
    """
    _require_window(grid, start[:, None], cuts)
    path.require_causal(cuts)
    cell = grid.cell_of(cuts - start[:, None])
    before = np.minimum(start[:, None] + grid.edges[cell], cuts)
    steps, durations = _steps(path, before, cuts, path.values(before), path.values(cuts))
    return PartialSteps(cell, steps, durations)


def _steps(
    path: ControlPath, before: np.ndarray, after: np.ndarray, value_before: np.ndarray, value_after: np.ndarray
) -> tuple[np.ndarray, np.ndarray]:
    duration = (after - before) / path.time_scale
    moved = path.moved_in_time(before, after)
    if moved is None:
        return (value_after - value_before)[:, :, None, :], duration[:, :, None]
    parts = np.stack([moved - value_before, value_after - moved], axis=2)
    return parts, np.stack([duration, np.zeros_like(duration)], axis=2)


def _require_window(grid: Grid, start: np.ndarray, end: np.ndarray) -> None:
    length, slack = end - start, ROUNDING * grid.lookback
    wrong = (length < -slack) | (length > grid.lookback + slack)
    if wrong.any():
        raise PathError(
            f"A window of {length[wrong][0]:.6g} does not fit the grid's {grid.lookback:.6g}, or ends before it "
            "starts. Start it at most one lookback before its end."
        )
