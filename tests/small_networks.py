"""A network of a few dozen weights, and patients for it."""

from __future__ import annotations

from functools import cache

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np

from counterpath.models import Inputs, NetworkSizes, NeuralCDE, build_network
from counterpath.models.sizes import PosteriorStart

DURATIONS = jnp.array([0.1, 0.3, 0.2, 0.4])
PLAN_DURATIONS = jnp.array([0.25, 0.25, 0.5])
KNOWN, CHANNELS, PLAN_CHANNELS = 3, 2, 2


def small_sizes(**sizes) -> NetworkSizes:
    """What is not said is small."""
    usual = {
        "known": KNOWN,
        "channels": CHANNELS,
        "plan_channels": PLAN_CHANNELS,
        "outcomes": 1,
        "hidden": 3,
        "field_widths": (4,),
        "activation": "silu",
        "embedding_widths": (5,),
        "head_widths": (6,),
    }
    return NetworkSizes(**(usual | sizes))


START = PosteriorStart(
    initial_law="learned",
    start_std=0.3,
    prior_std=1.0,
    prior_rate=0.5,
    diffusion=0.2,
    drift_widths=(5,),
)


@cache
def small_network() -> NeuralCDE:
    """With weights that follow a law, before training."""
    return build_network(small_sizes(), START, key=jax.random.key(0))


def with_drift(network: NeuralCDE) -> NeuralCDE:
    """As after some training: the drift's last layer, which starts at zero, is not zero any more."""
    lasts = lambda network: [law.drift.layers[-1][0] for law in (network.encoder_law, network.decoder_law)]  # noqa: E731
    rng = np.random.default_rng(0)
    move = lambda last: jnp.asarray(rng.normal(size=last.shape), last.dtype)  # noqa: E731
    return eqx.tree_at(lasts, network, replace_fn=move)


@cache
def trained_network() -> NeuralCDE:
    """The small network as after some training."""
    return with_drift(small_network())


# The last of what is known is static; the plan's channels come after all that is known.
CARRY = np.array([[0.5, 0.0], [0.0, 2.0], [0.0, 0.0]], dtype=np.float32)
PLAN_CARRY = np.array([[0.0, 0.0], [0.0, 0.0], [0.0, 0.0], [4.0, 0.0], [0.0, 0.25]], dtype=np.float32)


@cache
def carrying_network() -> NeuralCDE:
    """As after some training, with a state that carries path and plan along."""
    carry, plan_carry = jnp.asarray(CARRY), jnp.asarray(PLAN_CARRY)
    return with_drift(build_network(small_sizes(), START, key=jax.random.key(0), carry=carry, plan_carry=plan_carry))


@cache
def fixed_network(dropout: float = 0.0) -> NeuralCDE:
    """With weights that are parameters, and do not move."""
    return build_network(small_sizes(dropout=dropout), None, key=jax.random.key(0))


def small_inputs(patients: int, *, cuts: int = 2, horizons: int = 2, seed: int = 0) -> Inputs:
    """Random paths; cuts and horizons anywhere in them."""
    rng = np.random.default_rng(seed)
    normal = lambda *shape: jnp.asarray(rng.normal(size=shape), dtype=jnp.float32)  # noqa: E731
    steps, plan_steps = len(DURATIONS), len(PLAN_DURATIONS)
    return Inputs(
        normal(patients, KNOWN),
        normal(patients, steps, CHANNELS),
        jnp.asarray(rng.integers(steps, size=(patients, cuts)), dtype=jnp.int32),
        normal(patients, cuts, CHANNELS),
        normal(patients, cuts, plan_steps, PLAN_CHANNELS),
        jnp.asarray(rng.integers(plan_steps, size=(patients, cuts, horizons)), dtype=jnp.int32),
        normal(patients, cuts, horizons, PLAN_CHANNELS),
    )
