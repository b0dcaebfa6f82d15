"""The predictive distribution of outcomes, for every patient at every horizon."""

from __future__ import annotations

from dataclasses import dataclass, replace
from os import PathLike
from typing import TYPE_CHECKING, Any

import numpy as np
import polars as pl
from jaxtyping import Float64

from counterpath.cohort import Cohort, CohortError, Plan, Variable
from counterpath.cohort.findings import counted, did_you_mean
from counterpath.cohort.frames import FrameKind, to_kind
from counterpath.predictive.law import Law
from counterpath.predictive.support import Support

if TYPE_CHECKING:
    from matplotlib.figure import Figure

Values = Float64[np.ndarray, "patients horizons"] | Float64[np.ndarray, "patients horizons outcomes"]
DrawnValues = Float64[np.ndarray, "draws patients horizons"] | Float64[np.ndarray, "draws patients horizons outcomes"]

BANDS = (0.5, 0.8, 0.95)
FEW = 20  # training windows


@dataclass(frozen=True, eq=False)
class Prediction:
    """What may happen to each patient under a plan.

    Each horizon is a marginal: bands are pointwise, and draws at two horizons are not a trajectory. Arrays are
    patients × horizons; where several outcomes are predicted, outcomes are their last axis, and `prediction["name"]`
    is about one of them.

    Attributes:
        patients: Whom it is about.
        horizons: Elapsed times, in the cohort's unit.
        outcomes: What is predicted.
        laws: One per outcome.
        patient_column: What the patient's column is called in frames.
        frames: The kind of frame that is given back.
        history: What was known of the patients.
        plan: What they are given from then on.
        support: What training has seen of situations like these; None where the model learned from nobody.
    """

    patients: pl.Series
    horizons: Float64[np.ndarray, " horizons"]
    outcomes: tuple[Variable, ...]
    laws: tuple[Law, ...]
    patient_column: str = "patient"
    frames: FrameKind = "polars"
    history: Cohort | None = None
    plan: Plan | None = None
    support: Support | None = None

    def __getitem__(self, outcome: str) -> Prediction:
        names = [variable.name for variable in self.outcomes]
        if outcome not in names:
            raise CohortError(f"{outcome!r} is no outcome of this model. {did_you_mean(outcome, names)}")
        which = names.index(outcome)
        return replace(self, outcomes=self.outcomes[which : which + 1], laws=self.laws[which : which + 1])

    def _of_laws(self, arrays: list[np.ndarray]) -> np.ndarray:
        return arrays[0] if len(arrays) == 1 else np.stack(arrays, axis=-1)

    @property
    def mean(self) -> Values:
        """The expected outcome."""
        return self._of_laws([law.mean for law in self.laws])

    @property
    def median(self) -> Values:
        """Half of the probability lies below."""
        return self.quantile(0.5)

    @property
    def model_uncertainty(self) -> Values:
        """Standard deviation of the expected outcome over what the model does not know: more data would lower it."""
        return self._of_laws([np.sqrt(law.model_variance) for law in self.laws])

    @property
    def outcome_uncertainty(self) -> Values:
        """Standard deviation of the outcome about its expectation: no data would lower it.

        The two squared add up to the variance of the predictive distribution.
        """
        return self._of_laws([np.sqrt(law.outcome_variance) for law in self.laws])

    def quantile(self, level: float) -> Values:
        """The value below which the outcome lies with this probability."""
        if not 0.0 < level < 1.0:
            raise ValueError(f"level={level} is not a probability between 0 and 1.")
        return self._of_laws([law.quantile(np.full((1, 1), level)) for law in self.laws])

    def interval(self, level: float = 0.95) -> tuple[Values, Values]:
        """The central interval that holds the outcome with this probability, with as much outside on either side."""
        if not 0.0 < level < 1.0:
            raise ValueError(f"level={level} is not between 0 and 1. For 95% write level=0.95.")
        return self.quantile((1 - level) / 2), self.quantile((1 + level) / 2)

    def probability(self, *, below: float | None = None, above: float | None = None) -> Values:
        """The probability that the outcome is not above `below`, that it is above `above`, or that it is between.

        `probability(below=20)` and `probability(above=20)` add up to one; `probability(above=10, below=20)` is the
        probability of more than 10 and at most 20.
        """
        if below is None and above is None:
            raise ValueError("Say what of: probability(below=…), probability(above=…), or both.")
        if below is not None and above is not None and below <= above:
            raise ValueError(f"No outcome is above {above:g} and at most {below:g}.")

        def at_most(value: float | None, otherwise: float) -> Any:
            if value is None:
                return otherwise
            return self._of_laws([law.below(np.full((1, 1), float(value))) for law in self.laws])

        return at_most(below, 1.0) - at_most(above, 0.0)

    def sample(self, number: int = 1_000, *, seed: int = 0) -> DrawnValues:
        """Equally likely outcomes of each patient at each horizon."""
        if number < 1:
            raise ValueError(f"number={number} is no number of draws.")
        return self._of_laws([law.sample(number, np.random.default_rng([seed, i])) for i, law in enumerate(self.laws)])

    def summary(self, level: float = 0.95) -> Any:
        """A line per patient, horizon and outcome: mean, median, interval, number of training windows in support."""
        lower, upper = self.interval(level)
        columns = {"mean": self.mean, "median": self.median, "lower": lower, "upper": upper}
        if self.support is not None:
            columns["support"] = self._for_outcomes(self.support.windows)
        return to_kind(self._lines(columns), self.frames)

    def to_frame(self) -> Any:
        """All figures in a line per patient, horizon and outcome: uncertainties, 50, 80 and 95% intervals, support."""
        columns = {
            "mean": self.mean,
            "median": self.median,
            "model_uncertainty": self.model_uncertainty,
            "outcome_uncertainty": self.outcome_uncertainty,
        }
        for level in BANDS:
            lower, upper = self.interval(level)
            columns |= {f"lower_{level:.0%}".rstrip("%"): lower, f"upper_{level:.0%}".rstrip("%"): upper}
        if self.support is not None:
            columns |= {name: self._for_outcomes(values) for name, values in self.support.columns().items()}
        return to_kind(self._lines(columns), self.frames)

    def defer(self, share: float = 0.1) -> Any:
        """Whom to hand to somebody else: at each horizon this share of the patients, in a line per patient and horizon.

        First those whose situation was never observed in training, then those with the widest 95% intervals. `reason`
        says which; those who are not deferred although their situation was never observed have it too.
        """
        if not 0.0 <= share <= 1.0:
            raise ValueError(f"share={share} is not between 0 and 1. For 10% write share=0.1.")
        if len(self.laws) > 1:
            raise ValueError('Of several outcomes, say which: prediction["name"].defer().')
        lower, upper = self.interval(0.95)
        width = upper - lower
        unseen = np.zeros(width.shape, dtype=bool) if self.support is None else self.support.never_observed
        order = np.stack([np.lexsort((-width[:, i], ~unseen[:, i])) for i in range(width.shape[1])], axis=1)
        place = np.argsort(order, axis=0)
        deferred = place < np.ceil(share * len(width) - 1e-9)
        reason = np.where(unseen, "never observed", np.where(deferred, "among the least certain", ""))
        columns = {"width": width, "deferred": deferred, "reason": reason}
        return to_kind(self._lines(columns).drop("outcome"), self.frames)

    def _for_outcomes(self, values: np.ndarray) -> np.ndarray:
        """The same for every outcome."""
        return np.repeat(values.ravel(), len(self.outcomes))

    def _lines(self, columns: dict[str, np.ndarray]) -> pl.DataFrame:
        patients, horizons, outcomes = len(self.patients), len(self.horizons), len(self.outcomes)
        names = np.tile([variable.name for variable in self.outcomes], patients * horizons)
        return pl.DataFrame(
            [
                self.patients.gather(np.repeat(np.arange(patients), horizons * outcomes)).alias(self.patient_column),
                pl.Series("elapsed", np.tile(np.repeat(self.horizons, outcomes), patients)),
                pl.Series("outcome", names),
                *(pl.Series(name, values.ravel()) for name, values in columns.items()),
            ]
        )

    def to_arviz(self, draws: int = 1_000, *, seed: int = 0) -> Any:
        """Draws as a posterior predictive group for ArviZ. They are marginals: do not join them across horizons."""
        try:
            from arviz_base import from_dict
        except ImportError as error:
            raise ImportError("to_arviz needs ArviZ: pip install 'counterpath[arviz]'.") from error
        drawn = self.sample(draws, seed=seed).reshape(draws, len(self.patients), len(self.horizons), -1)
        values = {variable.name: drawn[None, ..., i] for i, variable in enumerate(self.outcomes)}
        made = from_dict(
            {"posterior_predictive": values},
            coords={"patient": self.patients.to_list(), "elapsed": self.horizons},
            dims={variable.name: ["patient", "elapsed"] for variable in self.outcomes},
        )
        made["posterior_predictive"].attrs["note"] = "marginals: draws at two horizons are not a trajectory"
        return made

    def plot(self, patient: Any, *, back: float | None = None, path: str | PathLike[str] | None = None) -> Figure:
        """One patient: history, doses, plan, median and bands, with the two uncertainties told apart.

        Args:
            patient: Their id.
            back: How much of the past to show; default: three times the longest horizon.
            path: Write the picture to this file too.
        """
        from counterpath.figures.outlook import Outlook, draw_outlook

        if self.history is None or self.plan is None:
            raise ValueError("This prediction does not know its patients' histories, so there is nothing to draw.")
        one = self.history[[patient]]
        place = self.history.positions([patient])
        outlooks = []
        order = np.argsort(self.horizons)
        for law in self.laws:
            own = law.patients(place)

            def at(level: float, own: Law = own) -> np.ndarray:
                return own.quantile(np.full((1, 1), level))[0, order]

            model_std = np.sqrt(own.model_variance)[0, order]
            outlooks.append(
                Outlook(
                    elapsed=self.horizons[order],
                    median=at(0.5),
                    bands={level: (at((1 - level) / 2), at((1 + level) / 2)) for level in BANDS},
                    mean=own.mean[0, order],
                    model_std=None if np.isnan(model_std).any() else model_std,
                )
            )
        said = "" if self.support is None else _in_words(int(self.support.windows[place].min()))
        return draw_outlook(one, self.plan, self.outcomes, outlooks, back=back, said=said, path=path)


def _in_words(windows: int) -> str:
    """What a picture says of the support."""
    if not windows:
        return "never observed in training: extrapolated"
    return f"{counted(windows, 'comparable training window')}{'' if windows >= FEW else ': few'}"
