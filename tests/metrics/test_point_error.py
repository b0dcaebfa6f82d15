import math

import numpy as np
import pytest

from counterpath.metrics import absolute_error, mae, mean_by_patient, mse, rmse, squared_error

OUTCOME, PREDICTED = np.array([1.0, 2.0, -1.0]), np.array([1.0, 0.0, 2.0])


def test_errors_by_hand():
    np.testing.assert_array_equal(squared_error(OUTCOME, PREDICTED), [0.0, 4.0, 9.0])
    np.testing.assert_array_equal(absolute_error(OUTCOME, PREDICTED), [0.0, 2.0, 3.0])
    assert mse(OUTCOME, PREDICTED).value == pytest.approx(13 / 3)
    assert rmse(OUTCOME, PREDICTED).value == pytest.approx(math.sqrt(13 / 3))
    assert mae(OUTCOME, PREDICTED).value == pytest.approx(5 / 3)


def test_labels_reach_the_standard_error():
    patients = np.array(["a", "b", "b"])
    expected = mean_by_patient(squared_error(OUTCOME, PREDICTED), patients)
    assert mse(OUTCOME, PREDICTED, patients) == expected
    assert mae(OUTCOME, PREDICTED, patients).patients == rmse(OUTCOME, PREDICTED, patients).patients == 2


def test_standard_error_of_rmse_is_its_spread_over_repeated_samples():
    rng = np.random.default_rng(0)
    repeats, patients = 2_000, np.repeat(np.arange(100), 3)
    estimates = []
    for _ in range(repeats):
        miss = rng.normal(size=100)[patients] + rng.normal(size=300)
        estimates.append(rmse(np.zeros(300), miss, patients))
    spread = np.std([e.value for e in estimates], ddof=1)
    stated = math.sqrt(np.mean([e.standard_error**2 for e in estimates]))
    # 3 standard errors of a standard deviation from 2,000 repeats, and 1% for the delta method
    assert abs(stated / spread - 1) < 3 / math.sqrt(2 * repeats) + 0.01


def test_rmse_of_perfect_predictions():
    assert rmse(OUTCOME, OUTCOME).value == 0
    assert rmse(OUTCOME, OUTCOME).standard_error == 0
    assert rmse(OUTCOME, OUTCOME, np.zeros(3)).standard_error == math.inf
