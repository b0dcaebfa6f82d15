import numpy as np
import pytest
from small_networks import DURATIONS, PLAN_DURATIONS, small_inputs, small_network, trained_network

from counterpath.models.posterior import Posterior, PosteriorMixture

INPUTS = small_inputs(3)


def ask(networks, draws, kind=PosteriorMixture):
    return np.stack(kind(networks, DURATIONS, PLAN_DURATIONS, draws=draws, seed=4).outcomes(INPUTS))


def test_a_mixture_of_one_is_that_one():
    np.testing.assert_array_equal(ask([trained_network()], 5), ask(trained_network(), 5, Posterior))


@pytest.mark.parametrize("draws", [1, 2, 5, 6])
def test_draws_are_of_each_network_in_turn(draws):
    networks = [trained_network(), small_network()]
    mixed = ask(networks, draws)
    assert mixed.shape[1] == draws
    for number, network in enumerate(networks[:draws]):
        own = ask(network, 3, Posterior)
        np.testing.assert_allclose(mixed[:, number::2], own[:, : len(mixed[0, number::2])], rtol=1e-6, atol=1e-7)


def test_more_draws_begin_with_fewer():
    networks = [trained_network(), small_network()]
    np.testing.assert_allclose(ask(networks, 7)[:, :4], ask(networks, 4), rtol=1e-6, atol=1e-7)
