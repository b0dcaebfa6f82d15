"""Where the experiments take place, and what their test patients are asked about."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache

import numpy as np
from jaxtyping import Bool, Float64

from counterpath.cohort import Cohort, Plan
from counterpath.experiments.scales import Scale
from counterpath.simulators import TumorSimulation, simulate_tumor_growth
from counterpath.simulators.tumor_assignment import Assignment

CUT_DAYS = 54.0
HORIZONS = (1.0, 2.0, 3.0, 4.0, 5.0)
USUAL_NOISE = 0.01
# Nothing is judged on test patients that an earlier state of it was judged on: models have read 79,000.
TRAIN_SEED, VALIDATION_SEED, TEST_SEED, OTHER_ARM_SEED = 70_000, 75_000, 81_000, 81_500


@dataclass(frozen=True)
class World:
    """A variant of the tumour growth study.

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

    def train(self, scale: Scale, seed: int) -> Cohort:
        """Whom a fit of this seed learns from."""
        return self.simulate(scale.train, TRAIN_SEED + seed).cohort

    def validation(self, scale: Scale, seed: int) -> Cohort:
        """Who decides when it stops."""
        return self.simulate(scale.validation, VALIDATION_SEED + seed).cohort


ARMS = World("arms", "arms")
INFORMATIVE = World("informative", "arms", observation_gamma=2.0)
RANDOMISED = World("randomised", "randomised")
CONTINUOUS = World("continuous", "randomised", continuous=True)


@dataclass(frozen=True, eq=False)
class Asked:
    """Test patients on day 54, what they are given, and what then happened.

    Attributes:
        world: The study that they are from.
        history: What is known of them.
        plan: What is given.
        outcomes: Volumes at `HORIZONS`, of everybody.
        seen: Who had a visit then.
    """

    world: TumorSimulation
    history: Cohort
    plan: Plan
    outcomes: Float64[np.ndarray, "patients horizons"]
    seen: Bool[np.ndarray, "patients horizons"]


@cache
def factual(world: World, scale: Scale, noise_std: float = USUAL_NOISE) -> Asked:
    """As it was given; where the noise is not the usual one, the first patients only."""
    patients = scale.test if noise_std == USUAL_NOISE else scale.noise_patients
    return _as_given(world.simulate(patients, TEST_SEED, noise_std))


@cache
def other_arm(world: World, scale: Scale) -> Asked:
    """The literature's counterfactual: the same patients in the other arm from day 0, with another history."""
    return _as_given(factual(world, scale).world.other_arm(seed=OTHER_ARM_SEED))


@cache
def branching(world: World, scale: Scale) -> Asked:
    """The same history up to day 54, and from then on what the other arm gets; with the same noise."""
    known = factual(world, scale)
    plan = Plan.observed(other_arm(world, scale).world.cohort)
    outcomes = known.world.truth.outcomes(known.history, plan, HORIZONS)
    return Asked(known.world, known.history, plan, outcomes, known.seen)


def _as_given(study: TumorSimulation) -> Asked:
    steps = study.truth.settings.step_of(CUT_DAYS + np.array(HORIZONS))
    history, plan = study.cohort.until(CUT_DAYS), Plan.observed(study.cohort)
    return Asked(study, history, plan, study.truth.volumes_cm3[:, steps], study.truth.observed[:, steps])


@cache
def usual_volume(world: World, scale: Scale) -> float:
    """The standard deviation of volumes over all days of training patients: what scores are divided by."""
    truth = world.simulate(scale.train, TRAIN_SEED).truth
    return float(truth.volumes_cm3[:, truth.settings.step_of(np.arange(60.0))].std())
