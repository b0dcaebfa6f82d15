"""How well validation patients are described: what decides about stopping, and about the size of the noise."""

from __future__ import annotations

from functools import partial
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float, Float64, PRNGKeyArray

from counterpath.models import log_density
from counterpath.models.posterior import set_apart
from counterpath.training.problem import Problem

PATIENTS_AT_ONCE = 256
NOISE_DRAWS = 64
NOISE_SCALES = np.geomspace(0.5, 2.0, 57, dtype=np.float32)
TILTS = np.arange(-20, 21, 2)  # candidates that the factor passes up to the longest time
USUAL_TILT = 0.25  # of its logarithm
BINS = 5  # of each time
UNFORESEEN = 1e-3  # share of validation outcomes that may come from anywhere
UNFORESEEN_STD = 10.0  # usual changes

# Of each outcome: the factor where nothing is known and nothing lies ahead, and the growth of its logarithm.
NoiseFactor = tuple[Float[Array, "mixtures outcomes"], Float[Array, "mixtures outcomes times"]]


@eqx.filter_jit
def validation_score(problem: Problem, key: PRNGKeyArray, parameters: Any) -> Float[Array, " members"]:
    """Mean log density of validation outcomes under the mixture over draws, by member."""
    return problem.of_members(partial(_member_score, _mixture_scores, problem, key))(parameters)


@eqx.filter_jit
def expected_log_density(problem: Problem, key: PRNGKeyArray, parameters: Any) -> Float[Array, " members"]:
    """Mean over draws of the log density of validation outcomes, by member: the first part of the evidence bound."""
    return problem.of_members(partial(_member_score, _expected_scores, problem, key))(parameters)


def _member_score(score, problem, key, clock, outcomes, inputs, targets, parameters):
    settings, spread = problem.settings, problem.spread
    network = eqx.combine(parameters, problem.rest)
    keys = jax.random.split(key, settings.validation_draws)

    def of_patient(number):
        own_inputs, own_targets = jax.tree.map(lambda a: a[number][None], (inputs, targets))
        mean, std, _ = network.outcomes(own_inputs, keys, clock.history, clock.plan, increments=settings.increments)
        if not settings.outcome_noise:
            mean, std = mean.mean(axis=0, keepdims=True), jnp.ones_like(std[:1])
        return score(settings, own_targets, mean, std).sum(), jnp.sum(own_targets.shares)

    patients = len(targets.cuts)
    numbers = spread.own_part(jnp.arange(-(-patients // spread.parts) * spread.parts))
    scores = jax.lax.map(of_patient, jnp.minimum(numbers, patients - 1), batch_size=PATIENTS_AT_ONCE)
    total, weight = spread.total(tuple(jnp.sum(jnp.where(numbers < patients, values, 0.0)) for values in scores))
    return total / weight


def _expected_scores(settings, targets, mean, std) -> Float[Array, "patients cuts horizons outcomes"]:
    return log_density(settings.likelihood, targets.changes, mean, std).mean(axis=0) * targets.shares


def _mixture_scores(settings, targets, mean, std) -> Float[Array, "patients cuts horizons outcomes"]:
    """Log density of each outcome under the mixture over draws, times how much the objective counts it.

    A very small share of the mixture is wide. Else a single patient whose outcome was thought impossible, such as a
    tumour that was taken for eradicated, would decide about all others.
    """
    densities = log_density(settings.likelihood, targets.changes, mean, std)
    mixture = jax.nn.logsumexp(densities, axis=0) - jnp.log(len(densities))
    anything = log_density(settings.likelihood, targets.changes, jnp.zeros(()), jnp.full(1, UNFORESEEN_STD))
    mixture = jnp.logaddexp(jnp.log1p(-UNFORESEEN) + mixture, jnp.log(UNFORESEEN) + anything)
    return mixture * targets.shares


def noise_and_spread(
    problem: Problem, key: PRNGKeyArray, parameters: Any, mixed: int = 1
) -> tuple[NoiseFactor, Float[Array, "mixtures patients cuts horizons outcomes"]]:
    """The factor of the noise with which the mixture over draws and members describes validation outcomes best.

    The objective averages the log density over draws, so the head's std also makes up for the spread of the means, and
    the mixture, which has that spread already, would come out too wide: more so where means spread more. So the factor
    has a growth with the time that is known of a patient, and one with the time ahead. That spread comes second: at
    every cut and horizon, in units of the usual change, together with that of where the change starts.

    Args:
        problem: Of validation patients.
        key: Of the draws.
        parameters: Of all members.
        mixed: How many in a row are one mixture.
    """
    scores, longest, (spread, std) = _noise_scores(problem, key, parameters, mixed)
    planes = [[_best_plane(outcome) for outcome in np.moveaxis(mixture, 1, 0)] for mixture in np.asarray(scores)]
    scale = np.array([[scale for scale, _ in outcomes] for outcomes in planes], dtype=np.float32)
    growth = np.array([[growth for _, growth in outcomes] for outcomes in planes]) / np.asarray(longest)[:, None]
    noise = jnp.asarray(scale), jnp.asarray(growth, dtype=jnp.float32)
    if problem.targets.unsure is not None:
        own = (problem.targets.unsure, problem.inputs.times)
        unsure, times = jax.tree.map(lambda a: a[::mixed] if problem.has_own_patients else a[None], own)
        factor = noise[0][:, None, None, None] * jnp.exp(jnp.einsum("mpcht,mot->mpcho", times, noise[1]))
        spread = jnp.sqrt(spread**2 + unsure * (factor * std) ** 2)
    return noise, spread


@eqx.filter_jit
def _noise_scores(problem: Problem, key: PRNGKeyArray, parameters: Any, mixed: int) -> Any:
    """For each mixture: scores of the candidates by bins of time, the longest times, spread of means and usual std."""
    if problem.has_own_patients:  # members of one mixture have the same patients
        problem = eqx.tree_at(
            lambda p: jax.tree.leaves(p.data),
            problem,
            replace_fn=lambda column: column[::mixed],
        )
    mixtures = jax.tree.map(lambda a: a.reshape(-1, mixed, *a.shape[1:]), parameters)
    return problem.of_members(partial(_noise_scores_of_mixture, problem, key))(mixtures)


def _noise_scores_of_mixture(problem, key, clock, outcomes, inputs, targets, parameters):
    settings = problem.settings
    mixed = len(jax.tree.leaves(parameters)[0])
    keys = jax.random.split(key, -(-NOISE_DRAWS // mixed))

    def of_patient(one):
        own_inputs, own_targets = jax.tree.map(lambda a: a[None], one)

        def of_member(own):
            network = eqx.combine(own, problem.rest)
            return network.outcomes(own_inputs, keys, clock.history, clock.plan, increments=settings.increments)[:2]

        means, stds = jax.vmap(of_member)(parameters)
        mean, std = (a.reshape(-1, *a.shape[2:]) for a in (set_apart(means), stds))
        bins = jax.nn.one_hot(jnp.minimum(own_inputs.times / longest * BINS, BINS - 1).astype(jnp.int32), BINS)

        def in_bins(scale):
            scores = _mixture_scores(settings, own_targets, mean, scale * std)
            return jnp.einsum("pcho,pchk,pcha->oka", scores, bins[..., 0, :], bins[..., 1, :])

        return jax.lax.map(in_bins, jnp.asarray(NOISE_SCALES)), (mean.std(axis=0)[0], std.mean(axis=(0, -1))[0])

    counts = jnp.any(targets.shares > 0, axis=-1, keepdims=True)
    longest = jnp.max(jnp.where(counts, inputs.times, 0.0), axis=(0, 1, 2))
    longest = jnp.where(longest > 0, longest, 1.0)
    scores, spread = jax.lax.map(of_patient, (inputs, targets), batch_size=PATIENTS_AT_ONCE // 4)
    return scores.sum(axis=0), longest, spread


def _best_plane(scores: Float[np.ndarray, "scales known ahead"]) -> tuple[float, Float64[np.ndarray, " times"]]:
    """The factor where both times are 0, and what its logarithm gains up to the longest of each: of the best plane."""
    number = len(NOISE_SCALES)
    step = np.log(NOISE_SCALES[-1] / NOISE_SCALES[0]) / (number - 1)
    start, by_known, by_ahead = np.meshgrid(np.arange(number), TILTS, TILTS, indexing="ij")
    lowest = start + np.minimum(by_known, 0) + np.minimum(by_ahead, 0)
    highest = start + np.maximum(by_known, 0) + np.maximum(by_ahead, 0)
    planes = np.stack([start, by_known, by_ahead], axis=-1)[(lowest >= 0) & (highest < number)]
    total = -0.5 * np.sum((planes[:, 1:] * step / USUAL_TILT) ** 2, axis=1)
    for known, ahead in np.ndindex(BINS, BINS):
        place = planes @ [1.0, (known + 0.5) / BINS, (ahead + 0.5) / BINS]
        total += np.interp(place, np.arange(number), scores[:, known, ahead])
    best = planes[total.argmax()]
    return float(NOISE_SCALES[best[0]]), step * best[1:]
