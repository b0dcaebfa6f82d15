"""How a network is trained."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from counterpath.cohort import CohortError
from counterpath.dynamics import Increments
from counterpath.models import Likelihood

POSITIVE = (
    *("steps", "epochs", "batch_size", "cuts_per_step", "draws", "temperature", "patience", "clip"),
    *("validation_draws", "validation_cuts"),
)
SCORES = 10  # validation scores per run, about: rates fall to nothing, so the best state is near the end
LONGEST_EPOCH = 1 / SCORES  # of a run that is counted in steps, however many patients there are


@dataclass(frozen=True)
class TrainingSettings:
    """Everything that decides about a training run, besides data, network and seed.

    Attributes:
        steps: Of the optimiser; ignored where `epochs` is given.
        epochs: At most this many passes over the patients.
        batch_size: Patients per step.
        cuts_per_step: Cuts of each of them, drawn anew every step.
        draws: Of the weights, per step.
        learning_rate: Of the laws of the weights: means, scales.
        drift_learning_rate: Of the drift networks.
        readout_learning_rate: Of embedding and head.
        schedule: After a warm-up `linear` or `cosine` down to zero; or `constant`.
        patience: Scores without improvement after which training stops; None for never.
        temperature: The likelihood counts 1/temperature; above 1 for outcomes of a patient that are not independent.
        likelihood: Of an outcome.
        increments: Of the Brownian motion.
        outcome_noise: Whether the head's std is learned; without it the objective is the squared error.
        fits_noise: Whether, after training, the size of the noise is chosen on validation patients.
        validation_draws: Of the weights, for the score that decides about stopping.
        validation_cuts: Of each validation patient, spread over their candidates.
        optimiser: Adam with a step for each layer of a vector field and a shorter memory, or `plain`.
        warmup: Share of all steps.
        kl_ramp: Share of all steps over which the KL comes in: the means learn before the weights spread.
        clip: Largest norm of a gradient.
        balancing: α of balanced representations: what a guessed treatment counts beside an outcome; 0 for none.
        bad_steps: Share of the last steps, an epoch or twenty, that may be non-finite before training stops.
    """

    steps: int
    epochs: int | None
    batch_size: int
    cuts_per_step: int
    draws: int
    learning_rate: float
    drift_learning_rate: float
    readout_learning_rate: float
    schedule: Literal["linear", "cosine", "constant"]
    patience: int | None
    temperature: float = 1.0
    likelihood: Likelihood = "normal"
    increments: Increments = "gaussian"
    outcome_noise: bool = True
    fits_noise: bool = True
    validation_draws: int = 16
    validation_cuts: int = 8
    optimiser: Literal["layered", "plain"] = "plain"
    warmup: float = 0.03
    kl_ramp: float = 0.0
    clip: float = 1.0
    balancing: float = 0.0
    bad_steps: float = 0.2

    def __post_init__(self):
        for name in POSITIVE:
            value = getattr(self, name)
            if value is not None and not value > 0:
                raise CohortError(f"{name}={value} must be more than zero.")
        for name in ("learning_rate", "drift_learning_rate", "readout_learning_rate", "balancing"):
            if not getattr(self, name) >= 0:
                raise CohortError(f"{name}={getattr(self, name)} must not be negative.")
        if not 0 <= self.kl_ramp < 1:
            raise CohortError(f"kl_ramp={self.kl_ramp} must be at least 0 and below 1: nothing is kept before it ends.")

    def patients_per_step(self, patients: int) -> int:
        """Of so many."""
        return min(self.batch_size, patients)

    def steps_per_epoch(self, patients: int) -> int:
        """Whole batches; one of everybody where there are too few for one.

        Where a run is counted in steps, an epoch is a part of many patients only, drawn anew each time: a run has
        scores, and no more steps than were asked for.
        """
        whole = max(patients // self.batch_size, 1)
        return whole if self.epochs is not None else min(whole, max(round(LONGEST_EPOCH * self.steps), 1))

    def epochs_for(self, patients: int) -> int:
        """Passes over so many patients."""
        return self.epochs if self.epochs is not None else max(round(self.steps / self.steps_per_epoch(patients)), 1)

    def validate_every(self, patients: int) -> int:
        """Epochs between two scores; with patience, which counts epochs, every epoch has one."""
        return 1 if self.patience is not None else max(self.epochs_for(patients) // SCORES, 1)
