import numpy as np
import pytest
import scoringrules
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp
from scipy.integrate import quad
from scipy.stats import norm

from counterpath.metrics import crps, crps_draws, crps_normal_mixture

NUMBERS = st.floats(-100, 100, allow_subnormal=False).map(lambda x: round(x, 6))
STDS = st.floats(0, 50, allow_subnormal=False).map(lambda x: round(x, 6))


def by_definition(outcome, draws, fair=False):
    """The O(m²) definition, one point at a time."""
    number = len(draws)
    pairs = np.abs(draws[:, None] - draws[None, :]).sum(axis=(0, 1))
    return np.abs(draws - outcome).mean(axis=0) - pairs / (2 * number * (number - 1 if fair else number))


@pytest.fixture
def forecast():
    rng = np.random.default_rng(0)
    return rng.normal(size=(5, 7)), rng.normal(size=(31, 5, 7)).round(1)  # rounding makes ties


@pytest.mark.parametrize("fair", [False, True])
def test_draws_agree_with_the_definition(forecast, fair):
    outcome, draws = forecast
    np.testing.assert_allclose(crps_draws(outcome, draws, fair), by_definition(outcome, draws, fair), atol=1e-14)


@pytest.mark.parametrize(("fair", "estimator"), [(False, "nrg"), (True, "fair")])
def test_draws_agree_with_scoringrules(forecast, fair, estimator):
    outcome, draws = forecast
    peer = scoringrules.crps_ensemble(outcome, draws, m_axis=0, estimator=estimator)
    np.testing.assert_allclose(crps_draws(outcome, draws, fair), peer, atol=1e-13)


def test_one_draw_is_the_absolute_error():
    np.testing.assert_array_equal(crps_draws(np.array([1.0, 2.0]), np.array([[1.5, -1.0]])), [0.5, 3.0])


def test_fair_score_is_unbiased_where_the_plain_one_is_not():
    rng = np.random.default_rng(0)
    truth = 1 / np.sqrt(np.pi)  # E CRPS(N(0, 1), y) for y ~ N(0, 1)
    outcome, draws = rng.normal(size=40_000), rng.normal(size=(4, 40_000))
    fair, plain = crps_draws(outcome, draws, fair=True), crps_draws(outcome, draws)
    standard_error = fair.std() / np.sqrt(fair.size)
    assert abs(fair.mean() - truth) < 3 * standard_error
    assert abs(plain.mean() - truth * (1 + 1 / 4)) < 3 * standard_error


def test_fair_needs_two_draws():
    with pytest.raises(ValueError, match="at least two draws"):
        crps_draws(np.zeros(1), np.zeros((1, 1)), fair=True)


def test_one_normal_has_its_closed_form():
    outcome, mean, std = np.array([-2.0, 0.0, 0.3, 4.0]), np.array([0.0, 0.0, 1.0, -1.0]), 1.7
    z = (outcome - mean) / std
    closed = std * (z * (2 * norm.cdf(z) - 1) + 2 * norm.pdf(z) - 1 / np.sqrt(np.pi))
    score = crps_normal_mixture(outcome, mean[None], np.full((1, 4), std))
    np.testing.assert_allclose(score, closed, rtol=1e-13)


def test_equal_components_are_one_normal():
    outcome = np.array([0.4, -3.0])
    one = crps_normal_mixture(outcome, np.ones((1, 2)), np.full((1, 2), 0.5))
    weights = np.array([0.1, 0.2, 0.7])
    many = crps_normal_mixture(outcome, np.ones((3, 2)), np.full((3, 2), 0.5), weights)
    np.testing.assert_allclose(many, one, rtol=1e-13)


def random_mixture(rng, components=6, points=5):
    means, stds = rng.normal(size=(components, points)), rng.uniform(0.1, 2, size=(components, points))
    return rng.normal(size=points), means, stds, rng.uniform(size=(components, points))


def test_mixture_agrees_with_scoringrules():
    outcome, means, stds, weights = random_mixture(np.random.default_rng(0))
    peer = scoringrules.crps_mixnorm(outcome, means, stds, weights / weights.sum(axis=0), m_axis=0)
    np.testing.assert_allclose(crps_normal_mixture(outcome, means, stds, weights), peer, rtol=1e-12)


def test_mixture_agrees_with_the_integral():
    outcome, means, stds, weights = random_mixture(np.random.default_rng(1), points=3)
    weights = weights[:, 0] / weights[:, 0].sum()
    scores = crps_normal_mixture(outcome, means, stds, weights)
    for point, y in enumerate(outcome):

        def cdf(x, point=point):
            return (weights * norm.cdf(x, means[:, point], stds[:, point])).sum()

        below = quad(lambda x: cdf(x) ** 2, -20, y, epsabs=1e-11)[0]
        above = quad(lambda x: (1 - cdf(x)) ** 2, y, 20, epsabs=1e-11)[0]
        assert scores[point] == pytest.approx(below + above, abs=1e-8)


def test_point_masses_are_the_empirical_distribution(forecast):
    outcome, draws = forecast
    mixture = crps_normal_mixture(outcome, draws, np.zeros_like(draws))
    np.testing.assert_allclose(mixture, crps_draws(outcome, draws), atol=1e-14)


def test_a_vanishing_std_leads_to_a_point_mass():
    outcome, means = np.array([0.0, 1.0]), np.array([[0.0, 0.0], [1.0, 3.0]])
    stds = np.array([[0.0, 0.0], [0.5, 0.5]])
    exact = crps_normal_mixture(outcome, means, stds)
    near = crps_normal_mixture(outcome, means, np.maximum(stds, 1e-9))
    np.testing.assert_allclose(exact, near, atol=1e-8)


def test_chunks_do_not_change_the_score(monkeypatch):
    outcome, means, stds, weights = random_mixture(np.random.default_rng(2), points=11)
    whole = crps_normal_mixture(outcome, means, stds, weights)
    monkeypatch.setattr(crps, "CHUNK_VALUES", 13)  # two points at a time
    np.testing.assert_allclose(crps_normal_mixture(outcome, means, stds, weights), whole, rtol=1e-14)


def test_many_draws_approach_the_mixture():
    rng = np.random.default_rng(3)
    means, stds = np.array([[-1.0], [2.0]]), np.array([[0.5], [1.5]])
    which = rng.integers(2, size=(100, 2_000))
    draws = rng.normal(means[which, 0], stds[which, 0])
    fair = crps_draws(np.full(2_000, 0.7), draws, fair=True)
    standard_error = fair.std() / np.sqrt(fair.size)
    exact = crps_normal_mixture(np.array([0.7]), means, stds)[0]
    assert abs(fair.mean() - exact) < 3 * standard_error


def test_bad_mixtures_are_refused():
    outcome, means = np.zeros(2), np.zeros((3, 2))
    with pytest.raises(ValueError, match="6 negative values"):
        crps_normal_mixture(outcome, means, -np.ones((3, 2)))
    with pytest.raises(ValueError, match="positive sum"):
        crps_normal_mixture(outcome, means, np.ones((3, 2)), np.zeros(3))
    with pytest.raises(ValueError, match="must not be negative"):
        crps_normal_mixture(outcome, means, np.ones((3, 2)), np.array([1.0, 1.0, -0.5]))


@pytest.mark.usefixtures("checker_off")
def test_mixtures_with_misshapen_parts_are_refused():
    outcome, means = np.zeros(2), np.zeros((3, 2))
    with pytest.raises(ValueError, match="one std per mean"):
        crps_normal_mixture(outcome, means, np.ones((4, 2)))
    with pytest.raises(ValueError, match="one weight per component"):
        crps_normal_mixture(outcome, means, np.ones((3, 2)), np.ones(2))


@settings(deadline=None, max_examples=60)
@given(hnp.arrays(float, (9,), elements=NUMBERS), hnp.arrays(float, (8,), elements=STDS), NUMBERS, STDS)
def test_scores_move_and_grow_with_the_outcome(numbers, stds, shift, factor):
    outcome, centres = numbers[0:1], numbers[1:, None]
    stds = stds[:, None]
    for score in (
        lambda y, x, s: crps_draws(y, x),
        lambda y, x, s: crps_normal_mixture(y, x, s),
    ):
        plain = score(outcome, centres, stds)
        assert plain >= 0
        np.testing.assert_allclose(score(outcome + shift, centres + shift, stds), plain, atol=1e-10)
        np.testing.assert_allclose(score(factor * outcome, factor * centres, factor * stds), factor * plain, atol=1e-9)
        np.testing.assert_allclose(score(-outcome, -centres, stds), plain, atol=1e-10)


@settings(deadline=None, max_examples=60)
@given(hnp.arrays(float, (6, 2), elements=NUMBERS), st.permutations(range(6)))
def test_the_order_of_draws_does_not_matter(draws, order):
    outcome = np.array([0.0, 1.0])
    np.testing.assert_allclose(crps_draws(outcome, draws[order]), crps_draws(outcome, draws), atol=1e-12)
    stds = np.abs(draws) / 3
    np.testing.assert_allclose(
        crps_normal_mixture(outcome, draws[order], stds[order]),
        crps_normal_mixture(outcome, draws, stds),
        atol=1e-12,
    )
