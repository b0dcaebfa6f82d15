"""The control path X(t) of a history: what the model knows of a patient, as a function of time."""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import TYPE_CHECKING, Literal, get_args

import numpy as np
from jaxtyping import Float64

from counterpath.cohort import Cohort, CohortError, Grid, Scaler
from counterpath.paths.channels import Channel
from counterpath.paths.ragged_search import PathValues, QueryTimes

if TYPE_CHECKING:
    from counterpath.paths.hold import HoldPath
    from counterpath.paths.linear_response import LinearResponse

Interpolation = Literal["hold", "rectilinear", "linear", "hermite"]
INTERPOLATIONS: tuple[str, ...] = get_args(Interpolation)


class PathError(CohortError):
    """A path that would have to see the future, or cannot be built."""


class ControlPath(ABC):
    """Functions of time for many patients, with named channels."""

    @property
    @abstractmethod
    def layout(self) -> tuple[Channel, ...]:
        """What each channel is, in order."""

    @property
    def channels(self) -> tuple[str, ...]:
        """Names, in order; no two are equal."""
        return tuple(channel.name for channel in self.layout)

    @property
    @abstractmethod
    def time_scale(self) -> float:
        """The length of the model's clock."""

    @abstractmethod
    def values(self, times: QueryTimes) -> PathValues:
        """X at each time. Nothing later than the history that the path was made of enters."""

    def moved_in_time(self, start: QueryTimes, stop: QueryTimes) -> PathValues | None:
        """Where a path that first moves in time and then jumps stands between the two; None if it does not."""
        return None

    def require_causal(self, cuts: Float64[np.ndarray, "patients cuts"]) -> None:
        """An error where the path up to a cut would depend on what comes after it. Most schemes never do."""
        return


def control_path(
    cohort: Cohort,
    scaler: Scaler,
    grid: Grid,
    *,
    window_start: Float64[np.ndarray, " patients"],
    interpolation: Interpolation = "hold",
    response: LinearResponse | None = None,
) -> ControlPath:
    """The path of every patient's history.

    Args:
        cohort: The histories, or whole trajectories that are to be cut later.
        scaler: Fitted on training patients.
        grid: Of the model; its `lookback` is the length of the clock.
        window_start: Where each patient's clock starts.
        interpolation: `hold` (a value stays until the next record; causal at every time), `rectilinear` (the same,
            but time moves before values jump), `linear` or `hermite` (values cubic with backward differences; both can
            be cut only at the end of the history, or at records where every variable was recorded).
        response: What is usual for linear responses; default: they stay at 0.
    """
    from counterpath.paths.hold import HoldPath

    scaler.require_same(cohort.schema)
    hold: HoldPath = HoldPath.of(cohort, scaler, grid, window_start, response)
    if interpolation == "hold":
        return hold
    if interpolation == "rectilinear":
        from counterpath.paths.rectilinear import RectilinearPath

        return RectilinearPath(hold)
    if interpolation in ("linear", "hermite"):
        from counterpath.paths.smooth import SmoothPath

        return SmoothPath.through(hold, "linear" if interpolation == "linear" else "hermite")
    raise PathError(f"There is no interpolation {interpolation!r}. Choose one of {', '.join(INTERPOLATIONS)}.")
