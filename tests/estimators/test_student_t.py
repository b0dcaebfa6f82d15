"""`likelihood="student_t"` from `fit` to the draws."""

import numpy as np
import pytest
from scipy.stats import kstest, t
from small_models import fit_small, small_bncde, small_study

import counterpath as cp
from counterpath.models.likelihood import STUDENT_DEGREES

pytestmark = pytest.mark.slow  # models are compiled and trained


@pytest.fixture(scope="module")
def fitted():
    return fit_small(small_bncde(likelihood="student_t", epochs=10, skewed=False))


def test_it_learns(fitted):
    scores = fitted.history_["validation"].drop_nulls()
    assert scores.max() > scores[0] + 0.1


def test_draws_are_students_about_each_component(fitted):
    """Taken back to the model's scale and standardised, they are Student's, with tails that are not normal."""
    today, horizons = small_study()[1].until(50.0), np.array([1.0, 5.0])
    drawn = fitted.predict(today, cp.Plan.none(), horizons=horizons.tolist()).sample(4_000)
    mean, std = fitted.components(today, cp.Plan.none(), horizons, 100, 0)
    which = np.arange(len(drawn)) % 100
    variable = fitted.tabulation_.scaler.variables[0]
    unit = (variable.forward(drawn) - mean[which]) / std[which]
    inside = drawn.min(axis=0) > variable.lower  # where no draw was held at the bound
    assert inside.any()
    for column in unit[:, inside].T:
        assert kstest(column, t(STUDENT_DEGREES).cdf).pvalue > 1e-3
        assert np.mean(np.abs(column) > 3.0) == pytest.approx(2 * t(STUDENT_DEGREES).sf(3.0), rel=0.15)
