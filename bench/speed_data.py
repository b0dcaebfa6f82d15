"""The patients of the speed comparison, as plain arrays, and our model at the paper's sizes."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from counterpath.cohort import Cohort
    from counterpath.estimators.neural import NeuralEstimator
    from counterpath.paths.tabulation import Tabulation

HORIZON_DAYS = 1.0


@dataclass(frozen=True, eq=False)
class PatientArrays:
    """What both sides receive of patients. Time runs on a clock from 0 to 1, for the history and for the plan.

    Attributes:
        first: patients × known; what is known where the history starts.
        steps: patients × cells × channels; increments of the history's path, zero after the cut.
        durations: Of the cells.
        plan_steps: patients × plan cells × plan channels; increments of the plan's path up to the horizon.
        plan_durations: Of the plan's cells.
        targets: One outcome per patient, on the scale that the head predicts.
    """

    first: np.ndarray
    steps: np.ndarray
    durations: np.ndarray
    plan_steps: np.ndarray
    plan_durations: np.ndarray
    targets: np.ndarray

    def save(self, path: Path) -> None:
        """Write them to one file."""
        np.savez(path, **vars(self))

    @classmethod
    def load(cls, path: Path) -> PatientArrays:
        """Read what `save` wrote."""
        with np.load(path) as arrays:
            return cls(**arrays)

    def __len__(self) -> int:
        return len(self.first)


def simulated(patients: int, seed: int) -> Cohort:
    import counterpath as cp

    return cp.simulate_tumor_growth(patients, assignment="arms", seed=seed).cohort


def arrays_of(model: NeuralEstimator, cohort: Cohort, tabulation: Tabulation | None = None) -> PatientArrays:
    """What our own training reads, with one cut per patient, one day before the last outcome.

    Args:
        model: Ours.
        cohort: The patients.
        tabulation: Of the training patients, where these are others.
    """
    from counterpath.training import tabulate

    tabulation = tabulation or model.new_tabulation(cohort)
    examples = tabulate(cohort, tabulation, cuts="last", rng=np.random.default_rng(0))
    read = {name: np.asarray(value) for name, value in vars(examples.inputs).items()}
    return PatientArrays(
        read["first"],
        _stopped(read["steps"], read["cut_step"][:, 0], read["cut_increments"][:, 0]),
        tabulation.durations.astype(np.float32),
        _stopped(read["plan_steps"][:, 0], read["horizon_step"][:, 0, 0], read["horizon_increments"][:, 0, 0]),
        tabulation.plan_durations.astype(np.float32),
        np.asarray(examples.targets.changes)[:, 0, 0, 0],
    )


def _stopped(steps: np.ndarray, cell: np.ndarray, last: np.ndarray) -> np.ndarray:
    """Steps up to a time inside `cell`, which is reached by the increment `last`; zero after it."""
    stopped = np.where((np.arange(steps.shape[1]) < cell[:, None])[..., None], steps, np.float32(0))
    stopped[np.arange(len(steps)), cell] = last
    return stopped


def paper_model(cells_per_move: int = 4) -> NeuralEstimator:
    """Our model with the paper's hyper-parameters."""
    import counterpath as cp

    return cp.BNCDE.paper(max_horizon=HORIZON_DAYS, cells_per_move=cells_per_move)
