import numpy as np
import pytest
from crepes import ConformalPredictiveSystem
from hypothesis import example, given
from hypothesis import strategies as st
from pydantic import ValidationError
from scipy.stats import norm

from counterpath.cohort import CohortError
from counterpath.cohort.scaling import Scale
from counterpath.predictive import LevelMap, Mixture, Recalibrated, fit_levels, points_of

HORIZONS = np.array([1.0, 2.0])


def level(value: float) -> np.ndarray:
    return np.full((1, 1), value)


def forecast(patients, *, spread=1.0, bias=0.0, seed=0, elapsed=HORIZONS):
    """A forecaster who is wrong about noise and mean, and what happened."""
    rng = np.random.default_rng(seed)
    means = rng.normal(size=(patients, len(elapsed)))
    outcomes = means + rng.normal(size=means.shape)
    spreads = np.broadcast_to(np.asarray(spread, dtype=np.float32), means.shape)[None]
    law = Mixture((means + bias)[None].astype(np.float32), spreads[..., None], Scale(name="y"))
    return law, outcomes, np.tile(elapsed, (patients, 1))


def learned(patients=2_000, **wrong) -> LevelMap:
    law, outcomes, elapsed = forecast(patients, **wrong)
    return fit_levels(points_of(law, np.arange(patients), elapsed, outcomes, rng=np.random.default_rng(1)))


@pytest.mark.parametrize("wrong", [{}, {"spread": 0.6}, {"spread": 1.7}, {"bias": 0.8}, {"spread": [0.5, 2.0]}])
@pytest.mark.parametrize("wanted", [0.5, 0.9, 0.95])
def test_intervals_hold_what_they_say_whatever_the_model_believed(wrong, wanted):
    levels = learned(**wrong)
    law, outcomes, elapsed = forecast(20_000, **wrong, seed=5)
    fixed = Recalibrated(law, levels, elapsed)
    lower, upper = (fixed.quantile(level(q)) for q in ((1 - wanted) / 2, (1 + wanted) / 2))
    share = ((outcomes >= lower) & (outcomes <= upper)).mean(axis=0)
    # Chance in 20,000 new patients and in the 2,000 that it was learned from.
    error = np.sqrt(wanted * (1 - wanted) * (1 / 20_000 + 1 / 2_000))
    assert (np.abs(share - wanted) < 4 * error).all()


def test_probabilities_go_with_quantiles():
    law, _, elapsed = forecast(50, spread=0.6)
    fixed = Recalibrated(law, learned(spread=0.6), elapsed)
    np.testing.assert_allclose(fixed.below(fixed.quantile(level(0.3))), 0.3, atol=1e-4)


def test_draws_means_and_uncertainties_stay():
    law, _, elapsed = forecast(50)
    fixed = Recalibrated(law, learned(spread=0.6), elapsed)
    np.testing.assert_array_equal(fixed.mean, law.mean)
    np.testing.assert_array_equal(fixed.expected(), law.expected())
    np.testing.assert_array_equal(fixed.outcome_variance, law.outcome_variance)
    draws = [one.sample(20, np.random.default_rng(0)) for one in (fixed, law)]
    np.testing.assert_array_equal(*draws)
    some = fixed.patients(slice(3, 7))
    np.testing.assert_array_equal(some.quantile(level(0.9)), fixed.quantile(level(0.9))[3:7])


def test_levels_are_those_of_an_independent_conformal_library():
    """For a forecaster who is off by a constant law, the recalibrated quantile is mean plus an order statistic."""
    patients = 199
    law, outcomes, elapsed = forecast(patients, spread=0.5, bias=0.3, elapsed=np.array([1.0]))
    levels = fit_levels(points_of(law, np.arange(patients), elapsed, outcomes, rng=np.random.default_rng(0)))
    means = law.centres[0, :, 0].astype(np.float64)
    theirs = ConformalPredictiveSystem()
    theirs.fit(outcomes[:, 0] - means)
    new, _, times = forecast(40, spread=0.5, bias=0.3, seed=9, elapsed=np.array([1.0]))
    fixed = Recalibrated(new, levels, times)
    centres = new.centres[0, :, 0].astype(np.float64)
    for percent in (2.5, 10.0, 50.0, 90.0, 97.5):  # multiples of 1/200, so that no interpolation is between us
        expected = theirs.predict_percentiles(centres, higher_percentiles=[percent]).ravel()
        np.testing.assert_allclose(fixed.quantile(level(percent / 100))[:, 0], expected, atol=2e-4)


def test_a_right_forecaster_is_left_alone():
    levels = learned(20_000)
    asked = np.linspace(0.05, 0.95, 19)[:, None]
    found = levels.of_model(asked, np.ones_like(asked))
    np.testing.assert_allclose(found, asked, atol=4 * 0.5 / np.sqrt(20_000))


def test_a_forecaster_who_is_too_narrow_is_asked_for_wider_levels():
    found = learned(20_000, spread=0.5).of_model(level(0.975), np.ones((1, 1)))
    assert found.item() == pytest.approx(norm.cdf(2 * norm.ppf(0.975)), abs=2e-3)


@given(st.lists(st.floats(0, 1), min_size=1, max_size=30), st.floats(0, 1))
@example([2e-311], 0.25)  # somebody forty standard deviations off
def test_there_is_a_way_back(levels, asked):
    """Wherever the map has a slope."""
    made = LevelMap(edges=(), levels=(tuple(sorted(levels)),), patients=(len(levels),))
    once = made.of_model(level(asked), np.ones((1, 1)))
    again = made.of_model(made.said(once, np.ones((1, 1))), np.ones((1, 1)))
    np.testing.assert_allclose(again, once, atol=1e-9)


def test_each_bin_of_elapsed_time_has_levels_of_its_own():
    levels = learned(spread=[0.5, 2.0])
    found = levels.of_model(level(0.95), np.array([[1.0, 2.0]]))[0]
    assert found[0] > 0.98
    assert found[1] < 0.85
    assert levels.patients == (2_000, 2_000)
    assert "2,000 patients" in str(levels)
    assert "not for other plans" in str(levels)


def test_bins_with_few_patients_are_joined():
    law, outcomes, elapsed = forecast(60)
    outcomes[:40, 1] = np.nan
    levels = fit_levels(points_of(law, np.arange(60), elapsed, outcomes, rng=np.random.default_rng(0)))
    assert levels.edges == ()
    assert levels.patients == (60,)


def test_many_outcomes_of_few_patients_are_not_many_patients():
    """A bin with two outcomes of each of thirty patients is joined with its neighbour, which has everybody."""
    early, late = np.array([1.0, 1.01]), np.array([8.0, 8.01])
    law, outcomes, elapsed = forecast(60, elapsed=np.concatenate([early, late]))
    outcomes[30:, 2:] = np.nan
    levels = fit_levels(points_of(law, np.arange(60), elapsed, outcomes, rng=np.random.default_rng(0)))
    assert min(levels.patients) >= 39
    assert max(levels.patients) == 60


def test_too_few_patients_are_refused():
    law, outcomes, elapsed = forecast(20)
    with pytest.raises(CohortError, match="Only 20 patients"):
        fit_levels(points_of(law, np.arange(20), elapsed, outcomes, rng=np.random.default_rng(0)))


@pytest.mark.parametrize(
    "wrong",
    [
        {"edges": (1.0,), "levels": ((0.5,),), "patients": (40,)},
        {"edges": (), "levels": ((0.5, 0.4),), "patients": (40,)},
        {"edges": (), "levels": ((1.5,),), "patients": (40,)},
        {"edges": (2.0, 1.0), "levels": ((0.5,),) * 3, "patients": (40,) * 3},
    ],
)
def test_a_map_that_makes_no_sense_is_refused(wrong):
    with pytest.raises(ValidationError):
        LevelMap(**wrong)
