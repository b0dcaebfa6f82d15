import numpy as np
import pytest
from scipy.stats import norm

from counterpath.metrics import log_score_normal_mixture


def test_one_normal_agrees_with_scipy():
    outcome = np.array([[-1.0, 0.0], [2.0, 30.0]])
    mean, std = np.full((1, 2, 2), 0.5), np.full((1, 2, 2), 0.2)
    score = log_score_normal_mixture(outcome, mean, std)
    np.testing.assert_allclose(score, -norm.logpdf(outcome, 0.5, 0.2), rtol=1e-13)


@pytest.mark.parametrize("per_point", [False, True])
def test_mixture_agrees_with_its_density(per_point):
    rng = np.random.default_rng(0)
    outcome, means, stds = rng.normal(size=4), rng.normal(size=(5, 4)), rng.uniform(0.5, 2, size=(5, 4))
    weights = rng.uniform(size=(5, 4) if per_point else 5)
    shares = weights / weights.sum(axis=0)
    shares = shares if per_point else shares[:, None]
    density = (shares * norm.pdf(outcome, means, stds)).sum(axis=0)
    score = log_score_normal_mixture(outcome, means, stds, weights)
    np.testing.assert_allclose(score, -np.log(density), rtol=1e-12)


def test_far_outcomes_stay_finite():
    # Both densities are 0 in float64; the nearer component rules: ½ 100² + ½ log 2π − log ½
    score = log_score_normal_mixture(np.array([100.0]), np.array([[0.0], [-50.0]]), np.ones((2, 1)))
    np.testing.assert_allclose(score, 5000 + 0.5 * np.log(2 * np.pi) + np.log(2), rtol=1e-13)


def test_components_without_weight_do_not_count():
    outcome, means, stds = np.array([0.3]), np.array([[0.0], [0.3]]), np.array([[1.0], [0.001]])
    score = log_score_normal_mixture(outcome, means, stds, np.array([2.0, 0.0]))
    np.testing.assert_allclose(score, -norm.logpdf(0.3), rtol=1e-13)


def test_point_masses_are_refused():
    with pytest.raises(ValueError, match=r"no density.*crps_normal_mixture"):
        log_score_normal_mixture(np.zeros(1), np.zeros((2, 1)), np.array([[1.0], [0.0]]))
