"""What the experiments measure is right where the answer is known."""

from dataclasses import fields, replace

import numpy as np
import pytest

from counterpath.experiments import measures
from counterpath.experiments.answers import LEVELS, SMALLEST_CM3, Judged, Said, judged_oracle
from counterpath.experiments.expected_effects import COMPARED, Effects
from counterpath.experiments.runtime import figures_of
from counterpath.experiments.scales import SCALES
from counterpath.experiments.tumor_worlds import ARMS, HORIZONS, RANDOMISED, TEST_SEED, branching, factual, other_arm
from counterpath.experiments.world import followed_through_noise

SMOKE = SCALES["smoke"]


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    return tmp_path_factory.mktemp("oracle")


@pytest.fixture(scope="module")
def oracle(folder):
    return judged_oracle(ARMS, SMOKE, folder, workers=2)


@pytest.fixture(scope="module")
def as_oracle(oracle):
    """A model that says what the oracle says."""
    return replace(oracle, oracle=oracle)


def told(judged, **changes):
    """The same model, with some of what it says changed."""

    def ask(protocol, noise_std):
        return replace(judged.said(protocol, noise_std), **changes)

    return Judged(judged.world, judged.scale, judged.horizons, ask, judged.oracle)


def test_beside_itself_the_oracle_has_ratios_of_one(as_oracle):
    for horizon in HORIZONS:
        assert measures.closeness(as_oracle, horizon).figures["CRPS ÷ oracle"] == pytest.approx(1.0)
        assert measures.sharpness(as_oracle, horizon).figures["95% width ÷ oracle"] == pytest.approx(1.0)
        assert measures.point_error(as_oracle, horizon).figures["mean squared error ÷ oracle"] == pytest.approx(1.0)
        assert measures.outcome_uncertainty(as_oracle, horizon).figures["Spearman, volume − oracle"] == 0.0


def test_a_forecast_that_leaves_all_bounds_is_seen(oracle):
    mean = oracle.said().mean.copy()
    mean[3, 1] = 7.0 * oracle.outcomes()[:, 1].max()  # one patient, at two days
    assert measures.closeness(told(oracle, mean=mean), 1.0).figures["largest mean ÷ largest outcome"] < 2.0
    assert measures.closeness(told(oracle, mean=mean), 2.0).figures["largest mean ÷ largest outcome"] == pytest.approx(
        7.0
    )


def test_coverage_is_the_share_inside(oracle):
    outcome = oracle.outcomes()
    ends = np.stack([outcome] * len(LEVELS))
    below = ends.copy()
    below[:, ::2] += 1.0  # every other patient lies outside
    found = measures.faithfulness(told(oracle, lower=below, upper=ends + 2.0), 2.0)
    assert found.figures["95% holds"] == found.figures["99% holds"] == 0.5
    assert found.curves["coverage"] == [0.5] * len(LEVELS)
    seen = factual(ARMS, SMOKE).seen[:, 1]
    assert found.figures["95% holds, seen"] == pytest.approx(seen[1::2].sum() / seen.sum())


def test_errors_are_of_the_median_in_units_of_the_usual_volume(oracle):
    wrong = told(oracle, median=oracle.outcomes() + ARMS.usual_size(SMOKE))
    found = measures.point_error(wrong, 3.0)
    assert found.figures["mean squared error at noise 0.01"] == pytest.approx(1.0)
    assert found.figures["median absolute error at noise 0.01"] == pytest.approx(1.0)
    assert len(found.curves["mean squared error"]) == len(SMOKE.noises)


def test_noise_grows_for_the_same_patients():
    few = replace(SMOKE, noise_patients=5)
    usual, noisy = factual(ARMS, few), factual(ARMS, few, 0.1)
    assert noisy.outcomes.shape == (5, len(HORIZONS))
    first = [asked.history.records.values[asked.history.records.times == 0.0, 0] for asked in (usual, noisy)]
    some = followed_through_noise(SMOKE.test, few)
    np.testing.assert_array_equal(first[1], first[0][some])
    assert usual.history.patients.gather(some).equals(noisy.history.patients)


def test_ends_of_intervals_hold_as_often_as_they_say(oracle):
    """Those of the oracle are order statistics of its draws; quantiles between them would hold too few."""
    asked = factual(ARMS, SMOKE)
    model = ARMS.oracle(SMOKE, asked, believes=None, workers=2)
    prediction = model.predict(asked.history, asked.plan, horizons=HORIZONS, draws=60)
    lower, upper = prediction.interval(LEVELS[0])
    np.testing.assert_array_equal(oracle.said().lower[0], lower)
    np.testing.assert_array_equal(oracle.said().upper[0], upper)


def test_outcome_uncertainty_alone_is_that_of_models_that_have_one(oracle):
    name = "Spearman, outcome uncertainty alone"
    assert name not in measures.outcome_uncertainty(oracle, 1.0).figures  # its draws mix noise and ignorance
    error = np.abs(oracle.outcomes() - oracle.said().median)
    knows = measures.outcome_uncertainty(told(oracle, outcome_std=error), 1.0).figures
    assert knows[name] == pytest.approx(1.0)
    none = measures.outcome_uncertainty(told(oracle, outcome_std=np.zeros_like(error)), 1.0).figures
    assert none[name] == 0.0


def test_an_uncertainty_that_knows_the_error_has_a_small_area(oracle):
    """Errors of the effect are put into the uncertainty itself."""
    at, horizon = HORIZONS.index(3.0), 3.0
    effect = oracle.said().mean[:, at] - oracle.said("other arm").mean[:, at]
    truth = oracle.outcomes()[:, at] - oracle.outcomes("other arm")[:, at]
    knows = np.tile(np.abs(effect - truth)[:, None], (1, len(HORIZONS)))
    asked = (knows, knows.max() - knows)
    good, bad = (measures.deferral(told(oracle, model_std=own), horizon).figures for own in asked)
    assert good["area by volume"] < 1.0 < bad["area by volume"]
    assert good["area by size alone"] == bad["area by size alone"]  # whatever the model thinks that it knows
    assert "area by the model's scale" not in good  # the oracle has no scale of its own


def test_relative_errors_are_ranked_by_the_models_own_scale(oracle):
    """A model that is relatively as sure as its error is small, and so least sure of small tumours."""
    at, horizon = HORIZONS.index(3.0), 3.0
    ratios = [
        np.log(np.maximum(volumes[:, at], SMALLEST_CM3) / np.maximum(other[:, at], SMALLEST_CM3))
        for volumes, other in (
            (oracle.outcomes(), oracle.outcomes("other arm")),
            (oracle.said().median, oracle.said("other arm").median),
        )
    ]
    knows = np.tile(np.abs(ratios[0] - ratios[1])[:, None], (1, len(HORIZONS)))
    good = measures.deferral(told(oracle, spread=knows), horizon)
    bad = measures.deferral(told(oracle, spread=knows.max() - knows), horizon)
    name = "area by the model's scale, relative"
    assert good.figures[name] < 1.0 < bad.figures[name]
    assert good.curves["error of the rest, by the model's scale, relative"][-1] < 0.1
    assert good.figures["Spearman of spread and volume"] == pytest.approx(-bad.figures["Spearman of spread and volume"])


def test_protocols_branch_where_they_say():
    known, other, forked = (ask(ARMS, SMOKE) for ask in (factual, other_arm, branching))
    assert forked.history is known.history
    assert other.history.records.rows != known.history.records.rows
    np.testing.assert_array_equal(forked.outcomes[:, 0], known.outcomes[:, 0])  # at one day nothing differs yet
    assert (forked.outcomes[:, 2] != known.outcomes[:, 2]).mean() > 0.9
    assert ARMS.protocols(1.0) == ["factual", "other arm"]
    assert ARMS.protocols(3.0) == ["factual", "other arm", "branching"]
    assert RANDOMISED.protocols(3.0) == ["factual"]


def test_the_oracles_answers_are_kept(oracle, folder):
    said = oracle.said()
    assert (folder / f"oracle.arms.{TEST_SEED}-{SMOKE.test}.factual.0.01.npz").exists()
    again = judged_oracle(ARMS, SMOKE, folder, workers=2).said()
    for field in fields(Said):
        np.testing.assert_array_equal(getattr(said, field.name), getattr(again, field.name))


def test_the_oracles_effects_are_kept_for_the_same_patients_and_draws_alone(folder):
    (name, *_), effects = COMPARED, Effects(folder, 2)
    judged = judged_oracle(RANDOMISED, SMOKE, folder, workers=2)
    today = judged.asked("factual").history
    one, _ = effects._truth(judged, today, name)
    fewer, _ = effects._truth(judged, today[:7], name)
    more_draws = judged_oracle(RANDOMISED, replace(SMOKE, oracle_draws=2 * SMOKE.oracle_draws), folder, workers=2)
    other, _ = effects._truth(more_draws, today, name)
    assert (len(one), len(fewer)) == (SMOKE.test, 7)
    assert np.abs(one - other).max() > 0
    kept = sorted(path.name for path in folder.glob("oracle.randomised.*.effects.*.npz"))
    about = f"effects.{name.replace(' ', '-')}"
    assert kept == sorted(
        f"oracle.randomised.{TEST_SEED}-{patients}.{about}.{draws}.npz"
        for patients, draws in ((SMOKE.test, 240), (7, 240), (SMOKE.test, 480))
    )


def test_time_that_grows_in_a_straight_line_is_seen_as_such():
    scale = SCALES["paper"]
    even = figures_of(scale, [0.2 + 0.1 * depth for depth in scale.depths], [1.0, 1.1, 1.3, 2.0]).figures
    assert even["seconds per layer"] == pytest.approx(0.1)
    assert even["seconds without layers"] == pytest.approx(0.2)
    assert even["off a straight line by depth"] == pytest.approx(0.0, abs=1e-9)
    assert even["seconds per draw"] == pytest.approx(0.01, rel=0.02)
    assert even["most draws ÷ one draw"] == 2.0
    assert even["minutes for 500 epochs"] == pytest.approx(500 * 0.4 / 60)
    bent = figures_of(scale, [0.1 * depth**2 for depth in scale.depths], [1.0, 1.1, 1.3, 2.0]).figures
    assert bent["off a straight line by depth"] > 0.05
