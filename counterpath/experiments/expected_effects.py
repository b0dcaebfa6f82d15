"""Are expected effects of plans right, and does the model know how right? Beside the oracle's."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
from jaxtyping import Float64

from counterpath.cohort import Cohort, Plan
from counterpath.estimators import Estimator, Oracle
from counterpath.experiments.answers import Judged, made_once
from counterpath.experiments.measures import Found
from counterpath.experiments.tumor_worlds import HORIZONS

PATIENTS, DRAWS, ORACLE_DRAWS = 500, 200, 4_000
CHEMOTHERAPY = Plan.repeat("chemotherapy", every=2.0, times=3)
RADIOTHERAPY = Plan.repeat("radiotherapy", every=2.0, times=3)
COMPARED = {
    "chemotherapy against nothing": (CHEMOTHERAPY, Plan.none()),
    "chemotherapy against radiotherapy": (CHEMOTHERAPY, RADIOTHERAPY),
}

OfDraws = Float64[np.ndarray, "draws patients horizons"]


def oracle_draws(oracle: Oracle, today: Cohort, plan: Plan, horizons: np.ndarray, draws: int) -> OfDraws:
    """Outcomes under a plan: with the same parameters and noise for another plan, so that what differs is the plan."""
    law: Any
    (law,) = next(oracle.laws(today, plan, np.tile(horizons, (len(today), 1)), draws, 0))
    return law.draws


class Effects:
    """Measures a model's expected effects; the oracle's are computed once and kept.

    Attributes:
        folder: Where.
        workers: Threads of the oracle.
    """

    def __init__(self, folder: Path, workers: int):
        self.folder = folder
        self.workers = workers

    def __call__(self, judged: Judged, horizon: float) -> Found:
        """Coverage, error and spread at one horizon; nothing of the oracle, whose effects are the truth."""
        model = judged.model
        if model is None:
            return Found()
        asked = judged.asked("factual")
        today = asked.history[:PATIENTS]
        figures = {}
        for name in COMPARED:
            truth, unsure = (part[:, HORIZONS.index(horizon)] for part in self._truth(judged, today, name))
            lower, upper, mean, spread = self._of_model(model, today, name, horizon)
            figures |= {
                f"95% of effects, {name}": float(np.mean((truth >= lower) & (truth <= upper))),
                f"error ÷ oracle's std, {name}": rms(mean - truth) / rms(unsure),
                f"error ÷ spread, {name}": rms(mean - truth) / rms(spread) if rms(spread) > 0 else float("inf"),
            }
        return Found(figures)

    def _of_model(self, model: Estimator, today: Cohort, name: str, horizon: float) -> tuple[np.ndarray, ...]:
        plan, versus = COMPARED[name]
        effect = model.effect(today, plan, versus=versus, horizons=[horizon], draws=DRAWS, progress=False)
        lower, upper = effect.interval(0.95)
        return lower[:, 0], upper[:, 0], effect.mean[:, 0], effect.draws.std(axis=0, ddof=1)[:, 0]

    def _truth(self, judged: Judged, today: Cohort, name: str) -> tuple[np.ndarray, np.ndarray]:
        world, draws = judged.world, min(ORACLE_DRAWS, 4 * judged.scale.oracle_draws)
        about = f"{world.test_seed}-{len(today)}.effects.{name.replace(' ', '-')}.{draws}"
        path = self.folder / f"oracle.{world.kept_as}.{about}.npz"

        def make() -> dict[str, Any]:
            settings = judged.asked("factual").study.truth.settings
            oracle = Oracle(settings, workers=self.workers).fit(today)
            one, other = (oracle_draws(oracle, today, plan, np.array(HORIZONS), draws) for plan in COMPARED[name])
            return {"mean": (one - other).mean(axis=0), "std": (one - other).std(axis=0)}

        kept = made_once(path, make)
        return kept["mean"], kept["std"]


def rms(values: np.ndarray) -> float:
    """Root of the mean square."""
    return float(np.sqrt(np.mean(values**2)))
