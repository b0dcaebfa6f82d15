import numpy as np
import pytest

from counterpath.metrics import interval_width


def test_width_is_upper_minus_lower():
    width = interval_width(np.array([0.0, -1.0, 3.0]), np.array([2.0, 0.5, 3.0]))
    np.testing.assert_array_equal(width, [2.0, 1.5, 0.0])


def test_crossed_ends_are_refused_with_the_place():
    with pytest.raises(ValueError, match=r"first at index \(1,\): lower 1, upper 0.5.*swapped"):
        interval_width(np.array([0.0, 1.0]), np.array([1.0, 0.5]))
