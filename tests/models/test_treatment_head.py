"""Balanced representations: the head learns to guess treatments, hidden states learn to keep them from it."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from counterpath.models.inputs import Decisions
from counterpath.models.treatment_head import TreatmentHead


@pytest.fixture
def head():
    return TreatmentHead(3, 2, key=jax.random.key(0))


@pytest.fixture
def hidden():
    return jax.random.normal(jax.random.key(1), (2, 4, 1, 5, 6))  # the last three are carried along


@pytest.fixture
def decisions():
    given = jax.random.bernoulli(jax.random.key(2), 0.4, (4, 1, 5, 2)).astype(jnp.float32)
    return Decisions(given, jax.random.uniform(jax.random.key(3), (4, 1, 5)))


def plain(head, hidden, decisions):
    """−Σ shares · (a log p + (1 − a) log (1 − p)), written out."""
    chance = jax.nn.sigmoid(head(hidden))
    each = -(decisions.given * jnp.log(chance) + (1 - decisions.given) * jnp.log(1 - chance))
    return jnp.sum(each.mean(axis=(0, -1)) * decisions.shares)


def test_it_is_the_cross_entropy(head, hidden, decisions):
    np.testing.assert_allclose(head.cross_entropy(hidden, decisions), plain(head, hidden, decisions), rtol=1e-5)


def test_the_head_learns_from_it_as_it_is_and_states_the_other_way_round(head, hidden, decisions):
    own = jax.grad(lambda h: h.cross_entropy(hidden, decisions))(head)
    expected = jax.grad(lambda h: plain(h, hidden, decisions))(head)
    np.testing.assert_allclose(own.linear.weight, expected.linear.weight, rtol=1e-4, atol=1e-6)
    of_states = jax.grad(lambda z: head.cross_entropy(z, decisions))(hidden)
    turned = jax.grad(lambda z: plain(head, z, decisions))(hidden)
    np.testing.assert_allclose(of_states, -turned, rtol=1e-4, atol=1e-6)


def test_what_is_carried_along_is_not_looked_at(head, hidden):
    np.testing.assert_array_equal(head(hidden), head(hidden.at[..., 3:].set(9.0)))
