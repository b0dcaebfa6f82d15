import jax
import jax.numpy as jnp
import numpy as np
import pytest
from scipy.stats import norm, t

from counterpath.models import log_density
from counterpath.models.likelihood import STUDENT_DEGREES

REFERENCES = {
    "normal": lambda outcome, mean, std: norm.logpdf(outcome, mean, std),
    "student_t": lambda outcome, mean, std: t.logpdf(outcome, STUDENT_DEGREES, mean, std),
}


@pytest.mark.parametrize("kind", REFERENCES)
def test_it_is_the_density_that_its_name_says(kind):
    rng = np.random.default_rng(0)
    outcome, mean, std = 3 * rng.normal(size=(4, 5)), rng.normal(size=(4, 5)), rng.uniform(0.1, 2.0, size=(4, 5))
    found = log_density(kind, *(jnp.asarray(a, dtype=jnp.float32) for a in (outcome, mean, std[..., None])))
    np.testing.assert_allclose(found, REFERENCES[kind](outcome, mean, std), rtol=1e-4, atol=1e-4)


@pytest.mark.parametrize("kind", REFERENCES)
def test_each_side_of_the_centre_has_the_shape_of_its_own_bell(kind):
    """At as many widths from the centre both sides have fallen by as much, from the same height."""
    steps, sides = jnp.array([0.5, 1.0, 3.0]), jnp.array([0.2, 3.0])
    low, high = (log_density(kind, step * steps, jnp.zeros(3), sides) for step in (-0.2, 3.0))
    np.testing.assert_allclose(low, high, rtol=1e-5)
    symmetric = REFERENCES[kind](np.asarray(steps), 0.0, 1.0)
    np.testing.assert_allclose(high, symmetric - np.log(1.6), rtol=1e-5)  # the mean width is 1.6


@pytest.mark.parametrize("kind", REFERENCES)
def test_an_outlier_of_a_million_scales_leaves_value_and_gradient_finite(kind):
    one = jnp.ones(())
    value, gradient = jax.value_and_grad(lambda mean: log_density(kind, 1e6 * one, mean, one[None]))(0 * one)
    assert np.isfinite([value, gradient]).all()
    assert gradient > 0.0  # it pulls the mean towards the outcome


def test_students_t_forgives_an_outlier_where_the_normal_does_not():
    far, one = jnp.full((), 30.0), jnp.ones(())
    pull = {
        kind: jax.grad(lambda mean, kind=kind: log_density(kind, far, mean, one[None]))(0 * one) for kind in REFERENCES
    }
    assert pull["normal"] == pytest.approx(30.0)
    assert pull["student_t"] == pytest.approx((STUDENT_DEGREES + 1) * 30 / (STUDENT_DEGREES + 30**2), rel=1e-4)
