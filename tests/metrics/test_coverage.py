import numpy as np
import pytest

from counterpath.metrics import covered


def test_both_ends_belong_to_the_interval():
    outcome = np.array([-0.1, 0.0, 0.5, 1.0, 1.1])
    inside = covered(outcome, np.zeros(5), np.ones(5))
    np.testing.assert_array_equal(inside, [False, True, True, True, False])
    assert inside.dtype == bool


def test_an_interval_may_be_open_on_a_side():
    outcome = np.array([-1e9, 2.0])
    inside = covered(outcome, np.full(2, -np.inf), np.array([0.0, np.inf]))
    np.testing.assert_array_equal(inside, [True, True])


def test_true_quantiles_cover_as_often_as_they_say():
    outcome = np.random.default_rng(0).normal(size=20_000)
    ends = np.full(20_000, 1.959964)
    share = covered(outcome, -ends, ends).mean()
    standard_error = np.sqrt(0.95 * 0.05 / 20_000)
    assert abs(share - 0.95) < 3 * standard_error


def test_crossed_and_missing_ends_are_refused():
    with pytest.raises(ValueError, match=r"end before they start.*swapped"):
        covered(np.zeros(2), np.array([0.0, 1.0]), np.array([1.0, 0.0]))
    with pytest.raises(ValueError, match="`lower` has 1 missing"):
        covered(np.zeros(2), np.array([0.0, np.nan]), np.ones(2))
