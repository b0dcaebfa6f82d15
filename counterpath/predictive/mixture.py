"""Noise about a centre on the model's scale, for each draw of the weights."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from functools import cached_property
from typing import ClassVar

import numpy as np
from jaxtyping import Float32, Float64
from scipy.optimize import elementwise

from counterpath.cohort.scaling import Scale
from counterpath.predictive.law import Law, OfDraws, PerPatient
from counterpath.predictive.noise import Noise

VALUES_AT_ONCE = 2**20  # of one intermediate array: 8 MiB
CLOSE = 1e-7  # on the model's scale, where training outcomes have a standard deviation of 1


@dataclass(frozen=True, eq=False)
class Mixture(Law):
    """For each draw of the weights, noise about a centre on the model's scale; all draws are equally likely.

    Quantiles and probabilities are exact, means and variances by quadrature, all in the outcome's unit.

    Attributes:
        centres: On the model's scale.
        spreads: Scale of the noise about them, positive: below and above, or one for both.
        scale: From the outcome's unit to the model's scale.
        noise: Its law.
    """

    centres: Float32[np.ndarray, "draws patients horizons"]
    spreads: Float32[np.ndarray, "draws patients horizons sides"]
    scale: Scale
    noise: Noise = field(default_factory=Noise)
    patient_axis: ClassVar = {"centres": 1, "spreads": 1}
    arrays_of_draws: ClassVar = ("centres", "spreads")

    @cached_property
    def _moments(self) -> tuple[OfDraws, OfDraws]:
        """Mean and variance of the outcome, for each draw of the weights."""
        nodes, weights = self.noise.half_nodes()
        mean, variance = (np.empty(self.centres.shape) for _ in range(2))
        for some in _chunks(self.centres.shape[1], 2 * self.centres.shape[0] * self.centres.shape[2] * len(nodes)):
            centre, spread = (a[:, some, ..., None].astype(np.float64) for a in (self.centres, self.spreads))
            below, above = spread[..., 0, :], spread[..., -1, :]
            lower, upper = self.scale.inverse(centre - below * nodes), self.scale.inverse(centre + above * nodes)
            share = (below / (below + above))[..., 0]
            mean[:, some] = share * (lower @ weights) + (1 - share) * (upper @ weights)
            apart = [np.square(side - mean[:, some, :, None]) @ weights for side in (lower, upper)]
            variance[:, some] = share * apart[0] + (1 - share) * apart[1]
        return mean, variance

    def expected(self) -> OfDraws:
        """By quadrature over the noise."""
        return self._moments[0]

    @property
    def mean(self) -> PerPatient:
        """Mean over draws of the expected outcome."""
        return self._moments[0].mean(axis=0)

    @property
    def model_variance(self) -> PerPatient:
        """Variance over draws of the expected outcome."""
        return self._moments[0].var(axis=0)

    @property
    def outcome_variance(self) -> PerPatient:
        """Mean over draws of the variance of the outcome."""
        return self._moments[1].mean(axis=0)

    @property
    def spread(self) -> PerPatient:
        """Of the centres over draws."""
        return self.centres.std(axis=0, dtype=np.float64)

    def quantile(self, level: Float64[np.ndarray, "#patients #horizons"]) -> PerPatient:
        """The root of the mean of the components' distribution functions, between their own quantiles."""
        levels = np.broadcast_to(level, self.centres.shape[1:])
        found = np.empty(levels.shape)
        for some in _chunks(levels.shape[0], self.centres.shape[0] * levels.shape[1]):
            shape = found[some].shape
            centres = self.centres[:, some].reshape(len(self.centres), -1).astype(np.float64)
            spreads = self.spreads[:, some].reshape(*centres.shape, -1).astype(np.float64)
            wanted = levels[some].ravel()
            own = centres + self.noise.quantile(wanted, spreads)
            beyond = CLOSE + 1e-6 * spreads.max(axis=(0, 2))  # so that rounding does not put the root outside

            def missed(z: np.ndarray, point: np.ndarray, centres=centres, spreads=spreads, wanted=wanted) -> np.ndarray:
                at = point.astype(np.int64)
                return self.noise.below(z - centres[:, at], spreads[:, at]).mean(axis=0) - wanted[at]

            root = elementwise.find_root(
                missed,
                (own.min(axis=0) - beyond, own.max(axis=0) + beyond),
                args=(np.arange(len(wanted), dtype=np.float64),),
                tolerances={"xatol": CLOSE},
            )
            found[some] = root.x.reshape(shape)
        return self.scale.inverse(found)

    def below(self, value: Float64[np.ndarray, "#patients #horizons"]) -> PerPatient:
        """Mean of the components' distribution functions."""
        values = np.broadcast_to(value, self.centres.shape[1:])
        scaled, result = self.scale.forward(values), np.empty(values.shape)
        for some in _chunks(len(values), self.centres.shape[0] * values.shape[1]):
            distance = scaled[some] - self.centres[:, some].astype(np.float64)
            result[some] = self.noise.below(distance, self.spreads[:, some].astype(np.float64)).mean(axis=0)
        lowest, highest = self.scale.inverse(np.array([-np.inf, np.inf]))
        return np.where(values < lowest, 0.0, np.where(values >= highest, 1.0, result))

    def sample(self, number: int, rng: np.random.Generator) -> OfDraws:
        """Every component in turn, at levels that are spread evenly for each patient (a Latin hypercube)."""
        which = np.arange(number) % len(self.centres)
        shape = (number, *self.centres.shape[1:])
        order = rng.permuted(np.broadcast_to(np.arange(number)[:, None, None], shape), axis=0)
        levels = (order + rng.random(shape)) / number
        return self.scale.inverse(self.centres[which] + self.noise.quantile(levels, self.spreads[which]))


def _chunks(patients: int, values_per_patient: int) -> Iterator[slice]:
    step = max(VALUES_AT_ONCE // values_per_patient, 1)
    return (slice(start, start + step) for start in range(0, patients, step))
