"""Which of several plans is the best in expectation, and how sure the model is."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from os import PathLike
from typing import TYPE_CHECKING, Any

import numpy as np
import polars as pl
from jaxtyping import Float64

from counterpath.cohort import Cohort, Plan, Variable
from counterpath.cohort.frames import to_kind
from counterpath.predictive.effect import NOT_RANDOMISED, Direction
from counterpath.predictive.support import Support

if TYPE_CHECKING:
    from matplotlib.figure import Figure


@dataclass(frozen=True, eq=False)
class Ranking:
    """Expected outcomes under several plans, with the same draws of the weights for all.

    Attributes:
        history: The patients, as they are known now.
        plans: By name.
        horizons: Elapsed times.
        outcome: What is predicted.
        better: Whether `lower` or `higher` outcomes are better.
        expected: Outcomes in expectation.
        support: Of each plan; None where the model learned from nobody.
    """

    history: Cohort
    plans: Mapping[str, Plan]
    horizons: Float64[np.ndarray, " horizons"]
    outcome: Variable
    better: Direction
    expected: Float64[np.ndarray, "plans draws patients horizons"]
    support: tuple[Support | None, ...] = ()

    @property
    def label(self) -> str:
        """What the numbers may be called."""
        return "plans compared (treatment was randomised)" if self.history.schema.randomised else NOT_RANDOMISED

    @property
    def probability_best(self) -> Float64[np.ndarray, "plans patients horizons"]:
        """That a plan's expected outcome is the best of all; plans that tie share it. Over plans they add up to one."""
        value = self.expected if self.better == "higher" else -self.expected
        best = value == value.max(axis=0)
        return (best / best.sum(axis=0)).mean(axis=1)

    def summary(self) -> Any:
        """A line per patient, horizon and plan: expected outcome, probability that the plan is best, its support."""
        plans, patients, horizons = len(self.plans), len(self.history), len(self.horizons)
        who = self.history.patients.gather(np.repeat(np.arange(patients), horizons * plans))
        supported = [own.windows for own in self.support if own is not None]
        frame = pl.DataFrame(
            [
                who.alias(self.history.schema.patient_column),
                pl.Series("elapsed", np.tile(np.repeat(self.horizons, plans), patients)),
                pl.Series("plan", list(self.plans) * (patients * horizons)),
                pl.Series("mean", np.moveaxis(self.expected.mean(axis=1), 0, -1).ravel()),
                pl.Series("probability_best", np.moveaxis(self.probability_best, 0, -1).ravel()),
                *([pl.Series("support", np.stack(supported, axis=-1).ravel())] if supported else []),
            ]
        )
        return to_kind(frame, self.history.frames)

    def average(self) -> Any:
        """A line per horizon and plan: mean over patients, and for how many the plan is the likeliest to be best."""
        best = self.probability_best
        share = (best == best.max(axis=0)) / (best == best.max(axis=0)).sum(axis=0)
        plans, horizons = len(self.plans), len(self.horizons)
        frame = pl.DataFrame(
            [
                pl.Series("elapsed", np.repeat(self.horizons, plans)),
                pl.Series("plan", list(self.plans) * horizons),
                pl.Series("mean", self.expected.mean(axis=(1, 2)).T.ravel()),
                pl.Series("probability_best", best.mean(axis=1).T.ravel()),
                pl.Series("share_of_patients", share.mean(axis=1).T.ravel()),
            ]
        )
        return to_kind(frame, self.history.frames)

    def plot(self, *, path: str | PathLike[str] | None = None) -> Figure:
        """The probability of being best: mean over patients as a bar, each patient as a dot."""
        from counterpath.figures.effects import draw_ranking

        return draw_ranking(
            list(self.plans),
            self.horizons,
            self.probability_best,
            time_unit=self.history.schema.time_unit,
            label=self.label,
            path=path,
        )
