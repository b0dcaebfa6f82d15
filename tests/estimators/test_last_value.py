import numpy as np
import polars as pl
import pytest

import counterpath as cp
from counterpath.estimators import LastValue


def cohort_of(patients, times, values):
    frame = pl.DataFrame({"patient": patients, "time": times, "y": values})
    return cp.Cohort.from_tables(frame, outcome="y", time_unit="day", time_zero="as given")


@pytest.fixture(scope="module")
def walks():
    """Random walks with unit steps: the residual after k days has variance k."""
    rng = np.random.default_rng(0)
    walks = np.cumsum(rng.normal(size=(600, 12)), axis=1)
    days = np.tile(np.arange(12.0), 600)
    return cohort_of(np.repeat(np.arange(600), 12), days, walks.ravel())


def test_the_median_is_the_last_value_and_the_spread_grows_with_time(walks):
    model = LastValue(5.0, transform="standard").fit(walks)
    history = cohort_of([1, 1], [0.0, 3.0], [2.0, 7.0]).until(4.0)
    prediction = model.predict(history, cp.Plan.none(), horizons=[1, 4], draws=2_000)
    np.testing.assert_allclose(prediction.median[0], 7.0, atol=0.3)
    # last seen a day ago: the residuals are those after 2 and 5 days
    np.testing.assert_allclose(prediction.sample(2_000).std(axis=0)[0], np.sqrt([2.0, 5.0]), rtol=0.1)  # few residuals


def test_its_intervals_hold_on_new_walks(walks):
    train, test = walks.split((0.5, 0.5), seed=1)
    evaluation = LastValue(5.0, transform="standard").fit(train).evaluate(test, at=6.0, horizons=[1, 5])
    for score in evaluation.scores:
        assert abs(score.coverage[0.95].value - 0.95) < 3 * score.coverage[0.95].standard_error + 0.01


def test_a_patient_without_an_outcome_gets_the_training_distribution(walks):
    frame = pl.DataFrame({"patient": [1], "time": [0.0], "y": [None], "x": [1.0]}, schema_overrides={"y": pl.Float64})
    blank = cp.Cohort.from_tables(frame, outcome="y", time_unit="day")
    model = LastValue(5.0, transform="standard").fit(walks)
    draws = model.predict(blank, cp.Plan.none(), horizons=[1], draws=500).sample(500)[:, 0, 0]
    values = walks.records.values[:, 0]
    assert draws.mean() == pytest.approx(values.mean(), abs=0.2)
    assert draws.std() == pytest.approx(values.std(), rel=0.05)


def test_patients_with_one_outcome_each_teach_nothing():
    with pytest.raises(cp.CohortError, match="two outcomes"):
        LastValue(5.0).fit(cohort_of([1, 2], [0.0, 0.0], [1.0, 2.0]))


def test_carry_forward_error_on_the_papers_arms():
    """An independent estimate is 0.0015 at one day, in standardised volume; a few large tumours make most of it."""
    train = cp.simulate_tumor_growth(2_000, seed=1, assignment="arms")
    test = cp.simulate_tumor_growth(6_000, seed=2, assignment="arms")
    std = float(train.cohort.records.values[:, 0].std())
    history = test.cohort.until(54.0)
    last = history.records.values[history.records.offsets[1:] - 1, 0]
    errors = ((last - test.truth.volumes_cm3[:, 55]) / std) ** 2
    assert abs(errors.mean() - 0.0015) < 3 * errors.std() / np.sqrt(len(errors))
