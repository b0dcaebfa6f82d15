"""What a tumour patient's record says about the parameters: adaptive importance sampling from the true prior.

Proposals are Student-t in (log α, log ρ, β_c). Each round fits one to the particles of the round before, weighted by a
tempered posterior whose temperature falls until the full posterior can be reached.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from jaxtyping import Float64, Int64
from scipy.special import gammaln, logsumexp

from counterpath.cohort import Cohort
from counterpath.simulators.tumor_likelihood import TumorParameters, log_likelihood
from counterpath.simulators.tumor_patients import (
    ALPHA_MEAN,
    ALPHA_RHO_CORRELATION,
    ALPHA_STD,
    CHEMO_MEAN,
    CHEMO_STD,
    RHO_MEAN,
    RHO_STD,
    SUBGROUPS,
    chemo_shift,
    draw_patients,
    radio_shift,
)
from counterpath.simulators.tumor_timeline import Timeline, observed_timeline
from counterpath.simulators.tumor_truth import TumorSettings

DEGREES_OF_FREEDOM = 5.0
WIDER = 1.3  # a proposal somewhat wider than what it was fitted to
ADAPTING = 400  # particles in a round that only adapts
ROUNDS = 4
FINAL = 3_000  # particles of a round that counts; fewer make the tails a little short
MOST_FINAL_ROUNDS = 6

# Beyond these the prior has no mass worth a thought (12 standard deviations above, e⁻⁴⁰ below).
LOWEST = np.array([-40.0, -40.0, 0.0])
HIGHEST = np.array([np.log(2.0), np.log(0.09), 0.1])


@dataclass(frozen=True, eq=False)
class TumorPosterior:
    """Weighted particles for each patient.

    Attributes:
        parameters: The particles.
        weights: Summing to 1 for each patient.
        effective_size: 1 / Σ w²: how many equally weighted particles they are worth.
    """

    parameters: TumorParameters
    weights: Float64[np.ndarray, "patients particles"]
    effective_size: Float64[np.ndarray, " patients"]

    @classmethod
    def of(cls, parameters: TumorParameters, log_weights: Float64[np.ndarray, "patients particles"]) -> TumorPosterior:
        """Particles with their weights normalised."""
        weights = np.exp(log_weights - logsumexp(log_weights, axis=1, keepdims=True))
        return cls(parameters, weights, 1 / np.sum(weights**2, axis=1))

    def resample(self, draws: int, rng: np.random.Generator) -> TumorParameters:
        """Equally weighted particles: systematic resampling, then shuffled."""
        cumulated = np.cumsum(self.weights, axis=1)
        cumulated /= cumulated[:, -1:]
        levels = (np.arange(draws) + rng.random((len(cumulated), 1))) / draws
        chosen = np.stack([np.searchsorted(c, u) for c, u in zip(cumulated, levels, strict=True)])
        chosen = rng.permuted(np.minimum(chosen, cumulated.shape[1] - 1), axis=1)
        columns = (self.parameters.alpha, self.parameters.rho, self.parameters.chemo_kill)
        return TumorParameters(*(np.take_along_axis(column, chosen, axis=1) for column in columns))


def sample_posterior(
    history: Cohort, settings: TumorSettings, rng: np.random.Generator, *, enough: float = 500.0
) -> TumorPosterior:
    """Particles from the posterior of (α, ρ, β_c) given what was recorded, until their effective size is enough.

    Args:
        history: Patients as they are known now.
        settings: Of the world.
        rng: Random numbers.
        enough: The effective size to reach; patients who do not after several rounds keep what they have.
    """
    timeline = observed_timeline(history, settings)
    levels = next(v.levels for v in history.schema.static if v.name == "subgroup")
    group = np.array([SUBGROUPS.index(level) for level in levels])[history.static_values[:, 0].astype(np.int64)]
    problem = _Problem(timeline, group.astype(np.int64), settings, rng)

    points = problem.from_prior(ADAPTING)
    log_proposal = problem.log_prior(points)
    log_target = log_proposal + problem.log_likelihood(points)
    for _ in range(ROUNDS):
        proposal = _Proposal.fitted(points, _tempered(log_target - log_proposal, wanted=0.15 * ADAPTING))
        points = proposal.draw(ADAPTING, rng)
        log_proposal = proposal.log_density(points)
        log_target = problem.log_posterior(points)
    proposal = _Proposal.fitted(points, _tempered(log_target - log_proposal, wanted=0.15 * ADAPTING))

    points, log_weights = np.empty((len(history), 0, 3)), np.empty((len(history), 0))
    rounds = 0
    while True:
        more = proposal.draw(FINAL, rng)
        points = np.concatenate([points, more], axis=1)
        weighed = problem.log_posterior(more) - proposal.log_density(more)
        log_weights = np.concatenate([log_weights, weighed], axis=1)
        posterior = TumorPosterior.of(problem.parameters(points), log_weights)
        rounds += 1
        if rounds == MOST_FINAL_ROUNDS or np.all(posterior.effective_size >= enough):
            return posterior
        proposal = _Proposal.fitted(points, _tempered(log_weights, wanted=100.0))


def _tempered(log_weights: np.ndarray, wanted: float) -> np.ndarray:
    """Weights w^γ, with the largest γ ≤ 1 that leaves an effective size of `wanted` for each patient."""
    log_weights = np.where(np.isfinite(log_weights), log_weights, -1e300)
    log_weights = log_weights - log_weights.max(axis=1, keepdims=True)
    low, high = np.zeros((len(log_weights), 1)), np.ones((len(log_weights), 1))
    power = high
    for _ in range(25):
        weights = np.exp(np.maximum(power * log_weights, -700.0))
        size = weights.sum(axis=1, keepdims=True) ** 2 / np.sum(weights**2, axis=1, keepdims=True)
        low, high = np.where(size >= wanted, power, low), np.where(size >= wanted, high, power)
        power = (low + high) / 2 if np.any(low < 1) else low
        power = np.where(low == 1.0, 1.0, power)
    weights = np.exp(np.maximum(low * log_weights, -700.0))
    return weights / weights.sum(axis=1, keepdims=True)


@dataclass(frozen=True, eq=False)
class _Problem:
    """Prior and likelihood in the coordinates of the proposals: log α₀, log ρ, β_c₀, before the subgroup's gain."""

    timeline: Timeline
    group: Int64[np.ndarray, " patients"]
    settings: TumorSettings
    rng: np.random.Generator

    def parameters(self, points: np.ndarray) -> TumorParameters:
        alpha, rho, chemo = np.moveaxis(np.clip(points, LOWEST, HIGHEST), -1, 0)
        return TumorParameters(
            np.exp(alpha) + radio_shift(self.group)[:, None],
            np.exp(rho),
            chemo + chemo_shift(self.group)[:, None],
        )

    def from_prior(self, particles: int) -> np.ndarray:
        drawn = draw_patients(len(self.group) * particles, self.rng)
        alpha = drawn.alpha - radio_shift(drawn.subgroup)
        chemo = drawn.chemo_kill - chemo_shift(drawn.subgroup)
        shape = (len(self.group), particles)
        return np.stack([np.log(alpha), np.log(drawn.rho), chemo], axis=-1).reshape(*shape, 3)

    def log_prior(self, points: np.ndarray) -> np.ndarray:
        """Up to a constant; the Jacobian of the logs is α₀ ρ."""
        a = (np.exp(np.minimum(points[..., 0], HIGHEST[0])) - ALPHA_MEAN) / ALPHA_STD
        r = (np.exp(np.minimum(points[..., 1], HIGHEST[1])) - RHO_MEAN) / RHO_STD
        pair = -0.5 * (a**2 - 2 * ALPHA_RHO_CORRELATION * a * r + r**2) / (1 - ALPHA_RHO_CORRELATION**2)
        chemo = -0.5 * ((points[..., 2] - CHEMO_MEAN) / CHEMO_STD) ** 2
        possible = ((points > LOWEST) & (points < HIGHEST)).all(axis=-1)
        return np.where(possible, pair + chemo + points[..., 0] + points[..., 1], -np.inf)

    def log_likelihood(self, points: np.ndarray) -> np.ndarray:
        return log_likelihood(self.timeline, self.parameters(points), self.settings, self.rng)

    def log_posterior(self, points: np.ndarray) -> np.ndarray:
        return self.log_prior(points) + self.log_likelihood(points)


@dataclass(frozen=True, eq=False)
class _Proposal:
    """A Student-t for each patient."""

    mean: np.ndarray
    root: np.ndarray  # lower Cholesky factor of the scale

    @classmethod
    def fitted(cls, points: np.ndarray, weights: np.ndarray) -> _Proposal:
        mean = np.einsum("pn,pnd->pd", weights, points)
        away = points - mean[:, None]
        covariance = np.einsum("pn,pnd,pne->pde", weights, away, away)
        # Never so narrow that the next round cannot recover.
        covariance += np.diag([1e-6, 1e-6, (0.02 * CHEMO_STD) ** 2])
        return cls(mean, np.linalg.cholesky(WIDER**2 * covariance))

    def draw(self, particles: int, rng: np.random.Generator) -> np.ndarray:
        normal = rng.standard_normal((len(self.mean), particles, 3))
        mix = rng.chisquare(DEGREES_OF_FREEDOM, (len(self.mean), particles, 1)) / DEGREES_OF_FREEDOM
        return self.mean[:, None] + np.einsum("pde,pne->pnd", self.root, normal) / np.sqrt(mix)

    def log_density(self, points: np.ndarray) -> np.ndarray:
        nu, dimension = DEGREES_OF_FREEDOM, 3
        away = points - self.mean[:, None]
        scaled = np.einsum("pde,pne->pnd", np.linalg.inv(self.root), away)
        size = np.log(np.diagonal(self.root, axis1=1, axis2=2)).sum(axis=1)
        constant = gammaln((nu + dimension) / 2) - gammaln(nu / 2) - 0.5 * dimension * np.log(nu * np.pi)
        return constant - size[:, None] - 0.5 * (nu + dimension) * np.log1p(np.sum(scaled**2, axis=-1) / nu)
