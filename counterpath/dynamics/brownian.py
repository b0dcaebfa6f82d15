"""Increments of Brownian motion."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Literal

import jax
import jax.numpy as jnp
from jaxtyping import Array, Float, Int, Key, PRNGKeyArray

Increments = Literal["gaussian", "two-point"]


def brownian_increments(
    keys: Key[Array, " draws"], durations: Float[Array, " cells"], size: int, kind: Increments = "gaussian"
) -> Float[Array, "cells draws size"]:
    """ΔB over each cell, for each draw. Cells lead, because the solver walks along them.

    `two-point` takes ±√Δt with equal probability: the same mean and variance, which is all that the distribution of the
    solution needs at this order (weak convergence), and 32 of them cost one random number.

    Args:
        keys: Of the draws; cell k uses a key's own child k, so that a path does not depend on how far it is followed.
        durations: Δt of each cell.
        size: Dimension.
        kind: `gaussian` or `two-point`.
    """

    def in_cell(cell):
        return jax.vmap(lambda key: _unit(jax.random.fold_in(key, cell), size, kind))(keys)

    units = jax.vmap(in_cell) if kind == "two-point" else partial(_cell_by_cell, in_cell)
    return jnp.sqrt(durations)[:, None, None] * units(jnp.arange(len(durations)))


def _cell_by_cell(in_cell: Callable, cells: Int[Array, " cells"]) -> Float[Array, "cells draws size"]:
    """Normals take many passes over their random words, which a processor's cache can hold for a cell, not for all."""
    return jax.lax.platform_dependent(cells, cpu=partial(jax.lax.map, in_cell), default=jax.vmap(in_cell))


def _unit(key: PRNGKeyArray, size: int, kind: Increments) -> Float[Array, " size"]:
    if kind == "gaussian":
        return jax.random.normal(key, (size,))
    words = jax.random.bits(key, (-(-size // 32),))
    bits = (words[:, None] >> jnp.arange(32, dtype=jnp.uint32)) & 1
    return (2.0 * bits.astype(jnp.float32) - 1.0).ravel()[:size]
