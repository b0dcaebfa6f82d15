import equinox as eqx
import jax
import numpy as np
import pytest
from small_networks import (
    CARRY,
    DURATIONS,
    KNOWN,
    PLAN_CARRY,
    PLAN_CHANNELS,
    PLAN_DURATIONS,
    START,
    carrying_network,
    small_inputs,
    small_sizes,
    trained_network,
)

from counterpath.models import build_network


@pytest.mark.parametrize("widths", [(), (5,), (7, 4)])
def test_embedding_and_head_have_the_hidden_layers_that_were_asked_for(widths):
    network = build_network(small_sizes(embedding_widths=widths, head_widths=widths), None, key=jax.random.key(0))
    assert [layer.out_features for layer in network.outcome_head.network.layers[:-1]] == list(widths)
    assert [layer.out_features for layer in network.embedding.layers[:-1]] == list(widths)


@pytest.mark.parametrize("start", [None, START], ids=["fixed", "law"])
def test_the_start_scale_sizes_the_first_weights_of_both_fields_and_nothing_else(start):
    one, half = (build_network(small_sizes(start_scale=scale), start, key=jax.random.key(0)) for scale in (1.0, 0.5))
    weights = lambda network: [  # noqa: E731
        law.weights if start is None else law.initial_mean for law in (network.encoder_law, network.decoder_law)
    ]
    for large, small in zip(weights(one), weights(half), strict=True):
        np.testing.assert_array_equal(0.5 * np.asarray(large), small)
    same = eqx.tree_at(weights, half, weights(one))
    assert eqx.tree_equal(same, one)


# The state that carries the path


DRAWS, PATIENTS = 3, 6
INPUTS = small_inputs(PATIENTS, cuts=4, horizons=3)


@eqx.filter_jit
def states_of(network):
    """At the cuts and at the horizons, of every draw and patient."""
    keys = jax.random.split(jax.random.key(1), DRAWS)
    weights = network.draw_weights(keys, DURATIONS, PLAN_DURATIONS)
    of_draws = jax.vmap(network.hidden_at_cuts, in_axes=(None, weights.draw_axes, None))
    return of_draws(INPUTS, weights, DURATIONS), network.hidden_of(INPUTS, weights, DURATIONS, PLAN_DURATIONS)


@pytest.fixture(scope="module")
def states():
    return [np.asarray(part) for part in states_of(carrying_network())]


def reached(steps, which, increments):
    """The sum of all steps before this one, and the part of it up to the cut or horizon."""
    before = np.concatenate([np.zeros_like(steps[..., :1, :]), np.cumsum(steps, axis=-2)], axis=-2)
    return np.take_along_axis(before, np.asarray(which)[..., None], axis=-2) + increments


def known_at_cuts():
    """What is known of each patient, kept up to date, in its own units."""
    moved = reached(np.asarray(INPUTS.steps), INPUTS.cut_step, INPUTS.cut_increments)
    return np.asarray(INPUTS.first)[:, None] + moved @ CARRY.T


def test_the_carried_part_of_the_state_at_a_cut_is_the_path_there(states):
    """For all draws of the weights alike, inside of cells too; what is static stays."""
    at_cuts, _ = states
    hidden = small_sizes().hidden
    assert at_cuts.shape == (DRAWS, PATIENTS, 4, hidden + KNOWN)
    assert at_cuts[..., :hidden].std(axis=0).min() > 1e-4  # what is learned differs
    np.testing.assert_allclose(at_cuts[..., hidden:], np.tile(known_at_cuts(), (DRAWS, 1, 1, 1)), rtol=1e-4, atol=1e-5)
    static = np.asarray(INPUTS.first)[:, None, -1]
    np.testing.assert_array_equal(at_cuts[..., -1], np.broadcast_to(static, (DRAWS, PATIENTS, 4)))


def test_the_decoder_keeps_what_was_known_at_the_cut_and_carries_the_plan(states):
    """The plan's part is nothing at the cut, and what has been given of it at a horizon."""
    at_cuts, at_horizons = states
    hidden = small_sizes().hidden
    assert at_horizons.shape == (DRAWS, PATIENTS, 4, 3, hidden + KNOWN + PLAN_CHANNELS)
    kept = at_horizons[..., hidden : hidden + KNOWN]
    np.testing.assert_array_equal(kept, np.broadcast_to(at_cuts[..., None, hidden:], kept.shape))
    given = reached(np.asarray(INPUTS.plan_steps), INPUTS.horizon_step, INPUTS.horizon_increments)
    expected = np.broadcast_to(given @ PLAN_CARRY[KNOWN:].T, (DRAWS, PATIENTS, 4, 3, PLAN_CHANNELS))
    np.testing.assert_allclose(at_horizons[..., hidden + KNOWN :], expected, rtol=1e-4, atol=1e-5)


def test_the_head_reads_all_of_the_state():
    network = carrying_network()
    assert network.outcome_head.network.layers[0].in_features == small_sizes().hidden + KNOWN + PLAN_CHANNELS
    assert (network.encoder_field.carried, network.decoder_field.carried) == (KNOWN, KNOWN + PLAN_CHANNELS)


def test_without_rows_to_carry_the_state_is_what_is_learned():
    at_cuts, at_horizons = states_of(trained_network())
    assert at_cuts.shape[-1] == at_horizons.shape[-1] == small_sizes().hidden
    assert trained_network().encoder_field.carry is None
    assert trained_network().decoder_field.carry is None
