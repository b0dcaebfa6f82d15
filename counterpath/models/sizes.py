"""What fixes a network before training: its shape, and where the law of its weights starts."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from counterpath.dynamics.vector_field import Activation


@dataclass(frozen=True)
class NetworkSizes:
    """Everything that fixes a network's shape.

    Attributes:
        known: Values known where a window starts.
        channels: Of the history's path.
        plan_channels: Of the plan's path.
        outcomes: Number of outcomes.
        hidden: Size of Z.
        field_widths: Hidden layers of the vector fields.
        activation: Of the vector fields.
        embedding_widths: Hidden layers from the first value to Z_0; none in the paper.
        head_widths: Hidden layers of the head; none in the paper.
        dropout: In the head.
        start_scale: Size of the first weights of the vector fields, in units of 1/√fan-in.
        cells_per_move: Cells of a history over which the encoder's weights stay the same.
        skewed: Whether noise has a std of its own on each side.
        sees_visits: Whether there is a head for the rate of visits.
        hints: Of the head, besides Z̃.
        guessed: Treatments that a head of its own guesses; 0 for no such head.
    """

    known: int
    channels: int
    plan_channels: int
    outcomes: int
    hidden: int
    field_widths: tuple[int, ...]
    activation: Activation
    embedding_widths: tuple[int, ...]
    head_widths: tuple[int, ...]
    dropout: float = 0.0
    start_scale: float = 1.0
    cells_per_move: int = 1
    skewed: bool = False
    sees_visits: bool = False
    hints: int = 0
    guessed: int = 0


@dataclass(frozen=True)
class PosteriorStart:
    """How the law of the weights starts and what its prior is.

    Attributes:
        initial_law: `learned` mean and scale at t = 0, or the paper's N(ν, σ²).
        start_std: Initial scale of the posterior at t = 0, in units of the prior's.
        prior_std: s_0, in units of 1/√fan-in.
        prior_rate: θ.
        diffusion: σ.
        drift_widths: Hidden layers of the drift network.
    """

    initial_law: Literal["learned", "paper"]
    start_std: float
    prior_std: float
    prior_rate: float
    diffusion: float
    drift_widths: tuple[int, ...]
