"""A vector field of a few dozen weights, and paths for them."""

from __future__ import annotations

import jax.numpy as jnp

from counterpath.dynamics import VectorField, WeightPath

FIELD = VectorField(hidden=3, channels=2, widths=(8,), activation="tanh")
HIDDEN = jnp.array([0.4, -0.6, 0.2])


def through(weights):
    """The path that has these weights at the left edges of the cells."""
    return WeightPath(weights[0], jnp.zeros(len(weights)), jnp.roll(weights, -1, axis=0))
