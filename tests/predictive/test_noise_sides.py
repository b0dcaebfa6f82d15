"""Noise with a width of its own on each side, against integrals of its density."""

import numpy as np
import pytest
from jax import numpy as jnp
from scipy.integrate import quad

from counterpath.models.likelihood import STUDENT_DEGREES, log_density
from counterpath.predictive import Noise

SIDES = np.array([0.3, 1.7])
KINDS = ("normal", "student_t")


def density(kind, value, sides=SIDES):
    return float(np.exp(log_density(kind, jnp.asarray(value), jnp.zeros(()), jnp.asarray(sides))))


def integral(kind, function, low=-60.0, high=400.0, sides=SIDES):
    return quad(
        lambda x: function(x) * density(kind, x, sides),
        low,
        high,
        points=(-1, 0, 3),
        limit=400,
        epsabs=1e-6,
        epsrel=1e-5,
    )[0]


@pytest.mark.parametrize("kind", KINDS)
def test_the_density_is_one_in_all_and_meets_at_the_centre(kind):
    assert integral(kind, lambda x: 1.0) == pytest.approx(1.0, abs=1e-4)
    assert density(kind, -1e-6) == pytest.approx(density(kind, 1e-6), rel=1e-4)


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("value", [-1.0, -0.2, 0.0, 0.5, 4.0])
def test_probabilities_are_integrals_of_the_density(kind, value):
    noise = Noise(kind, STUDENT_DEGREES)
    found = noise.below(np.array([value]), SIDES[None])[0]
    assert found == pytest.approx(integral(kind, lambda x: 1.0, high=value), abs=1e-4)
    if 0 < found < 1:
        assert noise.quantile(np.array([found]), SIDES[None])[0] == pytest.approx(value, abs=1e-9)


@pytest.mark.parametrize("kind", KINDS)
def test_moments_are_integrals_of_the_density(kind):
    (mean,), (std,) = Noise(kind, STUDENT_DEGREES).moments(SIDES[None])
    unit = np.sqrt(5 / 3) if kind == "student_t" else 1.0
    assert mean == pytest.approx(integral(kind, lambda x: x), rel=1e-4)
    assert std * unit == pytest.approx(np.sqrt(integral(kind, lambda x: (x - mean) ** 2)), rel=1e-3)


@pytest.mark.parametrize("kind", KINDS)
def test_two_sides_that_are_alike_are_one(kind):
    noise, values = Noise(kind), np.linspace(-3, 3, 7)
    one, two = np.full((7, 1), 0.8), np.full((7, 2), 0.8)
    np.testing.assert_array_equal(noise.below(values, one), noise.below(values, two))
    levels = np.linspace(0.01, 0.99, 7)
    np.testing.assert_array_equal(noise.quantile(levels, one), noise.quantile(levels, two))
    np.testing.assert_allclose(noise.moments(one), noise.moments(two))
    np.testing.assert_allclose(noise.moments(one)[0], 0.0, atol=1e-15)  # symmetric
    np.testing.assert_allclose(noise.moments(one)[1], 0.8)
