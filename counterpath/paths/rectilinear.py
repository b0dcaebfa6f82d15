"""The hold path, walked so that time moves first and values jump after (Morrill et al. 2021)."""

from __future__ import annotations

from dataclasses import dataclass

from counterpath.paths.channels import Channel
from counterpath.paths.control_path import ControlPath
from counterpath.paths.hold import HoldPath
from counterpath.paths.ragged_search import PathValues, QueryTimes


@dataclass(frozen=True, eq=False)
class RectilinearPath(ControlPath):
    """Two steps per cell instead of one; as causal as `hold`."""

    hold: HoldPath

    @property
    def layout(self) -> tuple[Channel, ...]:
        """As for `hold`."""
        return self.hold.layout

    @property
    def time_scale(self) -> float:
        """As for `hold`."""
        return self.hold.time_scale

    def values(self, times: QueryTimes) -> PathValues:
        """As for `hold`."""
        return self.hold.values(times)

    def moved_in_time(self, start: QueryTimes, stop: QueryTimes) -> PathValues:
        """The state at `start` with its clocks moved on to `stop`: nothing has been recorded yet."""
        moved, after = self.hold.values(start), self.hold.values(stop)
        for i, channel in enumerate(self.layout):
            if channel.role in ("time", "infused"):
                moved[..., i] = after[..., i]
            elif channel.role == "since":
                moved[..., i] += (stop - start) / self.time_scale
        return moved
