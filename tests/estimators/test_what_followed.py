import numpy as np
import polars as pl

import counterpath as cp
from counterpath.estimators.what_followed import histories_along, later_outcomes, recorded_outcomes

VISITS = pl.DataFrame(
    {
        "patient": ["a"] * 6 + ["b"] * 3 + ["c"],
        "time": [0.0, 1.0, 2.0, 4.0, 8.0, 30.0, 0.0, 2.5, 3.5, 0.0],
        "y": [1.0, 2.0, None, 4.0, 5.0, 6.0, 7.0, 8.0, 9.0, 10.0],
        "x": [0.0] * 10,
    }
)
COHORT = cp.Cohort.from_frame(
    VISITS, patient="patient", time="time", outcome="y", covariates=["x"], time_unit="day"
)  # fmt: skip


def test_cuts_are_records_that_an_outcome_follows_in_time():
    """a: 0, 1, 2 and 4 (30 comes too late after 8); b: 0 and 2.5; c: never."""
    found = list(histories_along(COHORT, 5.0, cuts=10))
    ends = [dict(zip(history.patients, history.history_end, strict=True)) for history in found]
    assert ends == [{"a": 0.0, "b": 0.0}, {"a": 1.0, "b": 2.5}, {"a": 2.0}, {"a": 4.0}]


def test_few_cuts_are_spread_from_the_first_to_the_last():
    ends = [history.history_end.tolist() for history in histories_along(COHORT, 5.0, cuts=2)]
    assert ends == [[0.0, 0.0], [4.0, 2.5]]


def test_later_outcomes_are_in_elapsed_time_and_end_at_the_longest_horizon():
    history = COHORT[["a", "b"]].until(0.0)
    elapsed, values = later_outcomes(COHORT, history, 5.0)
    assert elapsed.tolist() == [[1.0, 4.0], [2.5, 3.5]]
    assert values.tolist() == [[2.0, 4.0], [8.0, 9.0]]


def test_patients_with_fewer_later_outcomes_have_gaps():
    history = COHORT[["a", "b"]].until({"a": 0.0, "b": 2.5})
    _, values = later_outcomes(COHORT, history, 5.0)
    np.testing.assert_array_equal(values, [[2.0, 4.0], [9.0, np.nan]])


def test_recorded_outcomes_are_those_at_the_very_horizon():
    history = COHORT[["a", "b"]].until(0.0)
    found = recorded_outcomes(COHORT, history, np.array([1.0, 2.5]))
    np.testing.assert_array_equal(found, [[2.0, np.nan], [np.nan, 8.0]])
