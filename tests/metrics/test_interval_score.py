import numpy as np
import pytest
from scipy.stats import norm

from counterpath.metrics import interval_score


def test_by_hand():
    outcome = np.array([0.5, -0.2, 1.3])  # inside, 0.2 below, 0.3 above
    score = interval_score(outcome, np.zeros(3), np.ones(3), level=0.9)
    np.testing.assert_allclose(score, [1.0, 1.0 + 20 * 0.2, 1.0 + 20 * 0.3])


@pytest.mark.parametrize("level", [0.5, 0.95])
def test_true_quantiles_minimise_the_expected_score(level):
    # Equal-probability strata instead of random draws: the mean is the integral up to 1e-5.
    outcome = norm.ppf((np.arange(100_000) + 0.5) / 100_000)

    def expected(lower, upper):
        return interval_score(outcome, np.full(outcome.shape, lower), np.full(outcome.shape, upper), level).mean()

    true_lower, true_upper = norm.ppf((1 - level) / 2), norm.ppf((1 + level) / 2)
    best = expected(true_lower, true_upper)
    for shift in (-0.2, 0.2):
        assert expected(true_lower + shift, true_upper) > best + 1e-3
        assert expected(true_lower, true_upper + shift) > best + 1e-3
        assert expected(true_lower + shift, true_upper + shift) > best + 1e-3
    # Closed form of the minimum for a normal: 2 φ(z) / (α/2)
    assert best == pytest.approx(2 * norm.pdf(true_upper) / ((1 - level) / 2), rel=1e-3)
