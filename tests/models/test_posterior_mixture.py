import numpy as np
import pytest
from small_networks import DURATIONS, PLAN_DURATIONS, small_inputs, small_network, trained_network

from counterpath.models.posterior import Posterior, PosteriorMixture, set_apart

INPUTS = small_inputs(3)


def ask(networks, draws, kind=PosteriorMixture):
    centres, stds = kind(networks, DURATIONS, PLAN_DURATIONS, draws=draws, seed=4).outcomes(INPUTS)
    return np.stack([centres, stds[..., 0]])


def test_a_mixture_of_one_is_that_one():
    np.testing.assert_array_equal(ask([trained_network()], 5), ask(trained_network(), 5, Posterior))


@pytest.mark.parametrize("draws", [1, 2, 5, 6])
def test_draws_are_of_each_network_in_turn(draws):
    """With their means set apart, as many of each as any has."""
    networks = [trained_network(), small_network()][:draws]
    mixed = ask(networks, draws)
    assert mixed.shape[1] == draws
    (means, stds) = np.stack([ask(network, -(-draws // len(networks)), Posterior) for network in networks], axis=1)
    for number, (mean, std) in enumerate(zip(set_apart(means), stds, strict=True)):
        mine = mixed[:, number :: len(networks)]
        np.testing.assert_allclose(mine, np.stack([mean, std])[:, : mine.shape[1]], rtol=1e-5, atol=1e-6)


def test_more_draws_begin_with_fewer():
    """Their noise, and how the draws of one network differ; how far networks lie apart is estimated from all draws."""
    networks = [trained_network(), small_network()]
    more, fewer = ask(networks, 7)[:, :4], ask(networks, 4)
    np.testing.assert_allclose(more[1], fewer[1], rtol=1e-6, atol=1e-7)
    np.testing.assert_allclose(more[0, 2:] - more[0, :2], fewer[0, 2:] - fewer[0, :2], rtol=1e-4, atol=1e-6)
