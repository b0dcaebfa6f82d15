"""The physical limit: what somebody would predict who knows the simulator, and has the same record."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor

import numpy as np
from jaxtyping import Float64

from counterpath.cohort import Cohort, CohortError, Plan
from counterpath.estimators.contract import Estimator
from counterpath.predictive import Draws, Law
from counterpath.simulators.tumor_dynamics import SMALLEST_CM3, grow
from counterpath.simulators.tumor_likelihood import LOG_FLOOR, TumorParameters, advance
from counterpath.simulators.tumor_patients import TumorPatients
from counterpath.simulators.tumor_posterior import TumorPosterior, sample_posterior
from counterpath.simulators.tumor_timeline import Timeline, future_timeline
from counterpath.simulators.tumor_truth import TumorSettings

PATIENTS_AT_ONCE = 50


class Oracle(Estimator):
    """The posterior predictive distribution under the true simulator, given the recorded history and subgroup.

    Parameters come from their true prior, weighted by the likelihood of the observed volumes. The visit process is
    ignored: that it depends on unseen diameters is of second order. For plans outside the data's support it still knows
    the simulator, which no method can: there it is a reference, not a limit.

    Attributes:
        settings: The world that it knows.
        max_horizon: Days.
        effective_size: After `predict`, the effective number of particles of each patient.
    """

    def __init__(self, settings: TumorSettings, *, max_horizon: float = 5.0, enough: float = 500.0, workers: int = 2):
        self.settings = settings
        self.max_horizon = max_horizon
        self.enough = enough
        self.workers = workers
        self.effective_size: Float64[np.ndarray, " patients"] | None = None

    def fit(self, train: Cohort, validation: Cohort | None = None) -> Oracle:
        """Nothing is learnt; the cohort only says what is asked about."""
        if [t.name for t in train.schema.treatments] != ["chemotherapy", "radiotherapy"]:
            raise CohortError("The oracle knows the tumour growth simulator, and this is another cohort.")
        self.schema = train.schema
        return self

    def laws(
        self, history: Cohort, plan: Plan, horizons: np.ndarray, draws: int, seed: int
    ) -> Iterator[tuple[Law, ...]]:
        """Draws of the outcome, noise included."""
        timeline = future_timeline(history, plan, horizons, self.settings)
        jobs = [slice(i, i + PATIENTS_AT_ONCE) for i in range(0, len(history), PATIENTS_AT_ONCE)]

        def run(job: slice) -> tuple[np.ndarray, np.ndarray]:
            rng = np.random.default_rng([seed, job.start])
            posterior = sample_posterior(history[job], self.settings, rng, enough=self.enough)
            some = Timeline(**{name: column[job] for name, column in vars(timeline).items()})
            end = self.settings.step_of(history.history_end[job])
            return self._futures(posterior, some, end, horizons[job], draws, rng), posterior.effective_size

        with ThreadPoolExecutor(self.workers) as pool:
            results = list(pool.map(run, jobs))
        self.effective_size = np.concatenate([size for _, size in results])
        yield (Draws(np.concatenate([drawn for drawn, _ in results], axis=1)),)

    def _futures(
        self,
        posterior: TumorPosterior,
        timeline: Timeline,
        end: np.ndarray,
        horizons: np.ndarray,
        draws: int,
        rng: np.random.Generator,
    ) -> Float64[np.ndarray, "draws patients horizons"]:
        """Simulate from the last visit on, with new noise for every draw."""
        chosen = posterior.resample(draws, rng)
        wanted = end[:, None] + self.settings.step_of(horizons)
        logs = np.broadcast_to(timeline.start[:, None], chosen.rho.shape).copy()
        result = np.empty((len(end), draws, horizons.shape[1]))
        step = self._continuous_step if self.settings.continuous else self._daily_step
        for k in range(timeline.steps.shape[1]):
            real = timeline.steps[:, k, None] > 0
            logs = np.where(real, step(logs, chosen, timeline, k, rng), logs)
            here = (timeline.ends[:, k, None] == wanted) & real
            result = np.where(here[:, None, :], logs[:, :, None], result)
        return np.moveaxis(np.maximum(np.exp(result), SMALLEST_CM3), 1, 0)

    def _daily_step(
        self, logs: np.ndarray, chosen: TumorParameters, timeline: Timeline, k: int, rng: np.random.Generator
    ) -> np.ndarray:
        """The daily map itself: near eradication nothing is linearised."""
        shape = logs.shape
        nothing = np.zeros(logs.size, dtype=np.int64)  # known already, and not used by growth
        flat = TumorPatients(
            chosen.alpha.ravel(),
            chosen.rho.ravel(),
            chosen.chemo_kill.ravel(),
            subgroup=nothing,
            stage=nothing,
            initial_volume_cm3=np.zeros(logs.size),
        )
        after = grow(
            np.exp(logs).ravel(),
            patients=flat,
            concentration=np.repeat(timeline.concentration[:, k], shape[1]),
            radio_gy=np.repeat(timeline.radio_gy[:, k], shape[1]),
            noise=self.settings.noise_std * rng.standard_normal(logs.size),
            gone=rng.random(logs.size),
            step_days=1.0,
            daily=True,
        )
        return np.log(np.maximum(after, SMALLEST_CM3)).reshape(shape)

    def _continuous_step(
        self, logs: np.ndarray, chosen: TumorParameters, timeline: Timeline, k: int, rng: np.random.Generator
    ) -> np.ndarray:
        """A whole segment at once: given the parameters, log volume after it is normal."""
        mean, var = advance(
            logs,
            np.zeros(logs.shape),
            chosen,
            timeline.concentration[:, k, None],
            timeline.radio_gy[:, k, None],
            timeline.steps[:, k, None],
            self.settings,
        )
        return np.maximum(mean + np.sqrt(var) * rng.standard_normal(logs.shape), LOG_FLOOR)

    def expected_effect(
        self, history: Cohort, plan: Plan, *, versus: Plan, horizons: Sequence[float], draws: int = 4_000, seed: int = 0
    ) -> Float64[np.ndarray, "patients horizons"]:
        """E[Y(plan) − Y(versus) | history] for each patient: what the effect is, as far as the record tells."""
        both = (self.predict(history, p, horizons=horizons, draws=draws, seed=seed) for p in (plan, versus))
        first, second = (prediction.mean for prediction in both)
        return first - second
