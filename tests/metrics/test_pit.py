import numpy as np
import pytest
from scipy.stats import kstest, norm

from counterpath.metrics import pit_draws, pit_normal_mixture, randomised_pit

POINTS = 20_000


def is_uniform(pit):
    """Not rejected at 1 in 1,000, with a fixed seed."""
    return kstest(pit, "uniform").pvalue > 1e-3


@pytest.mark.parametrize("number", [1, 2, 25])
def test_exchangeable_draws_are_uniform_for_any_number(number):
    rng = np.random.default_rng(0)
    everything = rng.normal(size=(number + 1, POINTS))
    assert is_uniform(pit_draws(everything[0], everything[1:], rng))


@pytest.mark.parametrize("number", [1, 25])
def test_exchangeable_draws_with_an_atom_are_uniform(number):
    rng = np.random.default_rng(1)
    everything = np.maximum(rng.normal(size=(number + 1, POINTS)), 0.3)  # more than half are tied
    assert is_uniform(pit_draws(everything[0], everything[1:], rng))


def test_draws_by_hand():
    # One below, two tied, one above: between 1/5 and 4/5
    outcome, draws = np.full(2_000, 2.0), np.repeat([[1.0], [2.0], [2.0], [3.0]], 2_000, axis=1)
    pit = pit_draws(outcome, draws, np.random.default_rng(0))
    assert is_uniform((pit - 1 / 5) / (3 / 5))


@pytest.mark.parametrize(("spread", "variance"), [(0.5, "above"), (2.0, "below")])
def test_wrong_spread_shows(spread, variance):
    rng = np.random.default_rng(2)
    outcome, draws = rng.normal(size=POINTS), spread * rng.normal(size=(25, POINTS))
    pit = pit_draws(outcome, draws, rng)
    assert not is_uniform(pit)
    assert (pit.var() > 1 / 12 + 0.01) if variance == "above" else (pit.var() < 1 / 12 - 0.01)


def test_mixture_is_its_distribution_function():
    outcome, means = np.array([0.2, 5.0]), np.array([[0.0, 4.0], [1.0, 6.0]])
    stds, weights = np.array([[1.0, 2.0], [0.5, 0.1]]), np.array([3.0, 1.0])
    by_hand = 0.75 * norm.cdf(outcome, means[0], stds[0]) + 0.25 * norm.cdf(outcome, means[1], stds[1])
    np.testing.assert_allclose(pit_normal_mixture(outcome, means, stds, weights), by_hand, rtol=1e-13)


def test_mixture_is_uniform_for_its_own_draws_and_not_for_a_narrow_one():
    rng = np.random.default_rng(3)
    means, stds = rng.normal(size=(4, POINTS)), rng.uniform(0.1, 1, size=(4, POINTS))
    which = rng.integers(4, size=POINTS)
    outcome = rng.normal(means[which, np.arange(POINTS)], stds[which, np.arange(POINTS)])
    assert is_uniform(pit_normal_mixture(outcome, means, stds))
    assert not is_uniform(pit_normal_mixture(outcome, means, stds / 3))


def test_mixture_refuses_point_masses():
    with pytest.raises(ValueError, match="randomised_pit"):
        pit_normal_mixture(np.zeros(1), np.zeros((1, 1)), np.zeros((1, 1)))


def test_randomised_pit_is_uniform_in_spite_of_an_atom():
    rng = np.random.default_rng(4)
    outcome = np.maximum(rng.normal(size=POINTS), 0.3)
    cdf_at = norm.cdf(outcome)
    cdf_below = np.where(outcome == 0.3, 0.0, cdf_at)
    assert is_uniform(randomised_pit(cdf_below, cdf_at, rng))
    assert not is_uniform(cdf_at)


def test_randomised_pit_is_the_cdf_without_an_atom():
    cdf = np.array([0.0, 0.4, 1.0])
    np.testing.assert_array_equal(randomised_pit(cdf, cdf, np.random.default_rng(0)), cdf)


@pytest.mark.parametrize(("below", "at"), [(0.5, 0.4), (-0.1, 0.4), (0.5, 1.1)])
def test_randomised_pit_refuses_what_is_no_probability(below, at):
    with pytest.raises(ValueError, match="not swapped"):
        randomised_pit(np.array([below]), np.array([at]), np.random.default_rng(0))
