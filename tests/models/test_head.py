import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import pytest

from counterpath.models.head import SMALLEST_STD, OutcomeHead

HIDDEN = jnp.array([0.5, -1.0, 2.0])
KEY = jax.random.key(0)


@pytest.mark.parametrize("skewed", [False, True])
@pytest.mark.parametrize("widths", [(), (6,)])
def test_it_is_the_network_that_its_layers_spell_out(widths, skewed):
    """Centres come first, then what the stds are made of: one per outcome, or one below and one above."""
    head = OutcomeHead(3, 2, widths, skewed=skewed, key=jax.random.key(1))
    signal = np.asarray(HIDDEN)
    *inner, last = [(np.asarray(layer.weight), np.asarray(layer.bias)) for layer in head.network.layers]
    for weight, bias in inner:
        raw = weight @ signal + bias
        signal = raw / (1 + np.exp(-raw))
    raw = last[0] @ signal + last[1]
    mean, std = head(HIDDEN, key=KEY)
    np.testing.assert_allclose(mean, raw[:2], rtol=1e-5)
    assert std.shape == (2, 1 + skewed)
    np.testing.assert_allclose(std.ravel(), SMALLEST_STD + np.log1p(np.exp(raw[2:])), rtol=1e-5)


def test_no_state_makes_the_std_smaller_than_the_smallest():
    """Nor does it stop the gradient or give it no value."""
    head = OutcomeHead(3, 1, (), key=jax.random.key(2))
    far_down = eqx.tree_at(lambda head: head.network.layers[-1].bias, head, jnp.array([0.0, -1e4]))
    std, gradient = jax.value_and_grad(lambda hidden: far_down(hidden, key=KEY)[1][0, 0])(HIDDEN)
    assert std == pytest.approx(SMALLEST_STD)
    assert np.isfinite(gradient).all()


TIMES = jnp.array([[0.0, 0.0], [10.0, 0.0], [10.0, 2.0]])  # known, ahead


def test_the_factor_of_the_noise_is_one_until_it_is_chosen():
    head = OutcomeHead(3, 2, (6,), skewed=True, key=jax.random.key(6))
    np.testing.assert_array_equal(head.noise_factor(TIMES), np.ones((3, 2)))


def test_the_factor_of_the_noise_grows_with_each_time_for_each_outcome():
    head = OutcomeHead(3, 2, (6,), key=jax.random.key(6))
    chosen = (jnp.array([0.5, 1.5]), jnp.array([[-0.01, 0.1], [0.0, -0.2]]))
    head = eqx.tree_at(lambda head: (head.noise_scale, head.noise_growth), head, chosen)
    expected = [[0.5, 1.5], [0.5 * np.exp(-0.1), 1.5], [0.5 * np.exp(0.1), 1.5 * np.exp(-0.4)]]
    np.testing.assert_allclose(head.noise_factor(TIMES), expected, rtol=1e-6)


def test_without_dropout_the_key_does_nothing():
    head = OutcomeHead(3, 2, (6,), key=jax.random.key(3))
    for one, other in zip(head(HIDDEN, key=KEY), head(HIDDEN, key=jax.random.key(99)), strict=True):
        np.testing.assert_array_equal(one, other)


DROPOUT, DRAWS = 0.3, 20_000


@pytest.fixture(scope="module")
def dropped():
    """A head that adds up six ones, of which each is left out with probability 0.3: many means, and the head."""
    head = OutcomeHead(6, 1, (), dropout=DROPOUT, key=jax.random.key(4))
    adds_up = (jnp.array([6 * [1.0], 6 * [0.0]]), jnp.zeros(2))
    head = eqx.tree_at(lambda head: (head.network.layers[0].weight, head.network.layers[0].bias), head, adds_up)
    keys = jax.random.split(jax.random.key(5), DRAWS)
    return np.asarray(jax.jit(jax.vmap(lambda key: head(jnp.ones(6), key=key)[0][0]))(keys), dtype=np.float64), head


def test_dropout_keeps_the_mean_and_has_the_variance_of_left_out_terms(dropped):
    """Each term is 1/(1 − p) with probability 1 − p: mean 1, variance p/(1 − p)."""
    means, _ = dropped
    variance = 6 * DROPOUT / (1 - DROPOUT)
    assert abs(means.mean() - 6) < 4 * np.sqrt(variance / DRAWS)
    assert abs(means.var() / variance - 1) < 4 * np.sqrt(2 / DRAWS)


def test_dropout_leaves_whole_values_out(dropped):
    means, _ = dropped
    kept = means * (1 - DROPOUT)
    np.testing.assert_allclose(kept, np.round(kept), atol=1e-5)
    assert set(np.round(kept)) == set(range(7))


def test_one_key_leaves_the_same_values_out_of_every_state(dropped):
    _, head = dropped
    for seed in range(5):
        one, double = (head(jnp.full(6, size), key=jax.random.key(seed))[0] for size in (1.0, 2.0))
        np.testing.assert_allclose(double, 2 * one)
