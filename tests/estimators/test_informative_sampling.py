"""Visits that follow size: their rate is learned as it is, and each outcome counts by the inverse."""

import jax
import numpy as np
import pytest
from scipy.stats import spearmanr
from small_models import fit_small, small_bncde, small_study, small_tecde

import counterpath as cp
from counterpath.estimators.joint_fit import settings_of_run
from counterpath.training import tabulate

pytestmark = pytest.mark.slow  # networks are trained

GAMMA, DAY = 2.0, 40.0
HORIZONS = [1.0, 3.0, 5.0]


OPTIONS = {"hidden": 8, "field_widths": (16,), "head_widths": (16,), "batch_size": 32, "cuts_per_step": 8, "epochs": 10}
# Ten epochs of a state that need not hold what a linear response holds tell less about visits.
OPTIONS |= {"linear_response": False}


def learned_and_true(model, **world):
    """On patients whom the model has not seen; of all of them, seen on those days or not."""
    learn, other = (
        cp.simulate_tumor_growth(n, seed=seed, observation_gamma=GAMMA, **world) for n, seed in ((3_000, 1), (200, 2))
    )
    model.fit(learn.cohort, other.cohort[:50], progress=False)
    plan = cp.Plan.observed(other.cohort)
    frame = model.observation_intensity(other.cohort.until(DAY), plan, horizons=HORIZONS, draws=8)
    found = frame["observation_intensity"].to_numpy().reshape(-1, len(HORIZONS))
    steps = other.truth.settings.step_of(DAY + np.array(HORIZONS))
    return found, other.truth.visit_chance[:, steps]


def assert_recovered(found, truth):
    assert spearmanr(found.ravel(), truth.ravel()).statistic > 0.9
    assert found.mean() == pytest.approx(truth.mean(), rel=0.05)
    assert np.sqrt(np.mean((found - truth) ** 2)) < 0.5 * truth.std()


def test_the_chance_of_a_visit_is_recovered_on_days():
    assert_recovered(*learned_and_true(small_tecde(informative_sampling=True, **OPTIONS)))


def test_the_chance_is_recovered_where_each_patient_is_cut_once_before_the_last_outcome():
    """By the published configuration, smaller and quicker: after that cut alone, everybody is seen."""
    quicker = {"field_widths": (16,), "head_widths": (16,), "cells": 32, "draws": 1, "epochs": 25, "patience": None}
    quicker |= {"learning_rate": 5e-3, "readout_learning_rate": 5e-3, "schedule": "linear"}
    model = cp.TECDE(1.0, **(cp.TECDE.paper(1.0).parameters | {"informative_sampling": True} | quicker))
    learn, other = (
        cp.simulate_tumor_growth(n, seed=seed, observation_gamma=GAMMA) for n, seed in ((3_000, 1), (300, 2))
    )
    model.fit(learn.cohort.until(55.0), other.cohort[:50].until(55.0), progress=False)
    frame = model.observation_intensity(
        other.cohort.until(54.0), cp.Plan.observed(other.cohort), horizons=[1.0], draws=8
    )
    found = frame["observation_intensity"].to_numpy()
    truth = other.truth.visit_chance[:, other.truth.settings.step_of(np.array([55.0]))][:, 0]
    # So small a state knows sizes less well than those of the other tests.
    assert spearmanr(found, truth).statistic > 0.3
    assert found.mean() == pytest.approx(truth.mean(), rel=0.1)
    assert np.sqrt(np.mean((found - truth) ** 2)) < truth.std()


@pytest.mark.parametrize("interpolation", ["hermite", "hold"])
def test_a_cut_for_visits_leaves_as_many_outcomes_to_each_step(interpolation):
    """Whether it has a window of its own or lies in the same one."""
    train = cp.simulate_tumor_growth(200, seed=0).cohort.until(55.0)
    found = []
    for sampling in (False, True):
        asked = {"informative_sampling": sampling, "interpolation": interpolation}
        model = cp.TECDE(1.0, **(cp.TECDE.paper(1.0).parameters | asked))
        tabulation = model.new_tabulation(train)
        rng, interval = np.random.default_rng(0), 1.0 if sampling else None
        examples = tabulate(train, tabulation, cuts="last", rng=rng, interval=interval)
        settings = settings_of_run(model, examples, tabulation)
        steps = settings.steps_per_epoch(examples.patients)
        seen = settings.patients_per_step(examples.patients) * settings.cuts_per_step
        candidates = float(examples.targets.cuts.sum())
        found.append((float(examples.outcomes), steps, seen / candidates))
    assert found[0] == found[1]


@pytest.mark.long
def test_the_rate_of_visits_is_recovered_in_continuous_time():
    """There it is −ln(1 − ζ) per day."""
    found, chance = learned_and_true(small_bncde(informative_sampling=True, **OPTIONS), continuous=True)
    assert_recovered(found, -np.log1p(-chance))


@pytest.fixture(scope="module")
def weighted():
    return fit_small(small_tecde(epochs=3, informative_sampling=True))


def test_outcomes_count_otherwise_so_another_model_is_learned(weighted):
    plain = fit_small(small_tecde(epochs=3))
    today = small_study()[1].until(40.0)
    one, other = (m.components(today, cp.Plan.none(), np.array([2.0]), 4, 0)[0] for m in (weighted, plain))
    assert np.abs(one - other).max() > 1e-4
    assert plain.networks_[0].intensity_head is None


def test_a_saved_model_still_knows_how_often_patients_are_seen(weighted, tmp_path):
    weighted.save(tmp_path / "model.safetensors")
    today = small_study()[1].until(40.0)
    one, other = (
        model.observation_intensity(today, cp.Plan.none(), horizons=[1.0, 2.5], draws=4)
        for model in (weighted, cp.load(tmp_path / "model.safetensors"))
    )
    assert one.equals(other)
    assert one.columns == ["patient", "elapsed", "observation_intensity"]
    assert one.height == 2 * len(today)


def test_a_model_that_has_not_learned_it_says_so():
    with pytest.raises(cp.CohortError, match=r"This BNCDE .* informative_sampling=True"):
        small_bncde().observation_intensity(small_study()[1], cp.Plan.none(), horizons=[1.0])


def test_other_numbers_of_patients_and_horizons_compile_nothing(weighted, caplog):
    """And what is added to reach a usual shape changes nothing."""

    def asked(patients, horizons):
        caplog.clear()
        with jax.log_compiles():
            some = small_study()[1][:patients].until(40.0)
            frame = weighted.observation_intensity(some, cp.Plan.none(), horizons=horizons, draws=4)
        found = frame["observation_intensity"].to_numpy().reshape(patients, len(horizons))
        return found, sum("Compiling" in text for text in caplog.messages)

    six, first = asked(6, [1.0, 2.0, 2.5, 3.0])
    five, again = asked(5, [1.0, 2.0, 2.5])
    assert (first > 0, again) == (True, 0)
    np.testing.assert_allclose(five, six[:5, :3], rtol=1e-5)
