"""What is compiled: an epoch of training, and the score on validation patients. Members of a run are mapped over."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import optax
from jaxtyping import Array, Float, Int, Key, PRNGKeyArray

from counterpath.models import Batch, Inputs, Targets, evidence_bound, log_density
from counterpath.paths.tabulation import Tabulation
from counterpath.training.optimiser import make_optimiser
from counterpath.training.settings import TrainingSettings

PATIENTS_AT_ONCE = 256
NOISE_DRAWS = 64
NOISE_SCALES = np.geomspace(0.5, 2.0, 57, dtype=np.float32)
UNFORESEEN = 1e-3  # share of validation outcomes that may come from anywhere
UNFORESEEN_STD = 10.0  # usual changes


class Clock(eqx.Module):
    """Durations of the steps of encoder and decoder, on their clocks."""

    history: Float[Array, "*members steps"]
    plan: Float[Array, "*members plan_steps"]

    @classmethod
    def of(cls, tabulation: Tabulation) -> Clock:
        """The clock of a model's grids."""
        return cls(*(jnp.asarray(d, dtype=jnp.float32) for d in (tabulation.durations, tabulation.plan_durations)))


class Problem(eqx.Module):
    """What does not change in training.

    Attributes:
        inputs: Of all patients; with a leading axis of members where each has its own.
        targets: Likewise.
        clock: Of the solver, likewise.
        outcomes: Number of outcomes in the data set, likewise.
        rest: The network without its parameters.
        settings: Of the run.
    """

    inputs: Inputs
    targets: Targets
    clock: Clock
    outcomes: Float[Array, "*members"]
    rest: Any
    settings: TrainingSettings = eqx.field(static=True)

    def of_members(self, function: Callable) -> Callable:
        """The function of (clock, outcomes, inputs, targets, own key or parameters, …), mapped over members."""
        data = 0 if self.targets.cuts.ndim == 2 else None

        shared = (self.clock, self.outcomes, self.inputs, self.targets)

        def mapped(*own: Any) -> Any:
            if data is None and len(jax.tree.leaves(own)[0]) == 1:  # a single member compiles and runs faster unmapped
                alone = function(*shared, *jax.tree.map(lambda leaf: leaf[0], own))
                return jax.tree.map(lambda leaf: leaf[None], alone)
            return jax.vmap(function, in_axes=(*(data for _ in shared), *(0 for _ in own)))(*shared, *own)

        return mapped


class Progress(eqx.Module):
    """What training changes.

    Attributes:
        parameters: Of the network.
        optimiser: Its state.
        step: How many steps were taken.
    """

    parameters: Any  # a NeuralCDE without what does not change
    optimiser: Any
    step: Int[Array, "*members"]


def optimiser_for(settings: TrainingSettings, patients: int) -> optax.GradientTransformation:
    """The optimiser of a run on so many patients."""
    return make_optimiser(settings, settings.epochs_for(patients) * settings.steps_per_epoch(patients))


def draw_batch(
    inputs: Inputs, targets: Targets, chosen: Int[Array, " batch"], cuts_per_step: int, key: PRNGKeyArray
) -> Batch:
    """These patients with some of their cuts.

    Cuts are stratified: one from each of equal stretches of a patient's candidates. Every candidate is as likely as
    every other, so shares that are multiplied by (all cuts / these) have the patient's sum as their expectation.
    """
    inputs, targets = jax.tree.map(lambda a: a[chosen], (inputs, targets))
    uniform = jax.random.uniform(key, (len(chosen), cuts_per_step))
    stretch = (jnp.arange(cuts_per_step) + uniform) / cuts_per_step
    cut = jnp.minimum(jnp.floor(stretch * targets.cuts[:, None]).astype(jnp.int32), targets.cuts[:, None] - 1)
    cut = jnp.maximum(cut, 0)

    def at_cuts(column: Array) -> Array:
        return jax.vmap(lambda own, which: own[which])(column, cut)

    some = Inputs(
        inputs.first,
        inputs.steps,
        at_cuts(inputs.cut_step),
        at_cuts(inputs.cut_increments),
        at_cuts(inputs.plan_steps),
        at_cuts(inputs.horizon_step),
        at_cuts(inputs.horizon_increments),
    )
    factor = targets.cuts / cuts_per_step
    shares = at_cuts(targets.shares) * factor[:, None, None, None]
    return Batch(some, Targets(at_cuts(targets.changes), shares, targets.cuts))


@eqx.filter_jit(donate="all-except-first")
def train_epoch(
    problem_and_keys: tuple[Problem, Key[Array, " members"]], progress: Progress
) -> tuple[Progress, Float[Array, "members values"]]:
    """One pass over the patients, for every member. Returns mean log likelihood, mean KL and the share of bad steps.

    Args:
        problem_and_keys: The problem, and a key per member.
        progress: Parameters and optimiser state of every member; their memory is used again.
    """
    problem, keys = problem_and_keys
    return problem.of_members(partial(_member_epoch, problem))(keys, progress)


def _member_epoch(problem, clock, outcomes, inputs, targets, key, progress):
    settings = problem.settings
    patients = targets.cuts.shape[0]
    batch_size = min(settings.batch_size, patients)
    steps = settings.steps_per_epoch(patients)
    optimiser = optimiser_for(settings, patients)
    order_key, step_key = jax.random.split(key)
    order = jax.random.permutation(order_key, patients)[: steps * batch_size].reshape(steps, batch_size)

    ramp = settings.kl_ramp * settings.epochs_for(patients) * steps

    def objective(parameters, batch, draw_key, number):
        network = eqx.combine(parameters, problem.rest)
        log_likelihood, kl = evidence_bound(
            network,
            batch,
            clock.history,
            clock.plan,
            draws=settings.draws,
            likelihood=settings.likelihood,
            increments=settings.increments,
            outcome_noise=settings.outcome_noise,
            key=draw_key,
        )
        likelihood = log_likelihood * (patients / batch_size) / outcomes
        counts = jnp.minimum(number / ramp, 1.0) if ramp else 1.0
        return counts * kl / outcomes - likelihood / settings.temperature, (likelihood, kl)

    def step(state, chosen_and_key):
        chosen, own_key = chosen_and_key
        cut_key, draw_key = jax.random.split(own_key)
        batch = draw_batch(inputs, targets, chosen, settings.cuts_per_step, cut_key)
        (loss, (likelihood, kl)), gradient = jax.value_and_grad(objective, has_aux=True)(
            state.parameters, batch, draw_key, state.step
        )
        good = jnp.isfinite(loss) & jnp.isfinite(optax.tree.norm(gradient))
        gradient = jax.tree.map(lambda g: jnp.where(good, g, 0.0), gradient)
        updates, optimiser_state = optimiser.update(gradient, state.optimiser, state.parameters)
        after = Progress(optax.apply_updates(state.parameters, updates), optimiser_state, state.step + 1)
        kept = jax.tree.map(lambda new, old: jnp.where(good, new, old), after, state)
        return kept, jnp.stack([jnp.where(good, likelihood, 0.0), jnp.where(good, kl, 0.0), good])

    progress, seen = jax.lax.scan(step, progress, (order, jax.random.split(step_key, steps)))
    good = jnp.maximum(seen[:, 2].sum(), 1.0)
    return progress, jnp.stack([seen[:, 0].sum() / good, seen[:, 1].sum() / good, jnp.mean(1.0 - seen[:, 2])])


@eqx.filter_jit
def validation_score(problem: Problem, key: PRNGKeyArray, parameters: Any) -> Float[Array, " members"]:
    """Mean log density of validation outcomes under the mixture over draws, by member."""
    return problem.of_members(partial(_member_score, problem, key))(parameters)


def _member_score(problem, key, clock, outcomes, inputs, targets, parameters):
    settings = problem.settings
    network = eqx.combine(parameters, problem.rest)
    keys = jax.random.split(key, settings.validation_draws)

    def of_patient(one):
        own_inputs, own_targets = jax.tree.map(lambda a: a[None], one)
        mean, std, _ = network.outcomes(own_inputs, keys, clock.history, clock.plan, increments=settings.increments)
        if not settings.outcome_noise:
            mean, std = mean.mean(axis=0, keepdims=True), jnp.ones_like(std[:1])
        score = _mixture_score(settings, own_targets, mean, std)
        return score.sum(), jnp.sum(own_targets.shares)

    total, weight = jax.lax.map(of_patient, (inputs, targets), batch_size=PATIENTS_AT_ONCE)
    return total.sum() / weight.sum()


def _mixture_score(settings, targets, mean, std) -> Float[Array, " outcomes"]:
    """Log density of each outcome under the mixture over draws, summed as the objective counts it.

    A very small share of the mixture is wide. Else a single patient whose outcome was thought impossible, such as a
    tumour that was taken for eradicated, would decide about all others.
    """
    densities = log_density(settings.likelihood, targets.changes, mean, std)
    mixture = jax.nn.logsumexp(densities, axis=0) - jnp.log(len(densities))
    anything = log_density(settings.likelihood, targets.changes, jnp.zeros(()), jnp.asarray(UNFORESEEN_STD))
    mixture = jnp.logaddexp(jnp.log1p(-UNFORESEEN) + mixture, jnp.log(UNFORESEEN) + anything)
    return jnp.sum(mixture * targets.shares, axis=(0, 1, 2))


@eqx.filter_jit
def best_noise_scale(
    problem: Problem, key: PRNGKeyArray, parameters: Any, mixed: int = 1
) -> Float[Array, "mixtures outcomes"]:
    """The factor of the noise with which the mixture over draws and members describes validation outcomes best.

    The objective averages the log density over draws, so the head's std also makes up for the spread of the means, and
    the mixture, which has that spread already, would come out too wide.

    Args:
        problem: Of validation patients.
        key: Of the draws.
        parameters: Of all members.
        mixed: How many in a row are one mixture.
    """
    if problem.targets.cuts.ndim == 2:  # members of one mixture have the same patients
        problem = eqx.tree_at(
            lambda p: jax.tree.leaves((p.inputs, p.targets, p.clock, p.outcomes)),
            problem,
            replace_fn=lambda column: column[::mixed],
        )
    mixtures = jax.tree.map(lambda a: a.reshape(-1, mixed, *a.shape[1:]), parameters)
    return problem.of_members(partial(_mixture_noise_scale, problem, key))(mixtures)


def _mixture_noise_scale(problem, key, clock, outcomes, inputs, targets, parameters):
    settings = problem.settings
    mixed = len(jax.tree.leaves(parameters)[0])
    keys = jax.random.split(key, -(-NOISE_DRAWS // mixed))

    def of_patient(one):
        own_inputs, own_targets = jax.tree.map(lambda a: a[None], one)

        def of_member(own):
            network = eqx.combine(own, problem.rest)
            return network.outcomes(own_inputs, keys, clock.history, clock.plan, increments=settings.increments)[:2]

        mean, std = (a.reshape(-1, *a.shape[2:]) for a in jax.vmap(of_member)(parameters))
        return jax.lax.map(lambda scale: _mixture_score(settings, own_targets, mean, scale * std), jnp.asarray(NOISE_SCALES))

    scores = jax.lax.map(of_patient, (inputs, targets), batch_size=PATIENTS_AT_ONCE // 4).sum(axis=0)
    return jnp.asarray(NOISE_SCALES)[jnp.argmax(scores, axis=0)]
