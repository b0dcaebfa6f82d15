"""What an experiment is: a question, where and of whom it is asked, what is drawn, and what should come out."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from counterpath.experiments.record_worlds import RecordWorld
from counterpath.experiments.scales import Scale
from counterpath.experiments.world import World
from counterpath.figures.experiments import AxisScale

Measure = Literal[
    "faithfulness", "sharpness", "closeness", "point_error", "deferral", "outcome_uncertainty", "effects", "runtime"
]


@dataclass(frozen=True)
class Aim:
    """What a figure should be, at every horizon.

    Attributes:
        text: In plain words.
        figure: Which.
        model: Whose.
        lowest: At least.
        highest: At most.
        than: Instead of numbers: not above the same figure of this model; none: see `lowest` and `highest`.
        grows: The other's figure divided by ours should instead grow with the horizon.
        whose: `paper` for its claims, `ours` for what we set out to reach.
        why: Where it does not simply hold: the reason, as far as it was tested.
    """

    text: str
    figure: str
    model: str = "BNCDE"
    lowest: float | None = None
    highest: float | None = None
    than: str | None = None
    grows: bool = False
    whose: Literal["paper", "ours"] = "ours"
    why: str = ""


@dataclass(frozen=True)
class Curve:
    """What is drawn over what.

    Attributes:
        name: Of the curve among what is measured.
        label: Of the vertical axis.
        over: Label of the horizontal axis.
        at: Values there; `noises`, `depths` or `draws` for those of the scale.
        scale: Of the vertical axis.
        reference: Drawn as a dashed line: `diagonal`, or a height.
        lowest: Where the vertical axis begins; none: below everybody.
    """

    name: str
    label: str
    over: str
    at: tuple[float, ...] | Literal["noises", "depths", "draws"]
    scale: AxisScale = "linear"
    reference: Literal["diagonal"] | float | None = None
    lowest: float | None = None

    def places(self, scale: Scale) -> tuple[float, ...]:
        """Values of the horizontal axis."""
        return getattr(scale, self.at) if isinstance(self.at, str) else self.at


@dataclass(frozen=True)
class Course:
    """A figure that is drawn over the horizon.

    Attributes:
        name: Of the figure.
        label: Of the vertical axis.
        scale: Of the vertical axis.
        reference: Height of a dashed line.
        lowest: Where the vertical axis begins; none: below everybody.
    """

    name: str
    label: str
    scale: AxisScale = "linear"
    reference: float | None = None
    lowest: float | None = None


@dataclass(frozen=True)
class Experiment:
    """One question.

    Attributes:
        name: On the command line.
        title: Of its page.
        question: In plain words, with what the paper claims.
        worlds: Where it is asked.
        models: Besides the oracle.
        horizons: Days ahead.
        measures: What is measured.
        shown: Figures that the page tabulates.
        curves: That it draws.
        courses: That it draws, where there are several horizons.
        aims: What should come out.
        follows: The experiment that asks the same at shorter horizons, for what should grow with the horizon.
        at_most: So many training seeds, where the paper has fewer than elsewhere.
    """

    name: str
    title: str
    question: str
    worlds: tuple[World, ...]
    models: tuple[str, ...]
    horizons: tuple[float, ...]
    measures: tuple[Measure, ...]
    shown: tuple[str, ...]
    curves: tuple[Curve, ...] = ()
    courses: tuple[Course, ...] = ()
    aims: tuple[Aim, ...] = ()
    follows: str | None = None
    at_most: int | None = None

    @property
    def on_records(self) -> bool:
        """Whether its patients are those of a user's file."""
        return isinstance(self.worlds[0], RecordWorld)

    @property
    def unit(self) -> str:
        """Of its horizons."""
        return self.worlds[0].unit
