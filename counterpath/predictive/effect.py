"""What a plan changes against another, as far as the model knows."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from os import PathLike
from typing import TYPE_CHECKING, Any, Literal

import numpy as np
import polars as pl
from jaxtyping import Bool, Float64

from counterpath.cohort import Cohort, Plan, Variable
from counterpath.cohort.frames import to_kind
from counterpath.cohort.subgroups import subgroups
from counterpath.predictive.support import Support

if TYPE_CHECKING:
    from matplotlib.figure import Figure

Direction = Literal["lower", "higher"]

NOT_RANDOMISED = "prediction under this plan, not adjusted for treatment that reacts to the patient"
ASSUMPTIONS = (
    "Assumed: consistency, overlap, no unmeasured confounding, and that treatments inside the window do not react to "
    "outcomes inside it."
)


@dataclass(frozen=True, eq=False)
class Effect:
    """E[Y(plan) − Y(versus) | history], for each patient, horizon and draw of the weights.

    Its spread is model uncertainty: what more data would tell. The difference of two single outcomes would need to know
    how their noise goes together, which no data tell, and is not offered.

    Attributes:
        history: The patients, as they are known now.
        plan: What is asked about.
        versus: What it is compared with.
        horizons: Elapsed times.
        outcome: What is predicted.
        draws: Of the expected difference, in the outcome's unit.
        support: The weaker of the two plans'; None where the model learned from nobody.
    """

    history: Cohort
    plan: Plan
    versus: Plan
    horizons: Float64[np.ndarray, " horizons"]
    outcome: Variable
    draws: Float64[np.ndarray, "draws patients horizons"]
    support: Support | None = None

    @property
    def label(self) -> str:
        """What the numbers may be called, with a warning where they are extrapolated."""
        name = "effect of the plan (treatment was randomised)" if self.history.schema.randomised else NOT_RANDOMISED
        return f"{name}; {self.support.warning}" if self.support is not None and self.support.warning else name

    @property
    def assumptions(self) -> str:
        """What must hold for the label to be true."""
        return ASSUMPTIONS

    @property
    def mean(self) -> Float64[np.ndarray, "patients horizons"]:
        """The expected effect on each patient: the difference of the two predicted means."""
        return self.draws.mean(axis=0)

    def interval(
        self, level: float = 0.95
    ) -> tuple[Float64[np.ndarray, "patients horizons"], Float64[np.ndarray, "patients horizons"]]:
        """Of the expected effect: what the model does not know. It does not hold the noise of outcomes."""
        return _interval(self.draws, level)

    def probability_of_benefit(
        self, *, better: Direction, margin: float = 0.0
    ) -> Float64[np.ndarray, "patients horizons"]:
        """The probability that the expected outcome is better under the plan, by more than `margin`.

        Args:
            better: Whether `lower` or `higher` outcomes are.
            margin: The smallest difference that counts, not negative. Draws at the margin itself count half.
        """
        return _benefit(self.draws, better, margin)

    def summary(self, level: float = 0.95, *, better: Direction | None = None, margin: float = 0.0) -> Any:
        """A line per patient and horizon: expected effect, interval, support; with `better`, probability of benefit."""
        patients = self.history.patients.gather(np.repeat(np.arange(len(self.history)), len(self.horizons)))
        named = [patients.alias(self.history.schema.patient_column)]
        elapsed = np.tile(self.horizons, len(self.history))
        columns = _columns(self.draws.reshape(len(self.draws), -1), level, better, margin)
        if self.support is not None:
            columns.append(pl.Series("support", self.support.windows.ravel()))
        return to_kind(pl.DataFrame([*named, pl.Series("elapsed", elapsed), *columns]), self.history.frames)

    def average(
        self,
        by: str | Mapping[str, Bool[np.ndarray, " patients"]] | None = None,
        *,
        level: float = 0.95,
        better: Direction | None = None,
        margin: float = 0.0,
    ) -> Any:
        """The mean over patients: of all, or of subgroups.

        Args:
            by: A static covariate of the cohort, or a mask of patients for each subgroup's name.
            level: Of the interval of the mean effect on these patients.
            better: As for `probability_of_benefit`.
            margin: Likewise.
        """
        rows = []
        for name, mask in self._groups(by).items():
            drawn = self.draws[:, mask].mean(axis=1)
            elapsed = pl.Series("elapsed", self.horizons)
            who = [
                pl.Series("subgroup", [name] * len(elapsed)),
                pl.Series("patients", [int(mask.sum())] * len(elapsed)),
            ]
            rows.append(pl.DataFrame([*who, elapsed, *_columns(drawn, level, better, margin)]))
        return to_kind(pl.concat(rows), self.history.frames)

    def _groups(self, by: str | Mapping[str, np.ndarray] | None) -> dict[str, np.ndarray]:
        everybody = {"all": np.ones(len(self.history), dtype=bool)}
        return everybody if by is None else everybody | subgroups(self.history, by)

    def plot(
        self, *, better: Direction | None = None, path: str | PathLike[str] | None = None, titled: bool = True
    ) -> Figure:
        """Effects of all patients at each horizon, in order of size, with their intervals; the mean as a line.

        Args:
            better: Whether `lower` or `higher` outcomes are better, to be said.
            path: Write the picture to this file too.
            titled: Whether what the numbers may be called stands above.
        """
        from counterpath.figures.effects import draw_effects

        lower, upper = self.interval()
        average = self.draws.mean(axis=1)
        return draw_effects(
            self.horizons,
            self.mean,
            lower,
            upper,
            average=(average.mean(axis=0), *_interval(average, 0.95)),
            outcome=self.outcome,
            time_unit=self.history.schema.time_unit,
            label=self.label if titled else "",
            better=better,
            path=path,
        )


def _columns(
    draws: Float64[np.ndarray, "draws points"], level: float, better: Direction | None, margin: float
) -> list[pl.Series]:
    lower, upper = _interval(draws, level)
    columns = {"effect": draws.mean(axis=0), "lower": lower, "upper": upper}
    if better is not None:
        columns["probability_of_benefit"] = _benefit(draws, better, margin)
    return [pl.Series(name, values) for name, values in columns.items()]


def _interval(draws: Float64[np.ndarray, "draws *points"], level: float) -> tuple[np.ndarray, np.ndarray]:
    if not 0.0 < level < 1.0:
        raise ValueError(f"level={level} is not between 0 and 1. For 95% write level=0.95.")
    lower, upper = np.quantile(draws, [(1 - level) / 2, (1 + level) / 2], axis=0, method="weibull")
    return lower, upper


def _benefit(draws: Float64[np.ndarray, "draws *points"], better: Direction, margin: float) -> np.ndarray:
    if better not in ("lower", "higher"):
        raise ValueError(f"better={better!r}: say whether 'lower' or 'higher' outcomes are better.")
    if margin < 0:
        raise ValueError(f"margin={margin} is negative. It is the smallest gain that counts.")
    gain = draws if better == "higher" else -draws
    return (gain > margin).mean(axis=0) + 0.5 * (gain == margin).mean(axis=0)
