import jax
import jax.numpy as jnp
import numpy as np
import pytest

from counterpath.dynamics import VectorField

FIELD = VectorField(hidden=3, channels=2, widths=(5, 4))
NUMPY = {"relu": lambda x: np.maximum(x, 0), "silu": lambda x: x / (1 + np.exp(-x)), "tanh": np.tanh}


def normal(seed, *shape):
    return np.random.default_rng(seed).normal(size=shape).astype(np.float32)


def layers_of(field, weights):
    return jax.tree.map(np.asarray, jax.jit(field.layers)(jnp.asarray(weights)))


@pytest.mark.parametrize(("widths", "path"), [((), ()), ((5,), (7,)), ((5, 4), (2, 7))])
def test_layers_hold_every_weight_once_and_in_order(widths, path):
    field = VectorField(hidden=3, channels=2, widths=widths)
    weights = normal(0, *path, field.size)
    layers = layers_of(field, weights)
    assert [matrix.shape[-2:] for matrix, _ in layers] == list(field.shapes)
    flat = np.concatenate([part.reshape(*path, -1) for layer in layers for part in layer], axis=-1)
    np.testing.assert_array_equal(flat, weights)


def test_layers_of_a_path_are_those_of_its_points():
    path = normal(1, 7, FIELD.size)
    for (matrices, biases), (matrix, bias) in zip(layers_of(FIELD, path), layers_of(FIELD, path[4]), strict=True):
        np.testing.assert_array_equal(matrices[4], matrix)
        np.testing.assert_array_equal(biases[4], bias)


@pytest.mark.parametrize("activation", NUMPY)
def test_it_is_the_network_that_its_weights_spell_out(activation):
    field = VectorField(hidden=3, channels=2, widths=(5, 4), activation=activation)
    w = normal(2, field.size)
    hidden, clock = np.array([0.3, -1.2, 0.8]), 0.4
    # 4 inputs to 5, 5 to 4, 4 to 3 × 2
    signal = NUMPY[activation](w[:20].reshape(5, 4) @ [*hidden, clock] + w[20:25])
    signal = NUMPY[activation](w[25:45].reshape(4, 5) @ signal + w[45:49])
    expected = np.tanh(w[49:73].reshape(6, 4) @ signal + w[73:79]).reshape(3, 2)
    found = value(field, hidden, clock, w)
    assert field.size == 79
    np.testing.assert_allclose(found, expected, rtol=1e-5, atol=1e-6)


def value(field, hidden, clock, weights):
    return jax.jit(lambda z, t, w: field(z, t, field.layers(w)))(jnp.asarray(hidden), jnp.asarray(clock), weights)


def test_no_weights_or_state_take_it_beyond_one():
    """And both ends are reached: the bound is that of tanh, not a smaller one."""
    weights, hidden = 100 * normal(3, 200, FIELD.size), 100 * normal(4, 200, 3)
    found = jax.jit(jax.vmap(lambda z, w: FIELD(z, jnp.ones(()), FIELD.layers(w))))(hidden, weights)
    assert (np.min(found), np.max(found)) == (-1.0, 1.0)


@pytest.mark.parametrize("other", [([0.5, 0.5, 0.5], 0.9), ([-0.5, 0.5, 0.5], 0.2), ([0.5, 0.5, -0.5], 0.2)])
def test_the_clock_and_every_part_of_the_state_enter(other):
    weights = FIELD.usual_start(jax.random.key(5))
    change = value(FIELD, *other, weights) - value(FIELD, [0.5, 0.5, 0.5], 0.2, weights)
    assert np.abs(change).max() > 1e-3


def test_the_usual_start_has_the_scale_of_the_fan_in_and_no_biases():
    field = VectorField(hidden=7, channels=5, widths=(64, 32))
    started = layers_of(field, field.usual_start(jax.random.key(6)))
    scales = layers_of(field, field.fan_in_std())
    for (matrix, bias), (matrix_scale, bias_scale), inputs in zip(started, scales, (8, 64, 32), strict=True):
        np.testing.assert_allclose(matrix_scale, inputs**-0.5, rtol=1e-6)
        np.testing.assert_allclose(bias_scale, inputs**-0.5, rtol=1e-6)
        np.testing.assert_array_equal(bias, 0.0)
        # The variance of n normals has a relative standard error of √(2/n).
        assert abs(np.mean(matrix**2) * inputs - 1) < 4 * (2 / matrix.size) ** 0.5


# Rows that carry the path along


CARRY = np.array([[0.5, 0.0], [0.0, 0.0], [1.0, -2.0]], dtype=np.float32)
CARRYING = VectorField(hidden=3, channels=2, widths=(5, 4), carry=jnp.asarray(CARRY))


def test_a_step_of_the_path_moves_what_is_carried_by_the_given_rows():
    steps = normal(7, 8).reshape(4, 2)
    assert CARRYING.carried == 3
    np.testing.assert_allclose(CARRYING.carried_steps(jnp.asarray(steps)), steps @ CARRY.T, rtol=1e-6)


def test_the_learned_rows_are_those_of_a_network_that_sees_what_is_carried():
    """Its weights are those of a plain field with a larger state, of which the first rows are kept."""
    w, state = normal(9, CARRYING.size), normal(10, 6)
    signal = np.maximum(w[:35].reshape(5, 7) @ [*state, 0.4] + w[35:40], 0)  # 3 + 3 + 1 inputs to 5
    signal = np.maximum(w[40:60].reshape(4, 5) @ signal + w[60:64], 0)
    expected = np.tanh(w[64:88].reshape(6, 4) @ signal + w[88:94]).reshape(3, 2)
    assert CARRYING.size == 94
    np.testing.assert_allclose(value(CARRYING, state, 0.4, w), expected, rtol=1e-5, atol=1e-6)
    other = state + np.array([0, 0, 0, 0, 1, 0], dtype=np.float32)
    assert np.abs(value(CARRYING, other, 0.4, w) - value(CARRYING, state, 0.4, w)).max() > 1e-3


def test_a_field_without_carried_rows_has_none():
    assert FIELD.carried == 0
    assert FIELD.carried_steps(jnp.ones((4, 2))).shape == (4, 0)
    assert value(FIELD, [0.5, 0.5, 0.5], 0.2, normal(11, FIELD.size)).shape == (3, 2)


def test_carried_rows_get_no_gradient():
    steps = jnp.asarray(normal(12, 8).reshape(4, 2))

    def total(field):
        return jnp.sum(field.carried_steps(steps) ** 2)

    np.testing.assert_array_equal(jax.jit(jax.grad(total))(CARRYING).carry, 0.0)
