import numpy as np
import polars as pl
import pytest
from scipy.stats import norm

from counterpath.cohort import CohortError, Variable
from counterpath.cohort.scaling import Scale
from counterpath.predictive import Draws, Mixture, Prediction


def normal_prediction(means, std, draws=2_000) -> Prediction:
    levels = (np.arange(draws) + 0.5) / draws
    spread = np.broadcast_to(norm.ppf(levels)[:, None, None] * std, (draws, len(means), 2))
    law = Draws(np.asarray(means)[None, :, None] + spread)
    return Prediction(pl.Series(range(len(means))), np.array([1.0, 2.0]), (Variable(name="y"),), (law,))


def two_outcomes(patients=4, draws=20) -> Prediction:
    """Of which the first is a mixture of normals about patient number + 10 · horizon."""
    rng = np.random.default_rng(0)
    centres = np.arange(patients)[:, None] + 10.0 * np.array([1.0, 2.0]) + rng.normal(size=(draws, patients, 2))
    laws = (
        Mixture(centres.astype(np.float32), np.full((*centres.shape, 1), 0.5, dtype=np.float32), Scale(name="y")),
        Draws(rng.normal(size=(50, patients, 2))),
    )
    variables = (Variable(name="y"), Variable(name="z"))
    return Prediction(pl.Series(list("abcd")[:patients]), np.array([1.0, 2.0]), variables, laws)


def test_quantiles_and_intervals_are_those_of_the_draws():
    prediction = normal_prediction([0.0, 10.0], 2.0)
    np.testing.assert_allclose(prediction.median[:, 0], [0.0, 10.0], atol=1e-9)
    lower, upper = prediction.interval(0.95)
    np.testing.assert_allclose(upper - lower, 2 * 1.96 * 2.0, rtol=5e-3)
    np.testing.assert_allclose(prediction.mean, prediction.median, atol=1e-9)


def test_summary_has_a_line_per_patient_and_horizon():
    summary = normal_prediction([0.0, 10.0], 2.0).summary()
    assert summary.columns == ["patient", "elapsed", "outcome", "mean", "median", "lower", "upper"]
    assert summary["patient"].to_list() == [0, 0, 1, 1]
    assert summary["elapsed"].to_list() == [1.0, 2.0, 1.0, 2.0]


@pytest.mark.parametrize("level", [95, 0.0, 1.0])
def test_a_level_is_a_probability(level):
    with pytest.raises(ValueError, match=r"level=0\.95"):
        normal_prediction([0.0], 1.0).interval(level)


def test_an_interval_of_few_draws_holds_an_exchangeable_outcome_as_often_as_it_says():
    rng = np.random.default_rng(5)
    everything = rng.normal(size=(40, 60_000))  # 39 draws and the outcome, all alike
    prediction = Prediction(
        pl.Series(range(60_000)), np.array([1.0]), (Variable(name="y"),), (Draws(everything[1:, :, None]),)
    )
    lower, upper = prediction.interval(0.9)
    share = np.mean((everything[0] >= lower[:, 0]) & (everything[0] <= upper[:, 0]))
    assert abs(share - 0.9) < 3 * np.sqrt(0.9 * 0.1 / 60_000)


# Several outcomes, uncertainties, probabilities


def test_several_outcomes_are_the_last_axis_and_each_can_be_had_alone():
    prediction = two_outcomes()
    assert prediction.mean.shape == (4, 2, 2)
    assert prediction.sample(7).shape == (7, 4, 2, 2)
    np.testing.assert_array_equal(prediction["z"].mean, prediction.mean[..., 1])
    np.testing.assert_array_equal(prediction["y"].quantile(0.9), prediction.quantile(0.9)[..., 0])
    with pytest.raises(CohortError, match="'x' is no outcome"):
        prediction["x"]


def test_frames_have_a_line_per_patient_horizon_and_outcome():
    prediction = two_outcomes()
    frame = prediction.to_frame()
    assert frame.select("patient", "elapsed", "outcome").rows()[:5] == [
        ("a", 1.0, "y"), ("a", 1.0, "z"), ("a", 2.0, "y"), ("a", 2.0, "z"), ("b", 1.0, "y")
    ]  # fmt: skip
    row = frame.filter((pl.col("patient") == "c") & (pl.col("elapsed") == 2.0) & (pl.col("outcome") == "y"))
    assert row["mean"].item() == prediction.mean[2, 1, 0]
    assert row["model_uncertainty"].item() == prediction.model_uncertainty[2, 1, 0]
    assert row["upper_80"].item() == prediction.interval(0.8)[1][2, 1, 0]
    assert frame.height == 16


def test_uncertainties_are_told_apart_where_the_model_can():
    prediction = two_outcomes()
    np.testing.assert_allclose(prediction["y"].outcome_uncertainty, 0.5, rtol=1e-6)
    np.testing.assert_allclose(prediction["y"].model_uncertainty, prediction.laws[0].centres.std(axis=0), rtol=1e-5)
    assert np.isnan(prediction["z"].model_uncertainty).all()


def test_probabilities_add_up_and_go_with_quantiles():
    prediction = two_outcomes()["y"]
    below, above = prediction.probability(below=11.0), prediction.probability(above=11.0)
    np.testing.assert_allclose(below + above, 1.0)
    between = prediction.probability(above=10.0, below=11.0)
    np.testing.assert_allclose(between, below - prediction.probability(below=10.0))
    assert (prediction.probability(below=prediction.quantile(0.3)[0, 0]))[0, 0] == pytest.approx(0.3, abs=1e-5)


@pytest.mark.parametrize(("given", "message"), [({}, "below=…"), ({"below": 1.0, "above": 2.0}, "at most 1")])
def test_a_probability_of_nothing_is_refused(given, message):
    with pytest.raises(ValueError, match=message):
        two_outcomes().probability(**given)


def test_a_prediction_without_histories_cannot_be_drawn():
    with pytest.raises(ValueError, match="histories"):
        two_outcomes().plot("a")


def test_draws_go_to_arviz_as_marginals():
    prediction = two_outcomes()
    group = prediction.to_arviz(draws=30, seed=1)["posterior_predictive"]
    assert group["y"].dims == ("chain", "draw", "patient", "elapsed")
    assert group["z"].shape == (1, 30, 4, 2)
    np.testing.assert_array_equal(group["y"].values[0], prediction.sample(30, seed=1)[..., 0])
    assert group.coords["patient"].values.tolist() == ["a", "b", "c", "d"]
    assert "marginals" in group.attrs["note"]
