"""The loop, batches, optimiser, stopping and checkpoints."""

from counterpath.training.checkpoint import Checkpoint, CheckpointError
from counterpath.training.divergence import TrainingError
from counterpath.training.examples import Examples, fit_tabulation, tabulate
from counterpath.training.loop import EpochReport, Trained, train
from counterpath.training.problem import Clock
from counterpath.training.settings import TrainingSettings

__all__ = [
    "Checkpoint",
    "CheckpointError",
    "Clock",
    "EpochReport",
    "Examples",
    "Trained",
    "TrainingError",
    "TrainingSettings",
    "fit_tabulation",
    "tabulate",
    "train",
]
