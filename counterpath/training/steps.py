"""An epoch of training, compiled as a whole. Members of a run are mapped over."""

from __future__ import annotations

from dataclasses import replace
from functools import partial
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
import optax
from jaxtyping import Array, Float, Int, Key

from counterpath.models import Batch, Inputs, Targets, evidence_bound
from counterpath.models.inputs import Decisions
from counterpath.training.optimiser import make_optimiser
from counterpath.training.problem import Problem
from counterpath.training.settings import TrainingSettings


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
    inputs: Inputs, targets: Targets, chosen: Int[Array, " batch"], places: Float[Array, "batch cuts"]
) -> Batch:
    """These patients with some of their cuts.

    Cuts are stratified: one from each of equal stretches of a patient's candidates. Every candidate is as likely as
    every other, so shares that are multiplied by (all cuts / these) have the patient's sum as their expectation.

    Args:
        inputs: Of all patients.
        targets: Of all patients.
        chosen: Who.
        places: Of the cuts within their stretches, uniformly random.
    """
    inputs, targets = jax.tree.map(lambda a: a[chosen], (inputs, targets))
    cuts_per_step = places.shape[1]
    stretch = (jnp.arange(cuts_per_step) + places) / cuts_per_step
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
        jax.tree.map(at_cuts, inputs.hints),
    )
    factor = targets.cuts / cuts_per_step
    shares = at_cuts(targets.shares) * factor[:, None, None, None]
    visits = jax.tree.map(at_cuts, targets.visits)
    decisions = None
    if targets.decisions is not None:
        own = jax.tree.map(at_cuts, targets.decisions)
        decisions = Decisions(own.given, own.shares * factor[:, None, None])
    return Batch(some, Targets(at_cuts(targets.changes), shares, targets.cuts, visits, decisions=decisions))


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


def batch_loss(
    parameters: Any,
    problem: Problem,
    batch: Batch,
    keys: Key[Array, " draws"],
    dropout_keys: Key[Array, "draws patients"],
    step: Int[Array, ""],
) -> tuple[Float[Array, ""], tuple[Float[Array, ""], Float[Array, ""]]]:
    """What a step makes smaller: per outcome of the data set, whatever the batch. Beside it likelihood and KL.

    Args:
        parameters: Of the network.
        problem: Of one member; where devices share a member, this one's part of the loss, which they add up.
        batch: Of all patients of the step, or of this device's part of them.
        keys: Of the draws of the weights.
        dropout_keys: Of what the head leaves out.
        step: How many were taken before.
    """
    settings, spread = problem.settings, problem.spread
    patients = problem.targets.cuts.shape[0]
    bound = evidence_bound(
        eqx.combine(parameters, problem.rest),
        batch,
        problem.clock.history,
        problem.clock.plan,
        keys=keys,
        dropout_keys=dropout_keys,
        likelihood=settings.likelihood,
        increments=settings.increments,
        outcome_noise=settings.outcome_noise,
        draws_axis=spread.axis("draws"),
        patients_axis=spread.axis("patients"),
    )
    # What every device has in full counts once.
    kl = bound.kl / spread.parts
    part = patients / settings.patients_per_step(patients) / problem.outcomes
    part = part / spread.parts if spread.over == "draws" else part
    likelihood = bound.log_likelihood * part
    ramp = settings.kl_ramp * settings.epochs_for(patients) * settings.steps_per_epoch(patients)
    counts = jnp.minimum(step / ramp, 1.0) if ramp else 1.0
    fit = likelihood - settings.balancing * bound.decisions * part
    loss = counts * kl / problem.outcomes - fit / settings.temperature
    return loss - bound.visits * part, (likelihood, kl)


def _member_epoch(problem, clock, outcomes, inputs, targets, key, progress):
    settings, spread = problem.settings, problem.spread
    problem = replace(problem, clock=clock, outcomes=outcomes, inputs=inputs, targets=targets)
    patients = targets.cuts.shape[0]
    batch_size = settings.patients_per_step(patients)
    steps = settings.steps_per_epoch(patients)
    optimiser = optimiser_for(settings, patients)
    order_key, step_key = jax.random.split(key)
    order = jax.random.permutation(order_key, patients)[: steps * batch_size].reshape(steps, batch_size)

    def step(state, chosen_and_key):
        chosen, own_key = chosen_and_key
        draw_key, cut_key, dropout_key = jax.random.split(own_key, 3)
        keys = jax.random.split(draw_key, settings.draws)
        dropout_keys = jax.random.split(dropout_key, (settings.draws, batch_size))
        places = jax.random.uniform(cut_key, (batch_size, settings.cuts_per_step))
        if spread.over == "draws":
            keys, dropout_keys = spread.own_part(keys), spread.own_part(dropout_keys)
        if spread.over == "patients":
            chosen, places = spread.own_part(chosen), spread.own_part(places)
            dropout_keys = spread.own_part(dropout_keys, axis=1)
        batch = draw_batch(inputs, targets, chosen, places)
        (loss, (likelihood, kl)), gradient = spread.total(
            jax.value_and_grad(batch_loss, has_aux=True)(
                state.parameters, problem, batch, keys, dropout_keys, state.step
            )
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
