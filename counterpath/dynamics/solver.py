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
from counterpath.dynamics.weight_law import FixedWeights, WeightLaw


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
    clocks = jnp.cumsum(durations) - durations
    diffusion, prior_rate = jax.lax.stop_gradient((law.diffusion, law.prior_rate))
    noise = diffusion * brownian_increments(path_key, durations, len(start), increments)

    def step(weights, cell):
        clock, duration, jump = cell
        control = law.control(weights, clock)
        energy = jnp.sum(control**2) * duration
        return weights + (control - prior_rate * weights) * duration + jump, (weights, energy)

    _, (path, energy) = jax.lax.scan(step, start, (clocks, durations, noise))
    return path, 0.5 * jnp.sum(energy) / diffusion**2


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
