"""What every estimator promises. A new one is added to MODELS, and all of this drives it."""

import numpy as np
import polars as pl
import pytest

import counterpath as cp
from counterpath.estimators import BNCDE, TECDE, DeepEnsemble, LastValue, NotFittedError, Oracle
from counterpath.simulators.tumor_truth import TumorSettings

SMALL = {"hidden": 4, "field_widths": (8,), "embedding_widths": (), "head_widths": (), "batch_size": 32, "epochs": 15}

MODELS = {
    "LastValue": lambda: LastValue(max_horizon=5.0),
    "Oracle": lambda: Oracle(TumorSettings(), max_horizon=5.0),
    "BNCDE": lambda: BNCDE(max_horizon=5.0, **SMALL),
    "TECDE with noise": lambda: TECDE(max_horizon=5.0, outcome_noise=True, **SMALL),
    "DeepEnsemble": lambda: DeepEnsemble(TECDE(max_horizon=5.0, outcome_noise=True, **SMALL), members=2),
}


@pytest.fixture(scope="module")
def study():
    return cp.simulate_tumor_growth(200, seed=0).cohort.split((0.7, 0.3), seed=0)


@pytest.fixture(scope="module", params=MODELS)
def model(request, study):
    return MODELS[request.param]().fit(study[0])


def test_fit_returns_the_model(study):
    for make in MODELS.values():
        made = make()
        assert made.fit(study[0]) is made


def test_draws_have_the_shape_that_was_asked_for_and_are_sane(model, study):
    today = study[1].until(50.0)
    prediction = model.predict(today, cp.Plan.none(), horizons=[1, 3, 5], draws=64)
    assert prediction.draws.shape == (64, len(today), 3)
    assert np.isfinite(prediction.draws).all()
    assert prediction.draws.min() >= 0.0  # a volume is not negative
    assert prediction.patients.equals(today.patients)


def test_the_same_seed_gives_the_same_draws(model, study):
    today = study[1].until(50.0)[:20]
    first, again, other = (
        model.predict(today, cp.Plan.none(), horizons=[2], draws=50, seed=seed).draws for seed in (1, 1, 2)
    )
    np.testing.assert_array_equal(first, again)
    assert (first != other).any()


def test_nothing_after_now_enters(model, study):
    """The history alone decides: the same from a cohort that goes on and from one that ends now."""
    whole = study[1][:15]
    ended = whole.until(50.0)
    for seed in (0, 1):
        a = model.predict(whole.until(50.0), cp.Plan.none(), horizons=[1, 4], seed=seed).draws
        b = model.predict(ended, cp.Plan.none(), horizons=[1, 4], seed=seed).draws
        np.testing.assert_array_equal(a, b)


@pytest.mark.parametrize(("horizons", "message"), [([6.0], "max_horizon=5"), ([0.0], "above 0"), ([], "such as")])
def test_horizons_that_cannot_be_asked_for(model, study, horizons, message):
    with pytest.raises(cp.CohortError, match=message):
        model.predict(study[1].until(50.0), cp.Plan.none(), horizons=horizons)


def test_an_unfitted_model_says_so(study):
    for make in MODELS.values():
        with pytest.raises(NotFittedError, match="Call fit"):
            make().predict(study[1].until(50.0), cp.Plan.none(), horizons=[1])


def test_a_model_of_another_cohort_is_refused(model):
    with pytest.raises(cp.CohortError, match=r"fitted to tumor_volume in days; this cohort has pressure in hours"):
        model.predict(cp.load_example_ward().until(12.0), cp.Plan.none(), horizons=[1])


def test_an_unknown_treatment_in_the_plan_is_refused_by_models_that_use_it(study):
    """LastValue ignores plans by design; the plan itself still knows its cohort."""
    with pytest.raises(cp.PlanError, match="chemotherapy"):
        cp.Plan.dose("chemo").resolve(study[1].until(50.0))


def test_evaluation_uses_what_was_recorded(model, study):
    evaluation = model.evaluate(study[1], at=50.0, horizons=[1, 5], draws=200)
    records = study[1].observations.filter(pl.col("time") == 51.0)
    assert evaluation.scores[0].patients == records.height
    assert 0.7 < evaluation.scores[0].coverage[0.95].value <= 1.0
    assert evaluation.to_frame()["model"].unique().to_list() == [type(model).__name__]
