"""Who knows the equations of semi-synthetic outcomes is right, as sure as noise allows, and blind to what is hidden."""

from dataclasses import replace

import numpy as np
import pytest
from small_covariates import covariates

import counterpath as cp
from counterpath.estimators.semi_synthetic_oracle import SemiSyntheticOracle

DRAWS = 2_000


@pytest.fixture(scope="module")
def study():
    return cp.simulate_semi_synthetic(covariates(patients=300), seed=3)


def drawn(study, at, plan=None, truth=None):
    oracle = SemiSyntheticOracle(study.truth if truth is None else truth).fit(study.cohort)
    plan = cp.Plan.observed(study.cohort) if plan is None else plan
    asked = {"horizons": [1.0], "draws": DRAWS, "progress": False}
    return oracle.predict(study.cohort.until(at), plan, **asked).sample(DRAWS)[:, :, 0]


@pytest.mark.parametrize("at", [6, 20])
def test_intervals_hold_what_they_say(study, at):
    lower, upper = np.quantile(drawn(study, float(at)), [0.025, 0.975], axis=0)
    outcome = study.truth.outcomes_of_steps[:, at + 1]
    held = np.mean((outcome >= lower) & (outcome <= upper))
    assert abs(held - 0.95) < 3 * np.sqrt(0.95 * 0.05 / 300)


def test_after_a_recorded_outcome_the_noise_of_one_step_is_left(study):
    at, truth = 12, study.truth
    seen = truth.observed[:, at]
    now, gain, given = (values[seen, at] for values in (truth.outcomes_of_steps, truth.gain, truth.given))
    own = drawn(study, float(at))[:, seen]
    expected = -gain * now + np.cos(now * given)
    assert np.mean(np.abs(own.mean(axis=0) - expected) < 3 * 0.01 / np.sqrt(DRAWS)) > 0.98
    np.testing.assert_allclose(own.std(axis=0), 0.01, rtol=0.1)
    assert drawn(study, float(at))[:, ~seen].std(axis=0).mean() > 0.0105


def test_what_was_not_recorded_is_not_known(study):
    truth = study.truth
    hidden = np.where(truth.observed, truth.outcomes_of_steps, 1e6)
    blind = replace(truth, outcomes_of_steps=hidden, noise=truth.noise * np.nan, potential=truth.potential * np.nan)
    np.testing.assert_array_equal(drawn(study, 15.0), drawn(study, 15.0, truth=blind))


def test_the_plan_decides_what_is_given_now(study):
    at, truth = 15, study.truth
    for plan, choice in ((cp.Plan.dose("treatment"), 1), (cp.Plan.none(), 0)):
        error = drawn(study, float(at), plan).mean(axis=0) - truth.potential[:, at, choice]
        assert np.sqrt(np.mean(error**2)) < 0.015


def test_it_looks_one_step_ahead(study):
    oracle = SemiSyntheticOracle(study.truth).fit(study.cohort)
    with pytest.raises(cp.CohortError, match="one step ahead"):
        oracle.predict(study.cohort.until(10.0), cp.Plan.none(), horizons=[0.5], draws=5, progress=False)
