"""Steps whose loss or gradient is not finite: how many may be left out before a run is stopped."""

from __future__ import annotations

import math
from collections import defaultdict
from itertools import takewhile
from typing import Any

import numpy as np
from jaxtyping import Float64

from counterpath.training.settings import TrainingSettings

JUDGED_STEPS = 20  # at least


class TrainingError(RuntimeError):
    """Training could not go on."""


def require_finite(history: list[dict[str, Any]], settings: TrainingSettings, steps_per_epoch: int) -> None:
    """By the last steps, of several epochs where these are short: one step alone says nothing."""
    done, epochs = history[-1]["epoch"], math.ceil(JUDGED_STEPS / steps_per_epoch)
    bad: dict[int, float] = defaultdict(float)
    for row in takewhile(lambda row: row["epoch"] > done - epochs, reversed(history)):
        bad[row["member"]] += row["bad_steps"] * steps_per_epoch
    worst = max(bad.values())
    if worst > settings.bad_steps * epochs * steps_per_epoch:
        steps = min(done, epochs) * steps_per_epoch
        raise TrainingError(
            f"By epoch {done}, {worst:.0f} of the last {steps} steps had a loss or gradient that is not finite. "
            "Such steps are left out, but so many mean that training has diverged. Lower learning_rate, or look for "
            "extreme values with cohort.check()."
        )


def require_kept(best_scores: Float64[np.ndarray, " members"]) -> None:
    """Of every member some state had a score, so that what is returned has learned something."""
    lost = np.flatnonzero(~np.isfinite(best_scores))
    if len(lost):
        which = "No" if len(best_scores) == 1 else f"Of network {lost[0] + 1} of {len(best_scores)} no"
        raise TrainingError(
            f"{which} state described the validation patients: all their scores were not finite. Look for extreme "
            "values among these patients with cohort.check(), or lower learning_rate."
        )
