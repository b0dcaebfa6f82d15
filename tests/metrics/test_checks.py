"""Every score refuses what it cannot answer, and says what to do about it."""

import numpy as np
import pytest

from counterpath import metrics

RNG_SEED = 0


def call(name, points, draws):
    """Call a score by name on the given points and draws."""
    ones = np.ones_like(points)
    rng = np.random.default_rng(RNG_SEED)
    calls = {
        "absolute_error": lambda: metrics.absolute_error(points, ones),
        "covered": lambda: metrics.covered(points, ones, ones),
        "crps_draws": lambda: metrics.crps_draws(points, draws),
        "crps_normal_mixture": lambda: metrics.crps_normal_mixture(points, draws, np.ones_like(draws)),
        "deferral_curve": lambda: metrics.deferral_curve(points, ones),
        "interval_score": lambda: metrics.interval_score(points, ones, ones, 0.95),
        "interval_width": lambda: metrics.interval_width(points, ones),
        "log_score_normal_mixture": lambda: metrics.log_score_normal_mixture(points, draws, np.ones_like(draws)),
        "mae": lambda: metrics.mae(points, ones),
        "mean_by_patient": lambda: metrics.mean_by_patient(points),
        "mse": lambda: metrics.mse(points, ones),
        "paired_ratio": lambda: metrics.paired_ratio(points, ones),
        "pit_draws": lambda: metrics.pit_draws(points, draws, rng),
        "pit_normal_mixture": lambda: metrics.pit_normal_mixture(points, draws, np.ones_like(draws)),
        "pit_uniformity": lambda: metrics.pit_uniformity(points),
        "randomised_pit": lambda: metrics.randomised_pit(points, ones, rng),
        "rmse": lambda: metrics.rmse(points, ones),
        "squared_error": lambda: metrics.squared_error(points, ones),
    }
    return calls[name]()


FUNCTIONS = [name for name in metrics.__all__ if not isinstance(getattr(metrics, name), type)]
AVERAGES = {"deferral_curve", "mae", "mean_by_patient", "mse", "paired_ratio", "pit_uniformity", "rmse"}
PER_POINT = [name for name in FUNCTIONS if name not in AVERAGES]
WITH_DRAWS = [
    "crps_draws",
    "crps_normal_mixture",
    "log_score_normal_mixture",
    "pit_draws",
    "pit_normal_mixture",
]


@pytest.mark.parametrize("shape", [(), (3,), (2, 3)])
@pytest.mark.parametrize("name", PER_POINT)
def test_points_have_any_shape_and_scores_are_float64(name, shape):
    score = call(name, np.full(shape, 0.5, dtype=np.float32), np.ones((4, *shape), dtype=np.float32))
    assert isinstance(score, np.ndarray)
    assert score.shape == shape
    assert score.dtype == (bool if name == "covered" else np.float64)


@pytest.mark.parametrize("bad", [np.nan, np.inf])
@pytest.mark.parametrize("name", FUNCTIONS)
def test_missing_or_infinite_points_are_refused(name, bad):
    with pytest.raises(ValueError, match=r"1 missing or infinite values, the first at index \(1,\).*Drop"):
        call(name, np.array([0.2, bad, 0.9]), np.ones((4, 3)))


@pytest.mark.parametrize("name", WITH_DRAWS)
def test_missing_draws_are_refused(name):
    draws = np.ones((4, 3))
    draws[2, 1] = np.nan
    with pytest.raises(ValueError, match=r"1 missing or infinite values, the first at index \(2, 1\)"):
        call(name, np.array([0.2, 0.5, 0.9]), draws)


@pytest.mark.parametrize("name", FUNCTIONS)
def test_empty_input_is_refused(name):
    with pytest.raises(ValueError, match=r"is empty.*at least one point"):
        call(name, np.ones(0), np.ones((4, 0)))


@pytest.mark.usefixtures("checker_off")
@pytest.mark.parametrize("name", WITH_DRAWS)
@pytest.mark.parametrize("shape", [(4, 2), (3, 4), (3,)])
def test_draws_of_another_shape_are_refused(name, shape):
    with pytest.raises(ValueError, match="draws or components first"):
        call(name, np.array([0.2, 0.5, 0.9]), np.ones(shape))


@pytest.mark.usefixtures("checker_off")
@pytest.mark.parametrize(
    "score",
    [
        lambda a, b: metrics.absolute_error(a, b),
        lambda a, b: metrics.squared_error(a, b),
        lambda a, b: metrics.covered(a, b, b),
        lambda a, b: metrics.deferral_curve(a, b),
        lambda a, b: metrics.interval_score(a, a, b, 0.9),
        lambda a, b: metrics.interval_width(a, b),
        lambda a, b: metrics.paired_ratio(a, b),
        lambda a, b: metrics.randomised_pit(a, b, np.random.default_rng(RNG_SEED)),
    ],
)
def test_points_of_another_shape_are_refused_rather_than_broadcast(score):
    with pytest.raises(ValueError, match=r"Shapes differ.*same order"):
        score(np.ones(3), np.ones(1))


@pytest.mark.usefixtures("checker_off")
def test_labels_of_another_length_are_refused():
    with pytest.raises(ValueError, match="patient of every point"):
        metrics.mean_by_patient(np.ones(3), np.arange(2))


@pytest.mark.usefixtures("checker_off")
@pytest.mark.parametrize("score", [metrics.mean_by_patient, lambda s: metrics.deferral_curve(s, s)])
def test_averages_ask_for_one_dimension(score):
    with pytest.raises(ValueError, match="one-dimensional"):
        score(np.ones((2, 3)))


@pytest.mark.parametrize("labels", [np.array([1.0, np.nan]), np.array(["a", None], dtype=object)])
def test_missing_labels_are_refused(labels):
    with pytest.raises(ValueError, match="1 missing labels"):
        metrics.mean_by_patient(np.ones(2), labels)


@pytest.mark.parametrize("level", [0.0, 1.0, 95.0, float("nan")])
def test_levels_are_probabilities(level):
    with pytest.raises(ValueError, match=r"level=0\.95"):
        metrics.interval_score(np.zeros(1), np.zeros(1), np.ones(1), level)
    with pytest.raises(ValueError, match=r"level=0\.95"):
        metrics.paired_ratio(np.ones(2), np.ones(2), level=level)
