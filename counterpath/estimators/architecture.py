"""What decides about a trained model before it sees data."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from counterpath.cohort import CohortError
from counterpath.cohort.transforms import TransformName
from counterpath.dynamics.vector_field import Activation
from counterpath.models.sizes import PosteriorStart
from counterpath.paths import Interpolation
from counterpath.training.cut_times import Cuts

POSITIVE = (
    *("lookback", "hidden", "cells", "plan_cells", "cells_per_move"),
    *("field_widths", "embedding_widths", "head_widths"),
)


@dataclass(frozen=True)
class Architecture:
    """Everything that decides about a model before it sees data, besides horizon, seed and training.

    Attributes:
        lookback: The longest history that is followed in steps; what is older is summarised. Default: the longest.
        cells: The most steps of a history.
        plan_cells: The most steps of a plan.
        interpolation: Of the history's path.
        transform: Of the outcomes.
        plain_path: Whether paths hold only time, values and treatments, with steps of their own size.
        corrects_last: Whether outcomes are predicted as a change since they were last seen.
        linear_response: Whether each patient's own linear response leads on from there.
        cuts: Where training trajectories are cut: `many` times, or once, at the `last` outcome less the horizon.
        hidden: Size of Z.
        field_widths: Hidden layers of the vector fields.
        activation: Of the vector fields.
        embedding_widths: Hidden layers of the embedding.
        head_widths: Hidden layers of the head.
        dropout: In the head.
        start_scale: Size of the first weights of the vector fields, in units of 1/√fan-in.
        posterior: Law of the weights; None for fixed weights.
        skewed: Whether the noise of an outcome has a std of its own on each side of its centre.
        informative_sampling: Whether the rate of visits is learned, and outcomes count by its inverse.
        cells_per_move: Steps of a history over which weights that follow a law stay.
    """

    lookback: float | None
    cells: int
    plan_cells: int
    interpolation: Interpolation
    transform: TransformName
    plain_path: bool
    corrects_last: bool
    cuts: Cuts
    hidden: int
    field_widths: tuple[int, ...]
    activation: Activation
    embedding_widths: tuple[int, ...]
    head_widths: tuple[int, ...]
    dropout: float
    start_scale: float
    posterior: PosteriorStart | None
    skewed: bool = False
    informative_sampling: bool = False
    linear_response: bool = False
    cells_per_move: int = 4

    def __post_init__(self):
        for name in POSITIVE:
            value = getattr(self, name)
            if value is not None and not np.all(np.asarray(value) > 0):
                raise CohortError(f"{name}={value} must be more than zero.")
        if self.linear_response and not self.corrects_last:
            raise CohortError(
                "A linear response leads on from the last outcome. Use corrects_last=True, or linear_response=False."
            )
        if not 0.0 <= self.dropout < 1.0:
            raise CohortError(f"dropout={self.dropout} is not a probability below 1.")
