"""The simplest forecast: the last value, with the spread that such forecasts had in training."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
from jaxtyping import Float64

from counterpath.cohort import Cohort, CohortError, Plan, fit_scaler
from counterpath.cohort.scaling import Scale
from counterpath.cohort.transforms import TransformName
from counterpath.estimators.contract import Estimator
from counterpath.predictive import Draws, Experience, Law

PAIRS_AT_MOST = 400_000


class LastValue(Estimator):
    """Carry the last outcome forward; residuals are those of training patients after as long a time.

    It ignores the plan, and so says that no plan changes anything: a model must beat it to say more.

    Attributes:
        max_horizon: The longest horizon.
        transform: The scale on which residuals are alike.
        bins: Number of elapsed-time bins, with equally many training residuals each.
    """

    def __init__(self, max_horizon: float, *, transform: TransformName = "auto", bins: int = 20, seed: int = 0):
        if not (np.isfinite(max_horizon) and max_horizon > 0):
            raise CohortError(f"max_horizon={max_horizon} is not a positive time.")
        self.max_horizon = max_horizon
        self.transform: TransformName = transform
        self.bins = bins
        self.seed = seed

    def fit(self, train: Cohort, validation: Cohort | None = None) -> LastValue:
        """Collect residuals of all pairs of a patient's outcomes, by the time between them."""
        scale = fit_scaler(train, transform=self.transform).variables[0]
        elapsed, residuals = _pairs(train, scale, np.random.default_rng(self.seed))
        if not len(elapsed):
            raise CohortError("No training patient has two outcomes, so nothing is known of how they change.")
        edges = np.unique(np.quantile(elapsed, np.linspace(0, 1, self.bins + 1)[1:-1]))
        which = np.searchsorted(edges, elapsed, side="left")
        self.scale_: Scale = scale
        self.edges_: Float64[np.ndarray, " edges"] = edges
        self.residuals_ = [np.sort(residuals[which == k]) for k in range(len(edges) + 1)]
        values = train.records.values[:, 0]
        self.unseen_ = np.sort(scale.forward(values[~np.isnan(values)]))
        self.schema, self.experience_ = train.schema, Experience.of(train, self.max_horizon)
        return self

    def laws(
        self, history: Cohort, plan: Plan, horizons: np.ndarray, draws: int, seed: int
    ) -> Iterator[tuple[Law, ...]]:
        """Residuals at equally spaced levels, in random order: no more noise than needed."""
        last, since = _last_outcome(history, self.scale_)
        rng = np.random.default_rng(seed)
        levels = (np.arange(draws) + 0.5) / draws
        scaled = np.empty((draws, *horizons.shape))
        for i, horizon in enumerate(horizons.T):
            which = np.searchsorted(self.edges_, since + horizon, side="left")
            for k in np.unique(which):
                mine = which == k
                spread = np.quantile(self.residuals_[k], rng.permutation(levels))
                scaled[:, mine, i] = last[mine] + spread[:, None]
        blank = np.isnan(last)
        scaled[:, blank] = np.quantile(self.unseen_, rng.permutation(levels))[:, None, None]
        yield (Draws(self.scale_.inverse(scaled)),)


def _last_outcome(history: Cohort, scale: Scale) -> tuple[np.ndarray, np.ndarray]:
    """Each patient's last outcome on the model's scale, and how long ago it was; NaN where there is none."""
    records = history.records
    present = ~np.isnan(records.values[:, 0])
    seen = records.keep(present)
    has = seen.per_patient > 0
    row = np.maximum(seen.offsets[1:] - 1, 0)
    last, since = np.full(len(history), np.nan), np.zeros(len(history))
    if seen.rows:
        last[has] = scale.forward(seen.values[row[has], 0])
        since[has] = history.history_end[has] - seen.times[row[has]]
    return last, since


def _pairs(train: Cohort, scale: Scale, rng: np.random.Generator) -> tuple[np.ndarray, np.ndarray]:
    """Elapsed time and change of pairs of outcomes of a patient, at most `PAIRS_AT_MOST` of them at random."""
    seen = train.records.keep(~np.isnan(train.records.values[:, 0]))
    values = scale.forward(seen.values[:, 0])
    patient = seen.patient_of_row
    elapsed, residuals = [], []
    for lag in range(1, int(np.max(seen.per_patient, initial=0))):
        same = patient[lag:] == patient[:-lag]
        elapsed.append((seen.times[lag:] - seen.times[:-lag])[same])
        residuals.append((values[lag:] - values[:-lag])[same])
    if not elapsed:
        return np.array([]), np.array([])
    time, change = np.concatenate(elapsed), np.concatenate(residuals)
    if len(time) > PAIRS_AT_MOST:
        chosen = rng.choice(len(time), PAIRS_AT_MOST, replace=False)
        time, change = time[chosen], change[chosen]
    return time, change
