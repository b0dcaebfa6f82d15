"""How well validation patients are described: what decides about stopping, and about the size of the noise."""

from __future__ import annotations

from functools import partial
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float, PRNGKeyArray

from counterpath.models import log_density
from counterpath.models.posterior import set_apart
from counterpath.training.problem import Problem

PATIENTS_AT_ONCE = 256
NOISE_DRAWS = 64
NOISE_SCALES = np.geomspace(0.5, 2.0, 57, dtype=np.float32)
UNFORESEEN = 1e-3  # share of validation outcomes that may come from anywhere
UNFORESEEN_STD = 10.0  # usual changes


@eqx.filter_jit
def validation_score(problem: Problem, key: PRNGKeyArray, parameters: Any) -> Float[Array, " members"]:
    """Mean log density of validation outcomes under the mixture over draws, by member."""
    return problem.of_members(partial(_member_score, problem, key))(parameters)


def _member_score(problem, key, clock, outcomes, inputs, targets, parameters):
    settings, spread = problem.settings, problem.spread
    network = eqx.combine(parameters, problem.rest)
    keys = jax.random.split(key, settings.validation_draws)

    def of_patient(number):
        own_inputs, own_targets = jax.tree.map(lambda a: a[number][None], (inputs, targets))
        mean, std, _ = network.outcomes(own_inputs, keys, clock.history, clock.plan, increments=settings.increments)
        if not settings.outcome_noise:
            mean, std = mean.mean(axis=0, keepdims=True), jnp.ones_like(std[:1])
        return _mixture_score(settings, own_targets, mean, std).sum(), jnp.sum(own_targets.shares)

    patients = len(targets.cuts)
    numbers = spread.own_part(jnp.arange(-(-patients // spread.parts) * spread.parts))
    scores = jax.lax.map(of_patient, jnp.minimum(numbers, patients - 1), batch_size=PATIENTS_AT_ONCE)
    total, weight = spread.total(tuple(jnp.sum(jnp.where(numbers < patients, values, 0.0)) for values in scores))
    return total / weight


def _mixture_score(settings, targets, mean, std) -> Float[Array, " outcomes"]:
    """Log density of each outcome under the mixture over draws, summed as the objective counts it.

    A very small share of the mixture is wide. Else a single patient whose outcome was thought impossible, such as a
    tumour that was taken for eradicated, would decide about all others.
    """
    densities = log_density(settings.likelihood, targets.changes, mean, std)
    mixture = jax.nn.logsumexp(densities, axis=0) - jnp.log(len(densities))
    anything = log_density(settings.likelihood, targets.changes, jnp.zeros(()), jnp.full(1, UNFORESEEN_STD))
    mixture = jnp.logaddexp(jnp.log1p(-UNFORESEEN) + mixture, jnp.log(UNFORESEEN) + anything)
    return jnp.sum(mixture * targets.shares, axis=(0, 1, 2))


@eqx.filter_jit
def noise_and_spread(
    problem: Problem, key: PRNGKeyArray, parameters: Any, mixed: int = 1
) -> tuple[Float[Array, "mixtures outcomes"], Float[Array, "mixtures patients cuts horizons outcomes"]]:
    """The factor of the noise with which the mixture over draws and members describes validation outcomes best.

    The objective averages the log density over draws, so the head's std also makes up for the spread of the means, and
    the mixture, which has that spread already, would come out too wide. That spread comes second: at every cut and
    horizon, in units of the usual change.

    Args:
        problem: Of validation patients.
        key: Of the draws.
        parameters: Of all members.
        mixed: How many in a row are one mixture.
    """
    if problem.has_own_patients:  # members of one mixture have the same patients
        problem = eqx.tree_at(
            lambda p: jax.tree.leaves(p.data),
            problem,
            replace_fn=lambda column: column[::mixed],
        )
    mixtures = jax.tree.map(lambda a: a.reshape(-1, mixed, *a.shape[1:]), parameters)
    return problem.of_members(partial(_mixture_noise_and_spread, problem, key))(mixtures)


def _mixture_noise_and_spread(problem, key, clock, outcomes, inputs, targets, parameters):
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
        scores = jax.lax.map(
            lambda scale: _mixture_score(settings, own_targets, mean, scale * std), jnp.asarray(NOISE_SCALES)
        )
        return scores, mean.std(axis=0)[0]

    scores, spread = jax.lax.map(of_patient, (inputs, targets), batch_size=PATIENTS_AT_ONCE // 4)
    return jnp.asarray(NOISE_SCALES)[jnp.argmax(scores.sum(axis=0), axis=0)], spread
