"""At which cuts patients are scored: a few of each, the same ones every time."""

from __future__ import annotations

import equinox as eqx
import jax
import jax.numpy as jnp

from counterpath.models import Targets
from counterpath.training.examples import Examples


def spread_cuts(examples: Examples, number: int) -> Examples:
    """The same patients with a fixed set of cuts, spread evenly over their candidates."""
    cuts = examples.targets.cuts
    width = examples.targets.shares.shape[-3]
    number = min(number, width)
    place = (jnp.arange(number) + 0.5) / number
    chosen = jnp.clip(jnp.floor(place * cuts[..., None]).astype(jnp.int32), 0, width - 1)

    def at(column):
        index = chosen.reshape(*chosen.shape, *(1,) * (column.ndim - chosen.ndim))
        return jnp.take_along_axis(column, index, axis=chosen.ndim - 1)

    inputs = eqx.tree_at(
        lambda i: jax.tree.leaves(
            [i.cut_step, i.cut_increments, i.plan_steps, i.horizon_step, i.horizon_increments, i.hints]
        ),
        examples.inputs,
        replace_fn=at,
    )
    shares = at(examples.targets.shares) * (cuts / number)[..., None, None, None]  # each outcome still counts once
    units, unsure = jax.tree.map(at, (examples.targets.units, examples.targets.unsure))
    targets = Targets(at(examples.targets.changes), shares, cuts, units=units, unsure=unsure)
    return Examples(inputs, targets, examples.outcomes)
