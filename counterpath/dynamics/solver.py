"""The solver: paths of weights, and hidden states along a control path.

In increment form, with everything at the left edge of a step:

    ω_{j+1} = ω_j + (u(ω_j, t_j) − θ ω_j) Δt_j + σ ΔB_j
    Z_{k+1} = Z_k + f(Z_k, t_k | ω_j) ΔX_k

Z moves with every cell k of the grid, ω with every stretch j of a few cells: a patient changes from day to day, the
weights only over the whole clock. A cut or a horizon inside cell k is reached by a partial step with the increment up
to it and the same f.
"""

from __future__ import annotations

from typing import NamedTuple

import equinox as eqx
import jax
import jax.numpy as jnp
from jaxtyping import Array, Float, Int, Key, Shaped

from counterpath.dynamics.brownian import Increments, brownian_increments
from counterpath.dynamics.vector_field import VectorField
from counterpath.dynamics.weight_law import Drift, FixedWeights, WeightLaw

UNROLLED = 8  # cells at most: without a loop a GPU has fewer small programs to start, but each cell is compiled


class WeightPath(eqx.Module):
    """Weights along the grid, of one draw or of several: ω_{j+1} = kept_j ω_j + moves_j.

    Stretches lead, and the weights themselves are summed up where they are used: there they are still in the cache.

    Attributes:
        start: ω_0.
        kept: 1 − θ Δt_j.
        moves: u(ω_j, t_j) Δt_j + σ ΔB_j; None for weights that stay where they start.
        cells: How many cells of the grid a stretch has.
    """

    start: Float[Array, "*draws weights"]
    kept: Float[Array, " stretches"]
    moves: Float[Array, "stretches *draws weights"] | None
    cells: int = eqx.field(static=True, default=1)

    @property
    def draw_axes(self) -> WeightPath:
        """Where the draws are, for `jax.vmap`."""
        return jax.tree.unflatten(jax.tree.structure(self), [0, None, 1][: len(jax.tree.leaves(self))])

    def at_stretches(self) -> Float[Array, "stretches *draws weights"]:
        """ω at the left edge of every stretch."""
        if self.moves is None:
            return jnp.broadcast_to(self.start, (len(self.kept), *self.start.shape))

        def step(weights, cell):
            keep, move = cell
            return keep * weights + move, weights

        return jax.lax.scan(step, self.start, (self.kept, self.moves))[1]


def weight_paths(
    law: WeightLaw | FixedWeights,
    keys: Key[Array, " draws"],
    durations: Float[Array, " cells"],
    increments: Increments = "gaussian",
    cells: int = 1,
) -> tuple[WeightPath, Float[Array, " draws"]]:
    """Draws of the weights along the grid, and the share of each in the path's KL.

    KL = ½ E ∫ |u(ω, t)|² / σ² dt (Girsanov; see docs/explanation/deviations.md).

    Args:
        law: Of the weights.
        keys: Of the draws.
        durations: Of the cells, on the clock.
        increments: Of the Brownian motion.
        cells: In a stretch over which the weights do not move.
    """
    durations = in_stretches(durations, cells).sum(axis=1)
    initial_keys, path_keys = jax.vmap(jax.random.split, out_axes=1)(keys)
    start = jax.vmap(law.initial)(initial_keys)
    if isinstance(law, FixedWeights):
        return WeightPath(start, jnp.ones_like(durations), None, cells), jnp.zeros(len(keys))
    diffusion, prior_rate = jax.lax.stop_gradient((law.diffusion, law.prior_rate))
    noise = diffusion * brownian_increments(path_keys, durations, start.shape[1], increments)
    kept = 1 - prior_rate * durations
    clocks = jnp.cumsum(durations) - durations
    moves_of = _moves_of_a_narrow_drift if isinstance(law.drift, Drift) else _moves_of_any_drift
    moves, energy = moves_of(law.drift, start, kept, clocks, durations, noise)
    return WeightPath(start, kept, moves, cells), 0.5 * durations @ energy / diffusion**2


def _moves_of_any_drift(drift, start, kept, clocks, durations, noise):
    """The recursion as it is written."""

    def step(weights, cell):
        keep, clock, duration, jump = cell
        control = jax.vmap(drift, in_axes=(0, None))(weights, clock)
        move = control * duration + jump
        return keep * weights + move, (move, jnp.sum(control**2, axis=1))

    return jax.lax.scan(step, start, (kept, clocks, durations, noise))[1]


def _moves_of_a_narrow_drift(drift, start, kept, clocks, durations, noise):
    """The same numbers, with the recursion in the drift network's first layer instead of in all weights.

    The network sees ω only through P ω and answers with U a, where P and U have as many rows and columns as its first
    and last hidden layers have units. So P ω follows a recursion of its own, all moves come out of two large products,
    and |u|² = aᵀ (Uᵀ U) a: several times fewer passes over the weights.
    """
    project, answer = drift.projection(), drift.answers()
    projected_answer, squared_answer = answer @ project.T, answer @ answer.T

    def step(projected, cell):
        keep, clock, duration, jump = cell
        features = jax.vmap(drift.features, in_axes=(0, None))(projected, clock)
        return keep * projected + (features @ projected_answer) * duration + jump, features

    _, features = jax.lax.scan(step, start @ project.T, (kept, clocks, durations, noise @ project.T))
    energy = jnp.sum((features @ squared_answer) * features, axis=2)
    return _answered(features * durations[:, None, None], answer) + noise, energy


@jax.custom_vjp
def _answered(
    features: Float[Array, "cells draws features"], answer: Float[Array, "features weights"]
) -> Float[Array, "cells draws weights"]:
    """The product; left to itself, its gradient would first transpose the largest array of a training step."""
    return features @ answer


_answered.defvjp(
    lambda features, answer: (features @ answer, (features, answer)),
    lambda kept, slope: (slope @ kept[1].T, jnp.einsum("cdf,cdw->fw", kept[0], slope)),
)


def solve(
    field: VectorField,
    path: WeightPath,
    hidden: Float[Array, "patients state"],
    clocks: Float[Array, " steps"],
    path_steps: Float[Array, "patients steps channels"],
    query_step: Int[Array, "patients queries"],
    query_increments: Float[Array, "patients queries channels"],
) -> Float[Array, "patients queries state"]:
    """Z and what is carried along at each query, for the patients who share a draw.

    Gradients are those of Z and ω: paths and queries are data.

    Args:
        field: f.
        path: ω.
        hidden: Z, and what is carried along, where the path starts.
        clocks: Time at the start of each step.
        path_steps: ΔX of each step.
        query_step: The step that each query lies in.
        query_increments: ΔX from the start of that step up to the query.
    """
    hidden, carried = hidden[:, : field.hidden], hidden[:, field.hidden :]
    moves = jnp.cumsum(field.carried_steps(path_steps[:, :-1]), axis=1)
    carried = jnp.concatenate([carried[:, None], carried[:, None] + moves], axis=1)  # nothing of it is to be solved
    at_queries = jnp.take_along_axis(carried, query_step[:, :, None], axis=1) + field.carried_steps(query_increments)
    stops = query_step.shape[1] == 1
    if stops:  # nothing after the only query is needed, so the path ends there
        number = jnp.arange(len(clocks))[:, None]
        path_steps = jnp.where(number < query_step[:, :, None], path_steps, 0.0)
        path_steps = jnp.where(number == query_step[:, :, None], query_increments, path_steps)
    queries = jax.tree.map(lambda rows: rows[:, :0] if stops else rows, (query_step, query_increments))

    def along_stretch(carry, stretch):
        weights, state, reached = carry
        keep, move, carried, cells = stretch
        state, reached = _along_cells(field, field.layers(weights), state, reached, carried, cells, queries)
        moved = weights if move is None else keep * weights + move
        return (moved, state, reached), None

    by_cell = (clocks, jnp.swapaxes(path_steps, 0, 1), jnp.swapaxes(carried, 0, 1))
    clocks, increments, carried = (in_stretches(each, path.cells) for each in by_cell)
    cells = Cells(jnp.arange(clocks.size).reshape(clocks.shape), clocks, increments)
    start = (path.start, hidden, jnp.zeros((*queries[0].shape, field.hidden)))
    (_, state, reached), _ = jax.lax.scan(along_stretch, start, (path.kept, path.moves, carried, cells))
    return jnp.concatenate([state[:, None] if stops else reached, at_queries], axis=2)


class Cells(NamedTuple):
    """Steps of the grid, which lead.

    Attributes:
        number: Of the step.
        clock: Time where it starts.
        increment: ΔX of each patient.
    """

    number: Int[Array, "*cells"]
    clock: Float[Array, "*cells"]
    increment: Float[Array, "*cells patients channels"]


@jax.custom_vjp
def _along_cells(field, layers, state, reached, carried, cells, queries):
    """Z after the cells of a stretch, and at the queries in them."""
    return _follow(field, layers, state, reached, carried, cells, queries)[0]


def _follow(field, layers, state, reached, carried, cells, queries):
    """The same, with what the way back needs: states, matrices and signals of every cell."""
    query_step, query_increments = queries

    def step(carry, at_cell):
        (state, reached), (carried, cell) = carry, at_cell
        together = jnp.concatenate([state, carried], axis=1)
        matrix, before = jax.vmap(field.with_signals, in_axes=(0, None, None))(together, cell.clock, layers)
        here = (query_step == cell.number)[:, :, None]
        reached = jnp.where(here, state[:, None] + _times(matrix, query_increments), reached)
        return (state + _times(matrix, cell.increment[:, None])[:, 0], reached), (together, matrix, before)

    return jax.lax.scan(step, (state, reached), (carried, cells), unroll=min(len(cells.number), UNROLLED))


def _times(matrix, increments):
    return jnp.einsum("phc,pqc->pqh", matrix, increments)


def _follow_and_keep(field, layers, state, reached, carried, cells, queries):
    after, kept = _follow(field, layers, state, reached, carried, cells, queries)
    return after, (field, layers, cells, queries, kept)


def _follow_back(known, slopes):
    """Slopes along the weights come out of one product for all cells; left to itself, every cell would add its own."""
    field, layers, cells, (query_step, query_increments), kept = known
    after_slope, reached_slope = slopes

    def step(slope, at_cell):
        cell, matrix, before = at_cell
        own = jnp.where((query_step == cell.number)[:, :, None], reached_slope, 0.0)
        matrix_slope = slope[:, :, None] * cell.increment[:, None] + jnp.einsum("pqh,pqc->phc", own, query_increments)
        layer_slopes, entering = jax.vmap(field.slopes, in_axes=(0, 0, 0, None))(matrix_slope, matrix, before, layers)
        slope = slope + own.sum(axis=1) + entering[:, : field.hidden]
        return slope, (layer_slopes, entering[:, field.hidden :])

    states, matrices, before = kept
    clocks = jnp.broadcast_to(cells.clock[:, None], states.shape[:2])
    slope, (layer_slopes, carried_slope) = jax.lax.scan(
        step, after_slope, (cells, matrices, before), reverse=True, unroll=min(len(clocks), UNROLLED)
    )
    weight_slopes = field.weight_slopes(states, clocks, before, layer_slopes)
    reached_slope = jnp.where(jnp.isin(query_step, cells.number)[:, :, None], 0.0, reached_slope)
    return None, weight_slopes, slope, reached_slope, carried_slope, None, None


_along_cells.defvjp(_follow_and_keep, _follow_back)


def in_stretches(rows: Shaped[Array, "cells *any"], cells: int) -> Shaped[Array, "stretches cells_each *any"]:
    """Cells in groups; the last is filled with empty ones, in which nothing moves."""
    missing = -len(rows) % cells
    filled = jnp.concatenate([rows, jnp.zeros((missing, *rows.shape[1:]), rows.dtype)])
    return filled.reshape(len(filled) // cells, cells, *rows.shape[1:])  # rows may be empty
