"""The solver: paths of weights, and hidden states along a control path.

In increment form, with everything at the left edge of a step:

    ω_{j+1} = ω_j + (u(ω_j, t_j) − θ ω_j) Δt_j + σ ΔB_j
    Z_{k+1} = Z_k + f(Z_k, t_k | ω_j) ΔX_k

Z moves with every cell k of the grid, ω with every stretch j of a few cells: a patient changes from day to day, the
weights only over the whole clock. A cut or a horizon inside cell k is reached by a partial step with the increment up
to it and the same f.
"""

from __future__ import annotations

import equinox as eqx
import jax
import jax.numpy as jnp
from jaxtyping import Array, Float, Int, Key, Shaped

from counterpath.dynamics.brownian import Increments, brownian_increments
from counterpath.dynamics.vector_field import VectorField
from counterpath.dynamics.weight_law import Drift, FixedWeights, WeightLaw


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
    hidden: Float[Array, " state"],
    clocks: Float[Array, " steps"],
    path_steps: Float[Array, "steps channels"],
    query_step: Int[Array, " queries"],
    query_increments: Float[Array, "queries channels"],
) -> Float[Array, "queries state"]:
    """Z and what is carried along at each query, for one patient and one draw.

    Args:
        field: f.
        path: ω.
        hidden: Z, and what is carried along, where the path starts.
        clocks: Time at the start of each step.
        path_steps: ΔX of each step.
        query_step: The step that each query lies in.
        query_increments: ΔX from the start of that step up to the query.
    """
    hidden, carried = hidden[: field.hidden], hidden[field.hidden :]
    moved_along = carried + jnp.cumsum(field.carried_steps(path_steps[:-1]), axis=0)
    carried = jnp.concatenate([carried[None], moved_along])  # at the start of each step; of it nothing is to be solved

    def along_stretch(carry, stretch):
        weights, state, reached = carry
        keep, move, cells = stretch
        layers = field.layers(weights)

        def step(carry, cell):
            state, reached = carry
            number, clock, increment, along = cell
            matrix = field(jnp.concatenate([state, along]), clock, layers)
            here = (query_step == number)[:, None]
            reached = jnp.where(here, state + query_increments @ matrix.T, reached)
            return (state + matrix @ increment, reached), None

        (state, reached), _ = jax.lax.scan(step, (state, reached), cells)
        moved = weights if move is None else keep * weights + move
        return (moved, state, reached), None

    cells = [in_stretches(rows, path.cells) for rows in (clocks, path_steps, carried)]
    numbers = jnp.arange(cells[0].size).reshape(cells[0].shape)
    start = (path.start, hidden, jnp.zeros((len(query_step), field.hidden)))
    (_, _, reached), _ = jax.lax.scan(along_stretch, start, (path.kept, path.moves, (numbers, *cells)))
    return jnp.concatenate([reached, carried[query_step] + field.carried_steps(query_increments)], axis=1)


def in_stretches(rows: Shaped[Array, "cells *any"], cells: int) -> Shaped[Array, "stretches cells_each *any"]:
    """Cells in groups; the last is filled with empty ones, in which nothing moves."""
    missing = -len(rows) % cells
    filled = jnp.concatenate([rows, jnp.zeros((missing, *rows.shape[1:]), rows.dtype)])
    return filled.reshape(len(filled) // cells, cells, *rows.shape[1:])  # rows may be empty
