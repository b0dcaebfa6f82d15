"""What all models of this package that are trained have in common."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from inspect import signature
from os import PathLike
from typing import Any, TypeVar

import jax
import jax.numpy as jnp
import numpy as np
import polars as pl

from counterpath.cohort import Cohort, CohortError, Plan, TreatmentEvents, fit_scaler
from counterpath.cohort.cuts import events_until_and_from
from counterpath.cohort.frames import to_kind
from counterpath.estimators.architecture import Architecture
from counterpath.estimators.contract import Estimator
from counterpath.estimators.unsure_start import with_unsure_start
from counterpath.models import Inputs, NetworkSizes, NeuralCDE, build_network
from counterpath.models.likelihood import STUDENT_DEGREES
from counterpath.models.posterior import PosteriorMixture, visit_chance
from counterpath.paths.tabulation import PredictedFrom, Tabulation
from counterpath.predictive import Draws, Law, Mixture, Noise
from counterpath.training import Clock, EpochReport, TrainingSettings, fit_tabulation
from counterpath.training.compiled import keep_compiled

COMPONENTS = 100  # draws of the weights behind a prediction
MOST_NETWORKS = 1_000  # in a mixture or ensemble
PATIENTS_AT_ONCE = 2_048  # of a prediction: their arrays are a few hundred megabytes
DATA_SEED = 0  # a stream of a seed that meets neither that of scores, nor that of unsure starts
NETWORK_SEED = 2**32 - 1  # likewise: no epoch, and no draw of a posterior, has this number

Trainable = TypeVar("Trainable", bound="NeuralEstimator")


class NeuralEstimator(Estimator):
    """A neural CDE behind the common contract.

    Attributes:
        architecture: Of the network.
        training: How it is trained.
        posteriors: How many are learned, each from a start of its own, and mixed.
        validation_share: Share of patients held out where no validation cohort is given.
        seed: Of everything random; data, initial weights and draws have streams of their own.
        history_: After `fit`, a frame with a row per epoch.
    """

    draws_to_judge = COMPONENTS
    tabulation_: Tabulation
    networks_: tuple[NeuralCDE, ...]
    history_: pl.DataFrame

    def __init__(
        self,
        max_horizon: float,
        architecture: Architecture,
        training: TrainingSettings,
        *,
        seed: int,
        posteriors: int,
        validation_share: float,
    ):
        if seed < 0:
            raise CohortError(f"seed={seed} is negative. Use 0 or more.")
        if posteriors < 1:
            raise CohortError(f"posteriors={posteriors} is not a number of posteriors. Use 1 or more.")
        if not (np.isfinite(max_horizon) and max_horizon > 0):
            raise CohortError(f"max_horizon={max_horizon} is not a positive time.")
        self.max_horizon = float(max_horizon)
        self.architecture = architecture
        self.training = training
        self.seed = seed
        self.posteriors = posteriors
        self.validation_share = validation_share

    @property
    def parameters(self) -> dict[str, Any]:
        """The keyword arguments that make this model again."""
        homes = [h for h in (self, self.architecture, self.training, self.architecture.posterior) if h is not None]
        names = [name for name in signature(type(self)).parameters if name != "max_horizon"]
        return {name: next(getattr(home, name) for home in homes if hasattr(home, name)) for name in names}

    def __repr__(self) -> str:
        usual = signature(type(self)).parameters
        other = [f"{name}={value!r}" for name, value in self.parameters.items() if value != usual[name].default]
        return f"{type(self).__name__}({', '.join([f'max_horizon={self.max_horizon:g}', *other])})"

    def fit(
        self: Trainable,
        train: Cohort,
        validation: Cohort | None = None,
        *,
        progress: bool = True,
        checkpoint: str | PathLike[str] | None = None,
        watch: Callable[[EpochReport], None] | None = None,
    ) -> Trainable:
        """Learn from training patients.

        Args:
            train: Whole trajectories.
            validation: Patients who decide when to stop. Without them, some of the training patients are held out.
            progress: Show it.
            checkpoint: A file that keeps the run, so that it can be taken up again after an interruption.
            watch: Called after each epoch with its scores; what it raises ends the fit.
        """
        from counterpath.estimators.joint_fit import fit_members

        fit_members([self], [train], [validation], progress=progress, checkpoint=checkpoint, watch=watch)
        return self

    def new_tabulation(self, train: Cohort) -> Tabulation:
        """Grids and scales from training patients."""
        plan = self.architecture
        return fit_tabulation(
            train,
            fit_scaler(train, transform=plan.transform),
            max_horizon=self.max_horizon,
            lookback=plan.lookback,
            cells=plan.cells,
            plan_cells=plan.plan_cells,
            interpolation=plan.interpolation,
            plain_path=plan.plain_path,
            corrects_last=plan.corrects_last,
            linear_response=plan.linear_response,
            cuts=plan.cuts,
            rng=np.random.default_rng([DATA_SEED, self.seed]),
        )

    @property
    def network_seeds(self) -> list[int]:
        """One per posterior; those of a mixture are far apart, so that neighbouring seeds do not share them."""
        if self.posteriors == 1:
            return [self.seed]
        return [self.seed * MOST_NETWORKS + number for number in range(self.posteriors)]

    def new_network(self, tabulation: Tabulation, seed: int) -> NeuralCDE:
        """A network before training."""
        plan = self.architecture
        sizes = NetworkSizes(
            known=len(tabulation.first_scale),
            channels=len(tabulation.step_scale),
            plan_channels=len(tabulation.plan_step_scale),
            outcomes=len(tabulation.change_scale),
            hidden=plan.hidden,
            field_widths=plan.field_widths,
            activation=plan.activation,
            embedding_widths=plan.embedding_widths,
            head_widths=plan.head_widths,
            dropout=plan.dropout,
            start_scale=plan.start_scale,
            cells_per_move=plan.cells_per_move,
            skewed=plan.skewed,
            sees_visits=plan.informative_sampling,
            hints=tabulation.hints,
            guessed=len(tabulation.schema.treatments) if self.training.balancing else 0,
        )
        key = jax.random.fold_in(jax.random.key(seed), NETWORK_SEED)
        carry, plan_carry = (
            (None, None) if plan.plain_path else (jnp.asarray(rows) for rows in tabulation.carried_units())
        )
        return build_network(sizes, plan.posterior, key=key, carry=carry, plan_carry=plan_carry)

    @property
    def outcomes_predicted(self) -> int:
        """All of them."""
        return len(self.tabulation_.change_scale)

    def posterior(self, draws: int = COMPONENTS, seed: int = 0) -> PosteriorMixture:
        """Draws of the weights, made once; the same object is given back as long as the same is asked for."""
        kept = getattr(self, "_posterior", None)
        if kept is None or (kept.draws, kept.seed) != (draws, seed) or kept.networks is not self.networks_:
            keep_compiled()
            clock = Clock.of(self.tabulation_)
            kept = PosteriorMixture(
                self.networks_, clock.history, clock.plan, draws=draws, seed=seed, increments=self.training.increments
            )
            self._posterior = kept
        return kept

    def laws(
        self, history: Cohort, plan: Plan, horizons: np.ndarray, draws: int, seed: int
    ) -> Iterator[tuple[Law, ...]]:
        """Some patients after the other; what the model does not know is in the draws, the noise about them exact."""
        known = history.until(history.history_end)  # a whole trajectory holds what was given at its very end
        planned = plan.resolve(known)
        for start in range(0, len(known), PATIENTS_AT_ONCE):
            some = np.arange(start, min(start + PATIENTS_AT_ONCE, len(known)))
            centres, spreads = self._components(known.take(some), planned.take(some), horizons[some], draws, seed)
            scales = self.tabulation_.scaler.variables[: centres.shape[-1]]
            if self.training.outcome_noise:
                yield tuple(
                    Mixture(
                        centres[..., i].astype(np.float32), spreads[..., i, :].astype(np.float32), scale, self._noise
                    )
                    for i, scale in enumerate(scales)
                )
            else:
                yield tuple(Draws(scale.inverse(centres[..., i]), of_weights=True) for i, scale in enumerate(scales))

    def components(
        self, history: Cohort, plan: Plan, horizons: np.ndarray, draws: int, seed: int
    ) -> tuple[np.ndarray, np.ndarray]:
        """Mean and std of the first outcome on the model's scale, for each draw of the weights.

        For `student_t` the std is in units of that of the law.
        """
        known = history.until(history.history_end)
        each = np.tile(horizons, (len(known), 1))
        centres, spreads = self._components(known, plan.resolve(known), each, draws, seed)
        shift, std = self._noise.moments(spreads[..., 0, :])
        return centres[..., 0] + shift, std

    @property
    def _noise(self) -> Noise:
        return Noise(self.training.likelihood, STUDENT_DEGREES)

    def observation_intensity(
        self, cohort: Cohort, plan: Plan, *, horizons: Sequence[float], draws: int = COMPONENTS, seed: int = 0
    ) -> Any:
        """How likely patients are to be seen at each horizon; only with `informative_sampling`.

        Where all training outcomes lie on a grid of days or hours, this is the probability of a visit at a time of that
        grid; otherwise the rate, in visits per unit of time.

        Args:
            cohort: Patients, at the end of their histories.
            plan: What they are to get.
            horizons: From there on.
            draws: Of the weights.
            seed: Of the draws.
        """
        if not self.architecture.informative_sampling:
            raise CohortError(
                f"This {type(self).__name__} has not learned how often patients are seen. Fit one with "
                "informative_sampling=True."
            )
        known = cohort.until(cohort.history_end)
        clock, number = Clock.of(self.tabulation_), -(-draws // len(self.networks_))
        keys = jax.random.split(jax.random.key(seed), number)
        parts = []
        for start in range(0, len(known), PATIENTS_AT_ONCE):
            some = known[start : start + PATIENTS_AT_ONCE]
            inputs, _ = self._inputs(some, plan.resolve(some), np.tile(np.asarray(horizons, float), (len(some), 1)))
            chances = [
                visit_chance(network, inputs, keys, clock.history, clock.plan, self.training.increments)
                for network in self.networks_
            ]
            parts.append(np.mean([chance[:, 0] for chance in chances], axis=0))
        table = pl.DataFrame(
            {
                known.schema.patient_column: known.patients.gather(np.repeat(np.arange(len(known)), len(horizons))),
                "elapsed": np.tile(np.asarray(horizons, float), len(known)),
                "observation_intensity": np.concatenate(parts).ravel(),
            }
        )
        return to_kind(table, known.frames)

    def _components(
        self, known: Cohort, planned: TreatmentEvents, horizons: np.ndarray, draws: int, seed: int
    ) -> tuple[np.ndarray, np.ndarray]:
        inputs, begin = self._inputs(known, planned, horizons)
        centre, std = (part[:, :, 0] for part in self.posterior(draws, seed).outcomes(inputs))
        if begin.unsure is not None and self.training.outcome_noise:
            centre, std = with_unsure_start(centre, std, begin.unsure[:, 0], self._noise, seed)
        return begin.start[:, 0] + begin.units[:, 0] * centre, begin.units[:, 0, :, :, None] * std

    def _inputs(self, known: Cohort, planned: TreatmentEvents, horizons: np.ndarray) -> tuple[Inputs, PredictedFrom]:
        """What the network sees, and from where it predicts the change of each outcome."""
        past = self.tabulation_.histories(known)
        future = self.tabulation_.plans(planned, horizons)
        events = events_until_and_from(known.events, known.history_end, planned)
        end, elapsed = known.history_end[:, None], horizons[:, None]
        begin = self.tabulation_.predicted_from(known, end, events, elapsed)
        return Inputs.of(past, future, begin.hints), begin
