"""What a model said about test patients: the few figures of each that the experiments look at."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from threading import Lock
from typing import Any

import numpy as np
from jaxtyping import Float64

from counterpath.estimators import Estimator
from counterpath.experiments.scales import Scale
from counterpath.experiments.world import USUAL_NOISE, Asked, World
from counterpath.metrics import crps_draws

LEVELS = (0.95, 0.96, 0.97, 0.98, 0.99)
DRAWS = 1_000
Each = Float64[np.ndarray, "patients horizons"]
AtLevels = Float64[np.ndarray, "levels patients horizons"]


@dataclass(frozen=True, eq=False)
class Said:
    """Of one model about one set of patients, in the outcome's unit.

    Attributes:
        mean: Expected outcome.
        median: Half of the probability lies below.
        lower: Ends of the intervals at `LEVELS`.
        upper: Likewise.
        crps: Of each patient's outcome.
        std: Of the predictive distribution.
        outcome_std: The part of it that no data would lower.
        model_std: The part that more data would lower.
        relative_std: Of the outcome's logarithm, which only volumes have.
        spread: Model uncertainty on the model's own scale; NaN where there is none.
    """

    mean: Each
    median: Each
    lower: AtLevels
    upper: AtLevels
    crps: Each
    std: Each
    outcome_std: Each
    model_std: Each
    relative_std: Each
    spread: Each

    @classmethod
    def of(cls, model: Estimator, asked: Asked, world: World, horizons: tuple[float, ...], draws: int) -> Said:
        """Ask a model."""
        prediction = model.predict(
            asked.history, asked.plan, horizons=horizons, draws=min(draws, model.draws_to_judge), progress=False
        )
        drawn = prediction.sample(draws)
        law = prediction.laws[0]
        ends = np.stack([prediction.interval(level) for level in LEVELS])
        outcomes = asked.outcomes[:, [world.horizons.index(horizon) for horizon in horizons]]
        return cls(
            mean=prediction.mean,
            median=prediction.median,
            lower=ends[:, 0],
            upper=ends[:, 1],
            crps=crps_draws(outcomes, drawn),
            std=drawn.std(axis=0),
            outcome_std=np.sqrt(law.outcome_variance),
            model_std=np.sqrt(law.model_variance),
            relative_std=np.log(np.maximum(drawn, SMALLEST_CM3)).std(axis=0),
            spread=law.spread,
        )


SMALLEST_CM3 = 1e-3  # a tumour of one cubic millimetre; what is smaller differs on paper only


@dataclass(frozen=True, eq=False)
class Judged:
    """A fitted model before the test patients of its world, with the oracle beside it.

    Attributes:
        world: Where it learned.
        scale: How many patients there are.
        horizons: That it may be asked about.
        ask: The model, or what stands for it where the world's noise matters.
        oracle: The same of the oracle; None for the oracle itself, and where there is none.
        model: The fitted model; None for the oracle.
    """

    world: World
    scale: Scale
    horizons: tuple[float, ...]
    ask: Callable[[str, float], Said]
    oracle: Judged | None = None
    model: Any = None

    def asked(self, protocol: str, noise_std: float = USUAL_NOISE) -> Asked:
        """Test patients."""
        return self.world.asked(self.scale, protocol, noise_std)

    def said(self, protocol: str = "factual", noise_std: float = USUAL_NOISE) -> Said:
        """What the model says about them."""
        key = (protocol, noise_std)
        if key not in self._kept:
            self._kept[key] = self.ask(protocol, noise_std)
        return self._kept[key]

    @cached_property
    def _kept(self) -> dict[tuple[str, float], Said]:
        return {}

    def outcomes(self, protocol: str = "factual", noise_std: float = USUAL_NOISE) -> Each:
        """What happened, at the model's horizons."""
        return self.asked(protocol, noise_std).outcomes[:, self.columns]

    @property
    def columns(self) -> list[int]:
        """Of the model's horizons among all."""
        return [self.world.horizons.index(horizon) for horizon in self.horizons]


def judged_model(
    model: Estimator, world: World, scale: Scale, horizons: tuple[float, ...], oracle: Judged | None
) -> Judged:
    """A fitted model."""

    def ask(protocol: str, noise_std: float) -> Said:
        return Said.of(model, found.asked(protocol, noise_std), world, horizons, DRAWS)

    found = Judged(world, scale, horizons, ask, oracle, model)
    return found


def judged_oracle(world: World, scale: Scale, folder: Path, *, workers: int, believes: float | None = None) -> Judged:
    """The oracle, whose answers are kept: they are the same for all models.

    Args:
        world: That it knows.
        scale: Of the test patients.
        folder: Where its answers are kept.
        workers: Threads.
        believes: The noise that it believes in; default: the patients' own.
    """

    def ask(protocol: str, noise_std: float) -> Said:
        def make() -> dict[str, Any]:
            asked = found.asked(protocol, noise_std)
            model = world.oracle(scale, asked, believes=believes, workers=workers)
            return vars(Said.of(model, asked, world, world.horizons, scale.oracle_draws))

        belief = "" if believes in (None, noise_std) else f".believes-{believes:g}"
        patients = f"{world.test_seed}-{len(found.asked(protocol, noise_std).outcomes)}"
        name = f"oracle.{world.kept_as}.{patients}.{protocol.replace(' ', '-')}.{noise_std:g}{belief}.npz"
        return Said(**made_once(folder / name, make))

    found = Judged(world, scale, world.horizons, ask)
    return found


_ORACLE_AT_WORK = Lock()


def made_once(path: Path, make: Callable[[], dict[str, Any]]) -> dict[str, Any]:
    """Arrays that several models need: from a file where they were made before, whoever asks first makes them."""
    with _ORACLE_AT_WORK:
        if not path.exists():
            path.parent.mkdir(parents=True, exist_ok=True)
            beside = path.with_suffix(".partial.npz")
            np.savez_compressed(beside, **make())
            beside.replace(path)
    with np.load(path) as arrays:
        return dict(arrays)
