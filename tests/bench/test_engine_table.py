"""The table of the engine: what is measured against the oracle is measured right, and the page says what is missing."""

import numpy as np
import pytest
from small_models import fit_small, small_bncde

import counterpath as cp
from bench import engine_table, model_uncertainty

pytestmark = pytest.mark.slow  # models are compiled and trained


@pytest.fixture(scope="module")
def fitted():
    """A small model that stands in for the oracle as well."""
    model, test = fit_small(small_bncde()), cp.simulate_tumor_growth(12, seed=3)
    today, plan = test.cohort.until(engine_table.CUT_DAYS), cp.Plan.observed(test.cohort)
    limit = model.predict(today, plan, horizons=engine_table.HORIZONS.tolist()).sample(engine_table.DRAWS)
    found = engine_table.scores(model, test, limit, scale=100.0)
    said = {"variant": "arms", "model": "BNCDE", "device": "a device", "commit": "0123456789abcdef"}
    return said | {"beside": 2, "fit_seconds": 12.0} | found


def test_a_model_that_is_the_oracle_has_ratios_of_one(fitted):
    for row in fitted["horizons"]:
        assert row["crps_over_oracle"] == pytest.approx(1.0)
        assert row["width_over_oracle_95%"] == pytest.approx(1.0)
        assert 0.0 <= row["coverage_95%"] <= row["coverage_99%"] <= 1.0


def test_error_and_spread_are_on_the_models_scale():
    model, test = fit_small(small_bncde()), cp.simulate_tumor_growth(12, seed=3)
    asked = (test.cohort.until(50.0), cp.Plan.none(), engine_table.HORIZONS)
    means, _ = model.components(*asked, 100, 0)
    variable = model.tabulation_.scaler.variables[0]
    shifted = np.broadcast_to(variable.inverse(means.mean(axis=0) + 0.25), (3, *means.shape[1:]))
    ratio = engine_table.error_over_spread(model, *asked, shifted)
    np.testing.assert_allclose(ratio, 0.25 / np.sqrt(means.var(axis=0, ddof=1).mean(axis=0)), rtol=1e-4)


def test_the_page_has_a_row_per_model_and_names_what_is_missing(fitted):
    text = engine_table.page_of([fitted, fitted | {"fit_seconds": 14.0}])
    assert "| BNCDE (2) | 32,000 | 1.00, 1.00, 1.00, 1.00, 1.00 |" in text
    assert "| at most 12 |" in text
    missing = text.split("Not measured yet: ")[1]
    assert "arms: BNCDE;" not in missing
    assert "randomised-continuous: DeepEnsemble" in missing


def test_fits_on_other_test_patients_have_a_row_of_their_own(fitted):
    text = engine_table.page_of([fitted, fitted | {"test_seed": 33_000}])
    assert "| BNCDE (1) | 32,000 |" in text
    assert "| BNCDE (1) | 33,000 |" in text


def test_seconds_are_of_fits_that_had_the_device_to_themselves(fitted):
    assert "| 20 |" in engine_table.page_of([fitted, fitted | {"fit_seconds": 20.0, "beside": 0}])


def test_situations_differ_where_they_say():
    (today, observed, _), (same, both, _), (rare, _, _) = model_uncertainty.situations().values()
    assert today is same
    assert both.resolve(today).rows == 10 * len(today) != observed.resolve(today).rows
    assert rare.records.rows < 0.6 * today.records.rows
