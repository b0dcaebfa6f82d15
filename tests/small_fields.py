"""A vector field of a few dozen weights, and paths for them."""

from __future__ import annotations

import jax.numpy as jnp

from counterpath.dynamics import VectorField, WeightPath, solve

FIELD = VectorField(hidden=3, channels=2, widths=(8,), activation="tanh")
HIDDEN = jnp.array([0.4, -0.6, 0.2])


def through(weights):
    """The path that has these weights at the left edges of the cells."""
    return WeightPath(weights[0], jnp.zeros(len(weights)), jnp.roll(weights, -1, axis=0))


def solve_alone(field, path, hidden, clocks, steps, query_step, query_increments):
    """One patient."""
    rows = (hidden, steps, query_step, query_increments)
    hidden, steps, query_step, query_increments = (row[None] for row in rows)
    return solve(field, path, hidden, clocks, steps, query_step, query_increments)[0]
