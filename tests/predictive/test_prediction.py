import numpy as np
import polars as pl
import pytest
from scipy.stats import norm

from counterpath.cohort import Variable
from counterpath.metrics import crps_draws
from counterpath.predictive import Prediction, evaluate_prediction


def normal_prediction(means, std, draws=2_000) -> Prediction:
    levels = (np.arange(draws) + 0.5) / draws
    spread = np.broadcast_to(norm.ppf(levels)[:, None, None] * std, (draws, len(means), 2))
    draws_of_all = np.asarray(means)[None, :, None] + spread
    return Prediction(pl.Series(range(len(means))), np.array([1.0, 2.0]), Variable(name="y"), draws_of_all)


def test_quantiles_and_intervals_are_those_of_the_draws():
    prediction = normal_prediction([0.0, 10.0], 2.0)
    np.testing.assert_allclose(prediction.median[:, 0], [0.0, 10.0], atol=1e-9)
    lower, upper = prediction.interval(0.95)
    np.testing.assert_allclose(upper - lower, 2 * 1.96 * 2.0, rtol=5e-3)
    np.testing.assert_allclose(prediction.mean, prediction.median, atol=1e-9)


def test_summary_has_a_line_per_patient_and_horizon():
    summary = normal_prediction([0.0, 10.0], 2.0).summary()
    assert summary.columns == ["patient", "elapsed", "mean", "median", "lower", "upper"]
    assert summary["patient"].to_list() == [0, 0, 1, 1]
    assert summary["elapsed"].to_list() == [1.0, 2.0, 1.0, 2.0]


@pytest.mark.parametrize("level", [95, 0.0, 1.0])
def test_a_level_is_a_probability(level):
    with pytest.raises(ValueError, match=r"level=0\.95"):
        normal_prediction([0.0], 1.0).interval(level)


def test_an_honest_forecaster_is_told_from_a_narrow_one():
    rng = np.random.default_rng(0)
    means = rng.normal(size=4_000)
    outcomes = means[:, None] + rng.normal(size=(4_000, 2))
    honest = evaluate_prediction(normal_prediction(means, 1.0, 400), outcomes, model="honest").scores[0]
    narrow = evaluate_prediction(normal_prediction(means, 0.5, 400), outcomes, model="narrow").scores[0]
    assert abs(honest.coverage[0.95].value - 0.95) < 3 * honest.coverage[0.95].standard_error
    assert narrow.coverage[0.95].value < 0.75
    assert narrow.crps.value > honest.crps.value
    assert honest.crps.value == pytest.approx(1 / np.sqrt(np.pi), abs=3 * honest.crps.standard_error)


def test_scores_are_in_the_scale_asked_for_and_skip_who_was_not_seen():
    rng = np.random.default_rng(1)
    outcomes = rng.normal(size=(50, 2))
    outcomes[:20, 1] = np.nan
    prediction = normal_prediction(np.zeros(50), 1.0)
    plain = evaluate_prediction(prediction, outcomes, model="m")
    scaled = evaluate_prediction(prediction, outcomes, model="m", scale=10.0)
    assert [score.patients for score in plain.scores] == [50, 30]
    assert scaled.scores[1].crps.value == pytest.approx(plain.scores[1].crps.value / 10)
    assert scaled.scores[1].mse.value == pytest.approx(plain.scores[1].mse.value / 100)
    assert plain.scores[1].crps.value == pytest.approx(crps_draws(outcomes[20:, 1], prediction.draws[:, 20:, 1]).mean())
    frame = plain.to_frame()
    assert frame["patients"].to_list() == [50, 30]
    assert {"coverage_95", "coverage_99", "width_95", "width_99"} <= set(frame.columns)


def test_a_horizon_at_which_nobody_was_seen_is_named():
    with pytest.raises(ValueError, match="Nobody has an outcome 2 after"):
        evaluate_prediction(normal_prediction([0.0], 1.0), np.array([[1.0, np.nan]]), model="m")


def test_an_interval_of_few_draws_holds_an_exchangeable_outcome_as_often_as_it_says():
    rng = np.random.default_rng(5)
    everything = rng.normal(size=(40, 60_000))  # 39 draws and the outcome, all alike
    prediction = Prediction(
        pl.Series(range(60_000)), np.array([1.0]), Variable(name="y"), np.ascontiguousarray(everything[1:, :, None])
    )
    lower, upper = prediction.interval(0.9)
    share = np.mean((everything[0] >= lower[:, 0]) & (everything[0] <= upper[:, 0]))
    assert abs(share - 0.9) < 3 * np.sqrt(0.9 * 0.1 / 60_000)
