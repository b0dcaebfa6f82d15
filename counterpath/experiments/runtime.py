"""How long an epoch of the published configuration takes, by depth of its vector fields and by draws."""

from __future__ import annotations

import numpy as np

from counterpath.estimators import BNCDE
from counterpath.experiments.measures import Found
from counterpath.experiments.scales import Scale
from counterpath.experiments.tumor_worlds import ARMS

WIDTH = 128
USUAL_DEPTH, USUAL_DRAWS = 2, 10
EPOCHS = 4  # of which the first is compiled


def runtime(scale: Scale, seed: int) -> Found:
    """Seconds per epoch, and how they grow."""
    asked = {*((depth, USUAL_DRAWS) for depth in scale.depths), *((USUAL_DEPTH, draws) for draws in scale.draws)}
    seconds = {both: _epoch_seconds(scale, seed, *both) for both in sorted(asked)}
    return figures_of(
        scale,
        by_depth=[seconds[depth, USUAL_DRAWS] for depth in scale.depths],
        by_draws=[seconds[USUAL_DEPTH, draws] for draws in scale.draws],
    )


def figures_of(scale: Scale, by_depth: list[float], by_draws: list[float]) -> Found:
    """What seconds per epoch say: slopes, and how straight a line depth gives."""
    per_layer, start = np.polyfit(scale.depths, by_depth, 1)
    line = start + per_layer * np.array(scale.depths)
    per_draw, without = np.polyfit(scale.draws, by_draws, 1)
    figures = {
        "seconds per epoch": float(by_depth[scale.depths.index(USUAL_DEPTH)]),
        "seconds per layer": float(per_layer),
        "seconds without layers": float(start),
        "off a straight line by depth": float(np.abs(line - by_depth).max() / np.ptp(by_depth)),
        "seconds per draw": float(per_draw),
        "seconds without draws": float(without),
        "most draws ÷ one draw": by_draws[-1] / by_draws[0],
        "minutes for 500 epochs": 500 / 60 * by_depth[scale.depths.index(USUAL_DEPTH)],
    }
    return Found(figures, {"by layers": by_depth, "by draws": by_draws})


def _epoch_seconds(scale: Scale, seed: int, depth: int, draws: int) -> float:
    """The quickest epoch after the first; patients are cut where the experiments cut them."""
    own = {"field_widths": (WIDTH,) * depth, "draws": draws, "epochs": EPOCHS, "seed": seed}
    model = BNCDE(1.0, **(BNCDE.paper(1.0).parameters | dict(scale.paper) | own))
    train, validation = (ARMS.up_to_the_last_cut(cohort, 1.0) for cohort in ARMS.learners(scale, seed))
    model.fit(train, validation, progress=False)
    seconds = np.diff(model.history_["seconds"].to_numpy())
    return float(seconds.min())
