"""Simulated outcomes on given covariates: the equations hold, other futures are known, and only records are seen."""

import numpy as np
import polars as pl
import pytest
from small_covariates import covariates

import counterpath as cp

WEIGHTS = 1 / np.arange(1, 6)


@pytest.fixture(scope="module")
def cohort():
    return covariates()


@pytest.fixture(scope="module")
def study(cohort):
    return cp.simulate_semi_synthetic(cohort, seed=3)


def test_outcomes_follow_the_equation(study):
    truth = study.truth
    now, following = truth.outcomes_of_steps[:, 5:-1], truth.outcomes_of_steps[:, 6:]
    expected = -truth.gain[:, 5:-1] * now + np.cos(now * truth.given[:, 5:-1]) + truth.noise[:, 5:-1]
    np.testing.assert_allclose(following, expected, rtol=1e-12)
    assert np.nanstd(following - expected + truth.noise[:, 5:-1]) == pytest.approx(0.01, rel=0.1)
    np.testing.assert_array_equal(truth.outcomes_of_steps[:, 0], 1.0)


def test_the_gain_is_the_weighted_pull_of_the_last_five_hours(cohort):
    """Computed anew from the records of one patient."""
    literal = cp.simulate_semi_synthetic(cohort, seed=3, gain="literal", merge_within=0.0).truth
    beta = np.random.default_rng(3).spawn(4)[0].standard_normal(5)
    records = cohort.observations.filter(pl.col("patient") == 7)
    pulls = []
    for hour in range(6, 11):
        pull = 0.0
        for name, own in zip(("rate", "cells"), beta[:2], strict=True):
            every = cohort.observations[name].drop_nulls().to_numpy()
            so_far = records.filter((pl.col("time") <= hour) & pl.col(name).is_not_null())[name]
            z = (so_far[-1] - every.mean()) / every.std() if len(so_far) else 0.0
            pull += own * z
        pulls.append(np.tanh(0.5 * pull))
    assert literal.gain[7, 10] == pytest.approx(np.dot(WEIGHTS, pulls[::-1]))


def test_bounded_gains_keep_outcomes_bounded(cohort):
    bounded = cp.simulate_semi_synthetic(cohort, seed=3).truth
    literal = cp.simulate_semi_synthetic(cohort, seed=3, gain="literal").truth
    np.testing.assert_allclose(bounded.gain, literal.gain * 0.9 / WEIGHTS.sum())
    assert np.nanmax(np.abs(bounded.outcomes_of_steps)) < 1.1 / (1 - 0.9)
    assert bounded.exploded == 0.0
    constant = covariates(hours=50).observations.with_columns(rate=pl.col("patient").cast(pl.Float64), cells=2.0)
    smooth = cp.Cohort.from_tables(constant, outcome="pressure", time_unit="hour")
    assert any(cp.simulate_semi_synthetic(smooth, seed=s, gain="literal").truth.exploded > 0 for s in range(5))


def test_names_that_cannot_be_told_apart_are_refused(cohort):
    with pytest.raises(cp.CohortError, match=r"A covariate is named twice among .rate., .rate.\."):
        cp.simulate_semi_synthetic(cohort, covariates=["rate", "rate"])
    renamed = cohort.observations.rename({"rate": "outcome"})
    named_alike = cp.Cohort.from_tables(renamed, outcome="pressure", time_unit="hour")
    with pytest.raises(cp.CohortError, match="A covariate is called 'outcome', as what is simulated is"):
        cp.simulate_semi_synthetic(named_alike)


def test_both_choices_are_kept_and_the_chosen_one_happened(study):
    truth = study.truth
    rows, steps = np.nonzero(~np.isnan(truth.gain))
    chosen = truth.potential[rows, steps, truth.given[rows, steps].astype(int)]
    np.testing.assert_array_equal(chosen, truth.outcomes_of_steps[rows, steps + 1])
    other = truth.potential[rows, steps, 1 - truth.given[rows, steps].astype(int)]
    assert np.mean(np.abs(other - chosen) > 1e-3) > 0.8


def test_futures_under_a_plan_agree_with_what_happened_and_with_the_other_choice(study):
    history = study.cohort.until(20.0)
    np.testing.assert_allclose(
        study.truth.outcomes(history, cp.Plan.observed(study.cohort), [1.0, 5.0]),
        study.truth.outcomes_of_steps[:, [21, 25]],
    )
    once = cp.Plan.dose("treatment", at=0.0)
    np.testing.assert_allclose(study.truth.outcomes(history, once, [1.0])[:, 0], study.truth.potential[:, 20, 1])
    np.testing.assert_allclose(
        study.truth.outcomes(history[5:8], cp.Plan.none(), [1.0])[:, 0], study.truth.potential[5:8, 20, 0]
    )
    assert np.isnan(study.truth.outcomes(study.cohort.until(38.0), cp.Plan.none(), [5.0])).all()


def test_only_records_are_seen(cohort):
    """Covariates as they were, at their own times; outcomes where they were observed; nothing of the truth."""
    study = cp.simulate_semi_synthetic(cohort, seed=3, merge_within=0.0)
    known = study.cohort
    assert [v.name for v in known.schema.variables] == ["outcome", "rate", "cells", "sodium"]
    assert [v.name for v in known.schema.static] == ["sex", "age"]
    before = cohort.observations.filter(pl.col("time") <= 40.0).select("patient", "time", "rate")
    after = known.observations.select("patient", "time", "rate")
    assert after.drop_nulls("rate").equals(before.drop_nulls("rate"))
    seen = known.observations.drop_nulls("outcome")
    np.testing.assert_array_equal(seen["time"], np.nonzero(study.truth.observed)[1])
    np.testing.assert_array_equal(seen["outcome"], study.truth.outcomes_of_steps[study.truth.observed])
    assert 0.4 < study.truth.observed.mean() < 0.9


def test_treatment_follows_what_came_before(study):
    truth = study.truth
    decided = ~np.isnan(truth.chance)
    previous = np.roll(truth.outcomes_of_steps, 1, axis=1)[decided]
    assert np.corrcoef(np.tanh(previous), truth.chance[decided])[0, 1] > 0.3
    assert not truth.given[~decided].any()
    assert not decided[:, :5].any()
    assert abs(truth.given[decided].mean() - truth.chance[decided].mean()) < 0.05


def test_times_that_miss_a_step_by_rounding_are_moved_onto_it(cohort):
    shifted = cohort.observations.with_columns(
        pl.when(pl.col("time") == 0).then(0.1 + 0.2 - 0.3).otherwise("time").alias("time")
    )
    moved = cp.Cohort.from_tables(
        shifted, None, cohort.static, outcome="pressure", time_unit="hour", time_zero="as given"
    )
    assert (moved.records.times[moved.records.offsets[:-1]] > 0).all()
    study = cp.simulate_semi_synthetic(moved, seed=3)
    np.testing.assert_array_equal(study.cohort.records.times[study.cohort.records.offsets[:-1]], 0.0)


def test_another_noise_keeps_coefficients_and_random_numbers(cohort, study):
    loud = cp.simulate_semi_synthetic(cohort, seed=3, noise_std=0.1).truth
    np.testing.assert_allclose(loud.noise, 10 * study.truth.noise)
    np.testing.assert_array_equal(np.isnan(loud.gain), np.isnan(study.truth.gain))
    np.testing.assert_allclose(loud.gain, study.truth.gain)


def test_the_same_seed_gives_the_same_study(cohort, study):
    assert cp.simulate_semi_synthetic(cohort, seed=3).cohort.equals(study.cohort)
    assert not cp.simulate_semi_synthetic(cohort, seed=4).cohort.equals(study.cohort)


def test_short_records_are_left_out_and_long_ones_cut(cohort):
    cut = cp.simulate_semi_synthetic(cohort, longest=30, seed=0)
    np.testing.assert_array_equal(cut.cohort.follow_up_end, 29.0)
    assert cut.cohort.records.times.max() <= 29.0
    with pytest.raises(cp.CohortError, match="Nobody has covariates over 45 steps; the longest are 41"):
        cp.simulate_semi_synthetic(cohort, shortest=45)


@pytest.mark.parametrize(
    ("options", "said"),
    [
        (
            {"covariates": ["rate", "sex"]},
            "There is no covariate 'sex' with numbers. There is 'rate', 'cells', 'sodium'",
        ),
        ({"covariates": ["rate"]}, "follows 2 covariates over time, and there is 1"),
        ({"shortest": 4}, "shortest=4 must be more than 6"),
    ],
)
def test_what_cannot_be_simulated_says_why(cohort, options, said):
    with pytest.raises(cp.CohortError, match=said):
        cp.simulate_semi_synthetic(cohort, **options)


def beside_steps(cohort, miss):
    """The same with the first record of each patient after hour 10 so much before or after a whole hour."""
    times = cohort.observations["time"].to_numpy().copy()
    whose = cohort.observations["patient"].to_numpy()
    rows = [np.flatnonzero((whose == patient) & (times > 10))[0] for patient in np.unique(whose)]
    times[rows] = np.rint(times[rows]) + miss * np.where(np.arange(len(rows)) % 2, 1, -1)
    moved = cohort.observations.with_columns(time=times).sort("patient", "time")
    options = {"outcome": "pressure", "time_unit": "hour", "time_zero": "as given"}
    return cp.Cohort.from_tables(moved, None, cohort.static, **options)


def test_no_outcome_has_a_record_of_covariates_almost_beside_it(cohort):
    """Such a record is moved onto the step: cubic slopes between two records a minute apart would explode."""
    near = beside_steps(cohort, 0.015)
    assert np.sum(np.abs(near.records.times % 1 - 0.5) > 0.48) >= len(near)
    known = cp.simulate_semi_synthetic(near, seed=3).cohort
    miss = np.abs(known.records.times - np.rint(known.records.times))
    assert np.all((miss == 0) | (miss > 0.02))
    gaps = np.diff(known.records.times)[np.diff(known.records.patient_of_row) == 0]
    assert gaps.min() > 0
    means = known.observations.select(pl.col("rate", "cells", "sodium").mean())
    before = near.observations.filter(pl.col("time") <= 40.0).select(pl.col("rate", "cells", "sodium").mean())
    np.testing.assert_allclose(means.row(0), before.row(0), atol=0.02)  # values came along


def test_how_near_is_near_can_be_said(cohort):
    near = beside_steps(cohort, 0.015)
    known = cp.simulate_semi_synthetic(near, seed=3, merge_within=0.0).cohort
    miss = np.abs(known.records.times - np.rint(known.records.times))
    assert np.any((miss > 0) & (miss < 0.02))
    with pytest.raises(cp.CohortError, match=r"merge_within=0\.5 is no part of a step"):
        cp.simulate_semi_synthetic(cohort, merge_within=0.5)
