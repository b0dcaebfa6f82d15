import numpy as np
import pytest

import counterpath as cp
from counterpath.cohort import Scaler, fit_scaler


def table(rng, patients=20, visits=10):
    rows = patients * visits
    return {
        "patient": np.repeat(np.arange(patients), visits),
        "time": np.tile(np.arange(visits, dtype=float), patients),
        "y": np.exp(rng.normal(2.0, 0.7, rows)),
        "x": np.where(rng.random(rows) < 0.3, np.nan, rng.normal(40.0, 5.0, rows)),
        "rhythm": rng.choice(["a", "b", "c"], rows),
        "still": np.full(rows, 7.0),
    }


def doses(patients=20):
    return {
        "patient": np.arange(patients),
        "treatment": ["pill"] * patients,
        "time": np.ones(patients),
        "dose": np.arange(1.0, patients + 1),
    }


@pytest.fixture
def cohort(read):
    rng = np.random.default_rng(0)
    static = {"patient": np.arange(20), "age": rng.normal(60.0, 10.0, 20), "sex": ["f", "m"] * 10}
    return read(table(rng), doses(), static, bounds={"y": (0.0, None)})


def test_training_patients_have_mean_zero_and_std_one(cohort):
    scaler = fit_scaler(cohort)
    scaled = scaler.values(cohort.records.values)
    np.testing.assert_allclose(np.nanmean(scaled[:, :2], axis=0), 0.0, atol=1e-12)
    np.testing.assert_allclose(np.nanstd(scaled[:, :2], axis=0), 1.0, atol=1e-12)
    np.testing.assert_array_equal(np.isnan(scaled), np.isnan(cohort.records.values))
    static = scaler.static_values(cohort.static_values)
    assert static[:, 0].mean() == pytest.approx(0.0, abs=1e-12)
    assert static[:, 0].std() == pytest.approx(1.0, abs=1e-12)


def test_categories_pass_as_they_are_and_constants_do_not_explode(cohort):
    scaled = fit_scaler(cohort).values(cohort.records.values)
    np.testing.assert_array_equal(scaled[:, 2], cohort.records.values[:, 2])
    np.testing.assert_array_equal(scaled[:, 3], 0.0)


def test_nothing_of_test_patients_enters(read):
    first, second = table(np.random.default_rng(0)), table(np.random.default_rng(0))
    test_rows = first["patient"] >= 14
    for name, change in (("y", 1e6), ("x", -300.0), ("still", 3.0)):
        second[name] = np.where(test_rows, second[name] + change, second[name])
    other_doses = doses()
    other_doses["dose"] = np.where(other_doses["patient"] >= 14, 1e4, other_doses["dose"])
    one, other = read(first, doses()), read(second, other_doses)
    assert fit_scaler(one[:14]) == fit_scaler(other[:14])
    assert fit_scaler(one) != fit_scaler(other)


def test_the_way_back_respects_the_bounds(read):
    rng = np.random.default_rng(0)
    visits = table(rng) | {"y": rng.uniform(1.0, 9.0, 200)}
    for transform in ("standard", "log", "robust"):
        scale = fit_scaler(read(visits, bounds={"y": (0.0, 10.0)}), transform=transform).outcome("y")
        back = scale.inverse(np.linspace(-50.0, 50.0, 101))
        assert back.min() >= 0.0
        assert back.max() == 10.0
        assert (np.diff(back) >= 0).all()
        np.testing.assert_allclose(scale.inverse(scale.forward(visits["y"])), visits["y"], rtol=1e-12)


def test_the_outcomes_transform_is_found_or_asked_for(cohort):
    assert fit_scaler(cohort).outcome("y").transform.name == "log"
    assert fit_scaler(cohort, transform="standard").outcome("y").transform.name == "standard"
    assert {scale.transform.name for scale in fit_scaler(cohort, transform="robust").variables[1:]} == {"standard"}


def test_a_usual_dose_counts_as_one(cohort):
    scaler = fit_scaler(cohort[:5])
    assert scaler.doses == (3.0,)
    assert scaler.rates == (1.0,)


def test_a_scaler_survives_json(cohort):
    scaler = fit_scaler(cohort)
    assert Scaler.model_validate_json(scaler.model_dump_json()) == scaler


def test_gaps_stay_gaps(cohort):
    scale = fit_scaler(cohort).outcome("y")
    np.testing.assert_array_equal(np.isnan(scale.forward(np.array([1.0, np.nan]))), [False, True])


def test_log_on_a_cohort_with_zeros_names_the_remedy(read):
    visits = table(np.random.default_rng(0))
    visits["y"][:3] = 0.0
    with pytest.raises(cp.CohortError, match=r"and 3 are not. Use transform='robust' or 'standard'"):
        fit_scaler(read(visits), transform="log")


def test_an_outcome_that_training_patients_lack(read):
    visits = table(np.random.default_rng(0))
    visits["y"] = np.where(visits["patient"] < 10, np.nan, visits["y"])
    with pytest.raises(cp.CohortError, match="'y' was never recorded in the training patients"):
        fit_scaler(read(visits)[:10])


def test_there_is_no_scale_of_an_unknown_outcome(cohort):
    with pytest.raises(cp.CohortError, match="no variable 'z' among y, x"):
        fit_scaler(cohort).outcome("z")
