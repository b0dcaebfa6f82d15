"""What every estimator promises. A new one is added to MODELS, and all of this drives it."""

from copy import copy

import numpy as np
import polars as pl
import pytest

import counterpath as cp
from counterpath.estimators import BNCDE, TECDE, DeepEnsemble, LastValue, NotFittedError, Oracle
from counterpath.simulators.tumor_truth import TumorSettings

SMALL = {"hidden": 4, "field_widths": (8,), "embedding_widths": (), "head_widths": (), "batch_size": 32, "epochs": 15}

MODELS = {
    "LastValue": lambda: LastValue(max_horizon=5.0),
    "Oracle": lambda: Oracle(TumorSettings(), max_horizon=5.0, enough=50.0),
    "BNCDE": lambda: BNCDE(max_horizon=5.0, **SMALL),
    "TECDE": lambda: TECDE(max_horizon=5.0, **SMALL),
    "TECDE with noise": lambda: TECDE(max_horizon=5.0, outcome_noise=True, **SMALL),
    "DeepEnsemble": lambda: DeepEnsemble(TECDE(max_horizon=5.0, outcome_noise=True, **SMALL), members=2),
}


@pytest.fixture(scope="module")
def study():
    return cp.simulate_tumor_growth(200, seed=0).cohort.split((0.7, 0.3), seed=0)


QUICK = ("LastValue", "TECDE with noise")


@pytest.fixture(
    scope="module", params=[pytest.param(n, marks=[] if n in QUICK else [pytest.mark.slow]) for n in MODELS]
)
def model(request, study):
    made = MODELS[request.param]()
    assert made.fit(study[0]) is made
    return made


def test_draws_have_the_shape_that_was_asked_for_and_are_sane(model, study):
    today = study[1].until(50.0)
    prediction = model.predict(today, cp.Plan.none(), horizons=[1, 3, 5], draws=64)
    drawn = prediction.sample(64)
    assert drawn.shape == (64, len(today), 3)
    assert np.isfinite(drawn).all()
    assert drawn.min() >= 0.0  # a volume is not negative
    for values in (prediction.mean, prediction.median):
        assert np.isfinite(values).all()
        assert 0.0 <= values.min() <= values.max() < 20_000.0  # the tumour cannot outgrow its sphere of 14,137 cm³
    assert prediction.patients.equals(today.patients)


def test_the_same_seed_gives_the_same_draws(model, study):
    today = study[1].until(50.0)[:20]
    first, again, other = (
        model.predict(today, cp.Plan.none(), horizons=[2], draws=50, seed=seed).sample(50) for seed in (1, 1, 2)
    )
    np.testing.assert_array_equal(first, again)
    assert (first != other).any()


def test_nothing_after_now_enters(model, study):
    """The history alone decides: the same from a cohort that goes on and from one that ends now."""
    whole = study[1][:15]
    ended = whole.until(50.0)
    for seed in (0, 1):
        a = model.predict(whole.until(50.0), cp.Plan.none(), horizons=[1, 4], seed=seed).sample(100)
        b = model.predict(ended, cp.Plan.none(), horizons=[1, 4], seed=seed).sample(100)
        np.testing.assert_array_equal(a, b)


@pytest.mark.parametrize(("horizons", "message"), [([6.0], "max_horizon=5"), ([0.0], "above 0"), ([], "such as")])
def test_horizons_that_cannot_be_asked_for(model, study, horizons, message):
    with pytest.raises(cp.CohortError, match=message):
        model.predict(study[1].until(50.0), cp.Plan.none(), horizons=horizons)


def test_a_cohort_of_nobody_is_refused(model, study):
    with pytest.raises(cp.CohortError, match="no patient"):
        model.predict(study[1][:0].until(50.0), cp.Plan.none(), horizons=[1])


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
    tells_noise = not isinstance(model, TECDE) or model.training.outcome_noise  # else only what dropout does
    assert (0.7 if tells_noise else 0.0) < evaluation.scores[0].coverage[0.95].value <= 1.0


def test_evaluation_along_the_records_has_several_cuts_of_each_patient(model, study):
    evaluation = model.evaluate(study[1][:20], cuts=2, draws=50)
    assert evaluation.overall.patients == 20
    assert evaluation.points.elapsed.max() <= 5.0
    assert len(evaluation.points) > 60
    assert evaluation.verdict.startswith("95% intervals held ")


# Effects

CHEMOTHERAPY = cp.Plan.repeat("chemotherapy", every=1.0, times=5)


def ask(model, history, plan, versus):
    return model.effect(history, plan, versus=versus, horizons=[2, 5], draws=40)


def test_a_plan_has_no_effect_against_itself(model, study):
    assert (ask(model, study[1][:6].until(50.0), CHEMOTHERAPY, CHEMOTHERAPY).draws == 0.0).all()


def test_one_plan_against_another_is_minus_the_other_against_the_one(model, study):
    today = study[1][:6].until(50.0)
    ours = ask(model, today, CHEMOTHERAPY, cp.Plan.none())
    np.testing.assert_array_equal(ours.draws, -ask(model, today, cp.Plan.none(), CHEMOTHERAPY).draws)
    assert (ours.mean != 0.0).any() or isinstance(model, LastValue)


def test_the_mean_effect_is_the_difference_of_predicted_means(model, study):
    today = study[1][:6].until(50.0)
    effect = ask(model, today, CHEMOTHERAPY, cp.Plan.none())
    means = [model.predict(today, p, horizons=[2, 5], draws=40).mean for p in (CHEMOTHERAPY, cp.Plan.none())]
    largest = max(np.abs(mean).max() for mean in means)
    np.testing.assert_allclose(effect.mean, means[0] - means[1], atol=1e-12 * largest)  # rounding of their difference


def test_the_better_of_two_plans_is_the_one_with_the_lower_outcome(model, study):
    today = study[1][:6].until(50.0)
    plans = {"chemotherapy": CHEMOTHERAPY, "nothing": cp.Plan.none()}
    ranking = model.rank(today, plans, better="lower", horizons=[2, 5], draws=40)
    np.testing.assert_allclose(ranking.probability_best.sum(axis=0), 1.0)
    benefit = ask(model, today, CHEMOTHERAPY, cp.Plan.none()).probability_of_benefit(better="lower")
    np.testing.assert_allclose(ranking.probability_best[0], benefit)


def test_an_outcome_that_is_not_there_is_named(model, study):
    with pytest.raises(cp.CohortError, match="'volume' is no outcome"):
        model.effect(study[1][:6].until(50.0), CHEMOTHERAPY, versus=cp.Plan.none(), horizons=[1], outcome="volume")


# Recalibration


def test_levels_are_set_by_name_and_leave_draws_and_effects_alone(model, study):
    calibrated = copy(model).calibrate(study[0][:45], draws=100)
    today = study[1][:6].until(50.0)

    def ask_both(**options):
        asked = {"horizons": [1, 4], "draws": 40}
        return [one.predict(today, CHEMOTHERAPY, **asked, **options) for one in (calibrated, model)]

    ours, theirs = ask_both()
    np.testing.assert_array_equal(ours.sample(50), theirs.sample(50))
    np.testing.assert_array_equal(ours.mean, theirs.mean)
    assert (ours.interval(0.8)[0] != theirs.interval(0.8)[0]).any()
    off, _ = ask_both(recalibrated=False)
    np.testing.assert_array_equal(off.interval(0.8)[0], theirs.interval(0.8)[0])
    effects = [ask(one, today, CHEMOTHERAPY, cp.Plan.none()).draws for one in (calibrated, model)]
    np.testing.assert_array_equal(*effects)
    with pytest.raises(NotFittedError, match="calibrate"):
        model.predict(today, CHEMOTHERAPY, horizons=[1], recalibrated=True)
