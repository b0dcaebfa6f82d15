"""Variants of the tumour growth study, asked about day 54."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache
from typing import Any, ClassVar

import numpy as np

from counterpath.cohort import Cohort, Plan
from counterpath.estimators import Estimator, Oracle
from counterpath.experiments.scales import Scale
from counterpath.experiments.world import USUAL_NOISE, Asked, World, followed_through_noise
from counterpath.simulators import TumorSimulation, simulate_tumor_growth
from counterpath.simulators.tumor_assignment import Assignment

CUT_DAYS = 54.0
HORIZONS = (1.0, 2.0, 3.0, 4.0, 5.0)
# Nothing is judged on test patients that an earlier state of it was judged on: models have read 79,000.
TRAIN_SEED, VALIDATION_SEED, TEST_SEED, OTHER_ARM_SEED = 70_000, 75_000, 81_000, 81_500


@dataclass(frozen=True)
class TumorWorld(World):
    """A variant of the study.

    Attributes:
        name: In file names.
        assignment: Who is treated when.
        continuous: Doses and visits at any time of the day.
        observation_gamma: How strongly visits follow size.
    """

    name: str
    assignment: Assignment
    continuous: bool = False
    observation_gamma: float = 1.0
    unit: ClassVar[str] = "day"
    horizons: ClassVar[tuple[float, ...]] = HORIZONS
    test_seed: ClassVar[int] = TEST_SEED

    def simulate(self, patients: int, seed: int, noise_std: float = USUAL_NOISE) -> TumorSimulation:
        """Patients of this world."""
        return simulate_tumor_growth(
            patients,
            seed=seed,
            assignment=self.assignment,
            continuous=self.continuous,
            observation_gamma=self.observation_gamma,
            noise_std=noise_std,
        )

    def learners(self, scale: Scale, seed: int) -> tuple[Cohort, Cohort]:
        """Others for each seed."""
        return (
            self.simulate(scale.train, TRAIN_SEED + seed).cohort,
            self.simulate(scale.validation, VALIDATION_SEED + seed).cohort,
        )

    def up_to_the_last_cut(self, cohort: Cohort, horizon: float) -> Cohort:
        """Records up to the horizon after day 54."""
        return cohort.until(CUT_DAYS + horizon)

    def protocols(self, horizon: float) -> list[str]:
        """The other plan of an arm; at one day both arms have the same future, so that nothing branches."""
        if self.assignment != "arms":
            return ["factual"]
        return ["factual", "other arm"] + (["branching"] if horizon > HORIZONS[0] else [])

    def asked(self, scale: Scale, protocol: str, noise_std: float = USUAL_NOISE) -> Asked:
        """On day 54."""
        if protocol == "factual":
            return factual(self, scale, noise_std)
        return (other_arm if protocol == "other arm" else branching)(self, scale)

    def oracle(self, scale: Scale, asked: Asked, *, believes: float | None, workers: int) -> Estimator:
        """Of the same simulator."""
        study: TumorSimulation = asked.study if believes is None else self.simulate(1, 0, believes)
        return Oracle(study.truth.settings, workers=workers).fit(asked.history)

    def usual_size(self, scale: Scale) -> float:
        """Of volumes, over all days."""
        return usual_volume(self, scale)

    def setting(self, scale: Scale) -> dict[str, Any]:
        """The seed of the test patients."""
        return {"test_seed": TEST_SEED}


ARMS = TumorWorld("arms", "arms")
INFORMATIVE = TumorWorld("informative", "arms", observation_gamma=2.0)
RANDOMISED = TumorWorld("randomised", "randomised")
CONTINUOUS = TumorWorld("continuous", "randomised", continuous=True)


@cache
def factual(world: TumorWorld, scale: Scale, noise_std: float = USUAL_NOISE) -> Asked:
    """As it was given; where the noise is not the usual one, of some of the same patients only."""
    found = _as_given(world.simulate(scale.test, TEST_SEED, noise_std))
    return found if noise_std == USUAL_NOISE else found.take(followed_through_noise(scale.test, scale))


@cache
def other_arm(world: TumorWorld, scale: Scale) -> Asked:
    """The literature's counterfactual: the same patients in the other arm from day 0, with another history."""
    return _as_given(factual(world, scale).study.other_arm(seed=OTHER_ARM_SEED))


@cache
def branching(world: TumorWorld, scale: Scale) -> Asked:
    """The same history up to day 54, and from then on what the other arm gets; with the same noise."""
    known = factual(world, scale)
    plan = Plan.observed(other_arm(world, scale).study.cohort)
    outcomes = known.study.truth.outcomes(known.history, plan, HORIZONS)
    return Asked(known.study, known.history, plan, outcomes, known.seen)


def _as_given(study: TumorSimulation) -> Asked:
    steps = study.truth.settings.step_of(CUT_DAYS + np.array(HORIZONS))
    history, plan = study.cohort.until(CUT_DAYS), Plan.observed(study.cohort)
    return Asked(study, history, plan, study.truth.volumes_cm3[:, steps], study.truth.observed[:, steps])


@cache
def usual_volume(world: TumorWorld, scale: Scale) -> float:
    """The standard deviation of volumes over all days of training patients."""
    truth = world.simulate(scale.train, TRAIN_SEED).truth
    return float(truth.volumes_cm3[:, truth.settings.step_of(np.arange(60.0))].std())
