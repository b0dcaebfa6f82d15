"""The solver: paths of weights, and hidden states along a control path. Both are a scan over the cells of the grid.

In increment form, with everything at the left edge of a cell:

    ω_{k+1} = ω_k + (u(ω_k, t_k) − θ ω_k) Δt_k + σ ΔB_k
    Z_{k+1} = Z_k + f(Z_k, t_k | ω_k) ΔX_k

A cut or a horizon inside cell k is reached by a partial step with the increment up to it and the same f.
"""

from __future__ import annotations

import jax
import jax.numpy as jnp
from jaxtyping import Array, Float, Int, PRNGKeyArray

from counterpath.dynamics.brownian import Increments, brownian_increments
from counterpath.dynamics.vector_field import Layers, VectorField
from counterpath.dynamics.weight_law import Drift, FixedWeights, WeightLaw


def weight_path(
    law: WeightLaw | FixedWeights,
    key: PRNGKeyArray,
    durations: Float[Array, " cells"],
    increments: Increments = "gaussian",
) -> tuple[Float[Array, "cells weights"], Float[Array, ""]]:
    """One draw of the weights at the left edge of every cell, and its share of the path's KL.

    KL = ½ E ∫ |u(ω, t)|² / σ² dt (Girsanov; see docs/explanation/deviations.md).

    Args:
        law: Of the weights.
        key: Of the draw.
        durations: Of the cells, on the clock.
        increments: Of the Brownian motion.
    """
    initial_key, path_key = jax.random.split(key)
    start = law.initial(initial_key)
    if isinstance(law, FixedWeights):
        return jnp.broadcast_to(start, (len(durations), len(start))), jnp.zeros(())
    diffusion = jax.lax.stop_gradient(law.diffusion)
    noise = diffusion * brownian_increments(path_key, durations, len(start), increments)
    clocks = jnp.cumsum(durations) - durations
    if isinstance(law.drift, Drift):
        path, energy = _path_of_a_narrow_drift(law, law.drift, start, clocks, durations, noise)
    else:
        path, energy = _path_of_any_drift(law, start, clocks, durations, noise)
    return path, 0.5 * jnp.sum(energy * durations) / diffusion**2


def _path_of_any_drift(law, start, clocks, durations, noise):
    """The recursion as it is written."""
    prior_rate = jax.lax.stop_gradient(law.prior_rate)

    def step(weights, cell):
        clock, duration, jump = cell
        control = law.control(weights, clock)
        return weights + (control - prior_rate * weights) * duration + jump, (weights, jnp.sum(control**2))

    _, (path, energy) = jax.lax.scan(step, start, (clocks, durations, noise))
    return path, energy


def _path_of_a_narrow_drift(law, drift, start, clocks, durations, noise):
    """The same numbers, with the recursion in the drift network's first layer instead of in all weights.

    The network sees ω only through P ω and answers with U a, where P and U have as many rows and columns as its first
    and last hidden layers have units. So P ω follows a recursion of its own, ω comes out of two large products and a
    running sum, and |u|² = aᵀ (Uᵀ U) a: several times fewer passes over the weights.
    """
    prior_rate = jax.lax.stop_gradient(law.prior_rate)
    project, answer = drift.projection(), drift.answers()
    projected_answer, squared_answer = project @ answer, answer.T @ answer

    def step(projected, cell):
        clock, duration, jump = cell
        features = drift.features(projected, clock)
        moved = projected + (projected_answer @ features - prior_rate * projected) * duration + jump
        return moved, features

    _, features = jax.lax.scan(step, project @ start, (clocks, durations, noise @ project.T))
    energy = jnp.sum((features @ squared_answer) * features, axis=1)
    pushes = (features * durations[:, None]) @ answer.T + noise

    def move(weights, cell):
        duration, push = cell
        return weights * (1 - prior_rate * duration) + push, weights

    _, path = jax.lax.scan(move, start, (durations, pushes))
    return path, energy


def solve(
    field: VectorField,
    layers: Layers,
    hidden: Float[Array, " hidden"],
    clocks: Float[Array, " steps"],
    path_steps: Float[Array, "steps channels"],
    query_step: Int[Array, " queries"],
    query_increments: Float[Array, "queries channels"],
) -> Float[Array, "queries hidden"]:
    """Z at each query, for one patient and one draw.

    Args:
        field: f.
        layers: ω at each step, as the field's `layers` gives it for a path.
        hidden: Z where the path starts.
        clocks: Time at the start of each step.
        path_steps: ΔX of each step.
        query_step: The step that each query lies in.
        query_increments: ΔX from the start of that step up to the query.
    """

    def step(carry, cell):
        state, reached = carry
        number, clock, weights, increment = cell
        matrix = field(state, clock, weights)
        here = (query_step == number)[:, None]
        reached = jnp.where(here, state + query_increments @ matrix.T, reached)
        return (state + matrix @ increment, reached), None

    start = (hidden, jnp.zeros((len(query_step), len(hidden))))
    numbers = jnp.arange(len(path_steps))
    (_, reached), _ = jax.lax.scan(step, start, (numbers, clocks, layers, path_steps))
    return reached
