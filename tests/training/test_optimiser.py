from dataclasses import replace

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import optax
import pytest
from small_networks import START, small_sizes
from still_training import STILL

from counterpath.cohort import CohortError
from counterpath.models import build_network
from counterpath.training.optimiser import make_optimiser

pytestmark = pytest.mark.slow  # optimisers are compiled

MOVING = replace(STILL, learning_rate=0.01, drift_learning_rate=0.02, readout_learning_rate=0.03)


def first_step(settings, network):
    """What Adam does with a gradient of ones at its first step: the learning rate itself, whatever its memory."""
    parameters = eqx.filter(network, eqx.is_inexact_array)
    optimiser = make_optimiser(replace(settings, clip=1e9), steps=100)
    gradient = jax.tree.map(jnp.ones_like, parameters)
    updates, _ = optimiser.update(gradient, optimiser.init(parameters), parameters)
    return updates


@pytest.fixture(params=[True, False], ids=["random weights", "fixed weights"])
def network(request):
    return build_network(small_sizes(), START if request.param else None, key=jax.random.key(0))


def weights(of):
    laws = (of.encoder_law, of.decoder_law)
    return [law.weights if hasattr(law, "weights") else law.initial_mean for law in laws]


def test_each_part_has_a_rate_of_its_own(network):
    updates = first_step(replace(MOVING, optimiser="plain"), network)
    for step in weights(updates):
        np.testing.assert_allclose(step, -0.01, rtol=1e-5)
    np.testing.assert_allclose(jax.tree.leaves(updates.outcome_head)[0], -0.03, rtol=1e-5)
    if hasattr(updates.encoder_law, "drift"):
        np.testing.assert_allclose(jax.tree.leaves(updates.encoder_law.drift)[0], -0.02, rtol=1e-5)


def test_layers_move_in_units_of_their_fan_in(network):
    plain, layered = (first_step(replace(MOVING, optimiser=name), network) for name in ("plain", "layered"))
    fields = (network.encoder_field, network.decoder_field)
    for before, after, field in zip(weights(plain), weights(layered), fields, strict=True):
        np.testing.assert_allclose(after, before * 8 * field.fan_in_std(), rtol=1e-5)  # 8 = √64
    others = [eqx.tree_at(weights, updates, [jnp.zeros(1), jnp.zeros(1)]) for updates in (plain, layered)]
    assert eqx.tree_equal(*others, rtol=1e-5)  # the memory is corrected for its length, and rounded


@pytest.mark.parametrize("schedule", ["linear", "cosine"])
def test_rates_rise_and_fall_to_nothing(network, schedule):
    parameters = eqx.filter(network, eqx.is_inexact_array)
    optimiser = make_optimiser(replace(MOVING, schedule=schedule, warmup=0.1, clip=1e9), steps=100)
    state, gradient, sizes = optimiser.init(parameters), jax.tree.map(jnp.ones_like, parameters), []
    update = eqx.filter_jit(optimiser.update)
    for _ in range(101):
        updates, state = update(gradient, state, parameters)
        sizes.append(-float(weights(updates)[0][0]))
    assert sizes[0] == 0.0
    assert np.argmax(sizes) == 10
    assert sizes[10] == pytest.approx(0.01, rel=1e-4)
    assert sizes[55] == pytest.approx(0.005, rel=1e-3)  # half way down, by both
    assert sizes[100] == pytest.approx(0.0, abs=1e-8)  # float32
    assert (sizes[30] < 0.0078) == (schedule == "linear")


def test_the_memory_of_a_large_gradient_fades_sooner_where_layered(network):
    parameters = eqx.filter(network, eqx.is_inexact_array)
    left = {}
    for name in ("plain", "layered"):
        optimiser = make_optimiser(replace(MOVING, optimiser=name, clip=1e9), steps=1_000)
        state, update = optimiser.init(parameters), eqx.filter_jit(optimiser.update)
        for size in (100.0, *[1.0] * 500):
            gradient = jax.tree.map(lambda leaf, size=size: jnp.full_like(leaf, size), parameters)
            updates, state = update(gradient, state, parameters)
        left[name] = -float(jax.tree.leaves(updates.outcome_head)[0].ravel()[0])
    assert left["plain"] < 0.01
    assert left["layered"] > 0.02


def test_what_could_not_train_is_refused():
    with pytest.raises(CohortError, match="steps=0 must be more than zero"):
        replace(STILL, steps=0)
    with pytest.raises(CohortError, match=r"learning_rate=-0\.1 must not be negative"):
        replace(STILL, learning_rate=-0.1)
    with pytest.raises(CohortError, match="patience=0 must be more than zero"):
        replace(STILL, patience=0)
    assert isinstance(make_optimiser(STILL, 1), optax.GradientTransformation)
