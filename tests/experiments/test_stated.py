"""A figure has as many digits as its spread leaves meaning to."""

import pytest

from counterpath.experiments.stated import stated


@pytest.mark.parametrize(
    ("values", "text"),
    [
        ([1.02, 1.03, 1.022], "1.024 ± 0.005"),
        ([0.0379, 0.0278, 0.048], "0.038 ± 0.010"),  # a spread that begins with one has two digits
        ([157.0, 160.0, 158.0], "158.3 ± 1.5"),
        ([1570.0, 1600.0, 1580.0], "1583 ± 15"),
        ([1.0, 1.0], "1.00 ± 0.00"),
        ([0.955], "0.955"),
        ([12.345], "12.3"),
        ([0.0], "0.0"),
        ([7.7e-8, 7.8e-8, 7.9e-8], "(7.80 ± 0.10)·10⁻⁸"),
        ([0.000137223], "1.37·10⁻⁴"),
        ([-0.2, -0.5], "-0.3 ± 0.2"),
    ],
)
def test_digits_follow_the_spread(values, text):
    assert stated(values) == text


def test_shares_are_percentages_with_one_decimal():
    assert stated([0.95, 0.96], percent=True) == "95.5 ± 0.7%"
    assert stated([0.956], percent=True) == "95.6%"
