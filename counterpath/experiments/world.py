"""What a world is: where experiments take place, and what its test patients are asked about."""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
from jaxtyping import Bool, Float64, Int64

from counterpath.cohort import Cohort, Plan
from counterpath.estimators import Estimator
from counterpath.experiments.scales import Scale

USUAL_NOISE = 0.01


@dataclass(frozen=True, eq=False)
class Asked:
    """Test patients at the time of a decision, what they are given, and what then happened.

    Attributes:
        study: That they are from; what it is depends on the world.
        history: What is known of them.
        plan: What is given.
        outcomes: At the world's horizons, of everybody.
        seen: Whose outcome was recorded then.
        persons: Who each is, where somebody is asked about more than once; None: all are different.
    """

    study: Any
    history: Cohort
    plan: Plan
    outcomes: Float64[np.ndarray, "patients horizons"]
    seen: Bool[np.ndarray, "patients horizons"]
    persons: Int64[np.ndarray, " patients"] | None = None

    def take(self, places: Int64[np.ndarray, " some"]) -> Asked:
        """Fewer of them."""
        persons = None if self.persons is None else self.persons[places]
        return Asked(
            self.study, self.history.take(places), self.plan, self.outcomes[places], self.seen[places], persons
        )


def followed_through_noise(number: int, scale: Scale) -> Int64[np.ndarray, " some"]:
    """Which of so many test patients are asked about at every level of noise: every so many."""
    return np.linspace(0, number - 1, min(scale.noise_patients, number)).astype(np.int64)


class World(ABC):
    """Patients to learn from, and others to be asked about.

    Attributes:
        name: On the command line and in file names.
        unit: Of horizons.
        horizons: At which anybody may be asked.
        has_oracle: Whether somebody knows its simulator.
        test_seed: Of those who are asked about, where they are simulated.
    """

    name: str
    unit: ClassVar[str]
    horizons: ClassVar[tuple[float, ...]]
    has_oracle: ClassVar[bool] = True
    test_seed: ClassVar[int] = 0

    @property
    def kept_as(self) -> str:
        """In names of files: what is kept of one world is never taken for that of another."""
        return self.name

    @abstractmethod
    def learners(self, scale: Scale, seed: int) -> tuple[Cohort, Cohort]:
        """Whom a fit of this seed learns from, and who decides when it stops."""

    @abstractmethod
    def up_to_the_last_cut(self, cohort: Cohort, horizon: float) -> Cohort:
        """What a model learns from that sees the last cut of each patient alone: a cut such as it is asked about."""

    @abstractmethod
    def protocols(self, horizon: float) -> list[str]:
        """In which ways patients are asked about, `factual` first."""

    @abstractmethod
    def asked(self, scale: Scale, protocol: str, noise_std: float = USUAL_NOISE) -> Asked:
        """Test patients, the same for all fits."""

    @abstractmethod
    def oracle(self, scale: Scale, asked: Asked, *, believes: float | None, workers: int) -> Estimator:
        """Who knows the simulator of these patients, and believes in their noise or another."""

    @abstractmethod
    def usual_size(self, scale: Scale) -> float:
        """The standard deviation of outcomes of training patients: what scores are divided by."""

    @abstractmethod
    def setting(self, scale: Scale) -> dict[str, Any]:
        """What results say of their patients."""
