"""The head for the rate of visits: its likelihood, the weights that follow, and where no gradient goes."""

from dataclasses import replace

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import pytest
from scipy.stats import bernoulli
from small_networks import DURATIONS, PLAN_DURATIONS, START, small_inputs, small_sizes

from counterpath.models import Batch, Targets, build_network, evidence_bound
from counterpath.models.inputs import Visits
from counterpath.models.intensity import LARGEST_WEIGHT, IntensityHead

RAW = np.random.default_rng(0).normal(size=(3, 4, 1, 2)).astype(np.float32)  # draws, patients, cuts, horizons
SHARES = np.random.default_rng(1).uniform(0.2, 1.0, size=(4, 1, 2, 1)).astype(np.float32)


def visits(came, exposure):
    return Visits(*(jnp.asarray(part, jnp.float32)[:, None] for part in (came, exposure)))


def head(interval=0.0, usual=0.0):
    made = IntensityHead(5, (6,), key=jax.random.key(0))
    return eqx.tree_at(lambda h: (h.interval, h.usual), made, (jnp.asarray(interval), jnp.asarray(usual)))


def test_on_a_grid_the_likelihood_is_that_of_a_coin_for_every_time():
    came = np.array([[1, 0], [0, 0], [1, 1], [0, 1]])
    found = head(1.0).log_likelihood(jnp.asarray(RAW), visits(came, 1.0 - came))
    chance = 1 / (1 + np.exp(-RAW[:, :, 0].astype(np.float64)))
    expected = bernoulli.logpmf(came, chance).sum(axis=(1, 2)).mean()
    assert float(found) == pytest.approx(expected, rel=1e-5)


def test_without_a_grid_it_is_that_of_a_point_process():
    came, exposure = np.array([[2.0, 0], [0, 0], [1, 0], [0, 0]]), np.array([[0, 0.5], [0, 2], [0, 0.1], [0, 0]])
    found = head().log_likelihood(jnp.asarray(RAW), visits(came, exposure))
    raw = RAW[:, :, 0]
    expected = np.sum(came * raw - exposure * np.exp(raw), axis=(1, 2)).mean()
    assert float(found) == pytest.approx(expected, rel=1e-5)


@pytest.mark.parametrize("interval", [0.0, 1.0])
def test_weights_are_inverse_to_the_chance_and_have_a_mean_of_one(interval):
    weights = np.asarray(head(interval).weights(jnp.asarray(RAW), jnp.asarray(SHARES)))[..., 0]
    chance = (1 / (1 + np.exp(-RAW)) if interval else np.exp(RAW)).mean(axis=0)
    assert np.ptp(weights * chance) == pytest.approx(0.0, abs=1e-5)
    assert np.average(weights, weights=SHARES[..., 0]) == pytest.approx(1.0, abs=1e-5)


def test_no_weight_is_far_from_the_usual_and_what_does_not_count_has_no_say():
    raw, shares = np.zeros((1, 100, 1, 1), np.float32), np.ones((100, 1, 1, 1), np.float32)
    raw[0, :3, 0, 0] = -12.0, 12.0, -30.0  # hardly ever seen, nearly always, and
    shares[2] = 0.0  # no outcome at all
    weights = np.asarray(head().weights(jnp.asarray(raw), jnp.asarray(shares)))[:, 0, 0, 0]
    expected = np.array([LARGEST_WEIGHT, 1 / LARGEST_WEIGHT, 0.0, *[1.0] * 97])
    np.testing.assert_allclose(weights, expected / expected.sum() * 99, rtol=1e-5)


def test_no_gradient_passes_to_the_state_nor_through_the_weights():
    own = head(1.0, usual=0.3)
    hidden = jnp.asarray(np.random.default_rng(2).normal(size=(3, 4, 1, 2, 5)), jnp.float32)
    seen = visits(np.ones((4, 2)), np.zeros((4, 2)))
    to_state = jax.grad(lambda z: own.log_likelihood(own(z), seen))(hidden)
    np.testing.assert_array_equal(to_state, 0.0)

    def weighted(h):
        return jnp.sum(h.weights(h(hidden), jnp.asarray(SHARES)) * jnp.arange(8.0).reshape(SHARES.shape))

    through = eqx.filter_grad(weighted)(own)
    for leaf in jax.tree.leaves(through):
        np.testing.assert_array_equal(leaf, 0.0)
    learned = eqx.filter_grad(lambda h: h.log_likelihood(h(hidden), seen))(own)
    assert all(np.abs(leaf).max() > 0 for leaf in jax.tree.leaves(learned.network))
    assert learned.usual == learned.interval == 0.0


def test_the_usual_rate_is_where_it_starts_from():
    hidden = jnp.zeros((2, 5))
    np.testing.assert_allclose(head(usual=0.7)(hidden), head()(hidden) + 0.7, rtol=1e-6)


def test_visits_teach_their_own_head_alone_and_change_what_outcomes_count():
    network = build_network(small_sizes(sees_visits=True), START, key=jax.random.key(0))
    rng = np.random.default_rng(3)
    changes, shares, came, exposure = (jnp.asarray(rng.uniform(size=(3, 2, 2)), jnp.float32) for _ in range(4))
    plain_targets = Targets(changes[..., None], shares[..., None], jnp.full(3, 2, dtype=jnp.int32))
    targets = replace(plain_targets, visits=Visits(came, exposure))
    key = jax.random.key(7)
    keys = {"keys": jax.random.split(key), "dropout_keys": jax.random.split(key, (2, 3))}

    @eqx.filter_jit
    def parts(own, targets):
        return evidence_bound(
            own,
            Batch(small_inputs(3), targets),
            DURATIONS,
            PLAN_DURATIONS,
            **keys,
            likelihood="normal",
            increments="two-point",
        )

    of_visits = eqx.filter_grad(lambda own: parts(own, targets).visits)(network)
    head, rest = of_visits.intensity_head.network, eqx.tree_at(lambda n: n.intensity_head, of_visits, None)
    assert all(np.abs(leaf).max() > 0 for leaf in jax.tree.leaves(head))
    assert all(np.abs(leaf).max() == 0 for leaf in jax.tree.leaves(rest))
    of_outcomes = eqx.filter_grad(lambda own: parts(own, targets).log_likelihood)(network)
    assert all(np.abs(leaf).max() == 0 for leaf in jax.tree.leaves(of_outcomes.intensity_head))
    weighted, plain = parts(network, targets), parts(network, plain_targets)
    assert plain.visits == 0.0
    assert abs(float(weighted.log_likelihood - plain.log_likelihood)) > 1e-3
