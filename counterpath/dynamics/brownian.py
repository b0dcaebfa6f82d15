"""Increments of Brownian motion."""

from __future__ import annotations

from typing import Literal

import jax
import jax.numpy as jnp
from jaxtyping import Array, Float, PRNGKeyArray

Increments = Literal["gaussian", "two-point"]


def brownian_increments(
    key: PRNGKeyArray, durations: Float[Array, " cells"], size: int, kind: Increments = "gaussian"
) -> Float[Array, "cells size"]:
    """ΔB over each cell, for one draw.

    `two-point` takes ±√Δt with equal probability: the same mean and variance, which is all that the distribution of the
    solution needs at this order (weak convergence), and 32 of them cost one random number.

    Args:
        key: Of the draw; cell k uses the key's own child k, so that a path does not depend on how far it is followed.
        durations: Δt of each cell.
        size: Dimension.
        kind: `gaussian` or `two-point`.
    """
    keys = jax.vmap(lambda cell: jax.random.fold_in(key, cell))(jnp.arange(len(durations)))
    unit = jax.vmap(lambda cell_key: _unit(cell_key, size, kind))(keys)
    return jnp.sqrt(durations)[:, None] * unit


def _unit(key: PRNGKeyArray, size: int, kind: Increments) -> Float[Array, " size"]:
    if kind == "gaussian":
        return jax.random.normal(key, (size,))
    words = jax.random.bits(key, (-(-size // 32),))
    bits = (words[:, None] >> jnp.arange(32, dtype=jnp.uint32)) & 1
    return (2.0 * bits.astype(jnp.float32) - 1.0).ravel()[:size]
