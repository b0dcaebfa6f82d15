import numpy as np
import polars as pl
import pytest

import counterpath as cp
from counterpath.cohort import CohortError, Variable
from counterpath.cohort.scaling import Scale
from counterpath.metrics import Estimate, crps_normal_mixture
from counterpath.predictive import Draws, Mixture, Points, evaluate_points, points_of
from counterpath.predictive.verdict import Held, verdict

OUTCOME = Variable(name="volume", unit="cm³")


def points(patients=2_000, elapsed=(1.0, 2.0), *, bias=0.0, spread=1.0, seed=0) -> Points:
    """Outcomes are standard normal about a mean of each patient's; the forecaster is off by `bias` and `spread`."""
    rng = np.random.default_rng(seed)
    means = rng.normal(size=(patients, 1)) + np.zeros(len(elapsed))
    outcomes = means + rng.normal(size=means.shape)
    spreads = np.broadcast_to(np.asarray(spread, dtype=np.float32), means.shape)
    law = Mixture((means + bias)[None].astype(np.float32), spreads[None, ..., None], Scale(name="volume"))
    times = np.broadcast_to(np.array(elapsed), means.shape)
    return points_of(law, np.arange(patients), times, outcomes, rng=rng)


def judged(found, **options):
    return evaluate_points(found, model="model", outcome=OUTCOME, time_unit="day", **options)


# The verdict


@pytest.mark.parametrize("seed", range(5))
def test_a_perfect_forecaster_is_well_calibrated(seed):
    assert judged(points(seed=seed)).verdict.endswith("of outcomes: well calibrated")


@pytest.mark.parametrize(
    ("wrong", "said"),
    [
        ({"spread": 0.8}, "too narrow"),
        ({"spread": 1.3}, "too wide"),
        ({"spread": [1.0, 0.7]}, "too narrow at 2 days"),
        ({"spread": [1.4, 1.0]}, "too wide at 1 day"),
        ({"spread": [1.4, 0.7]}, "too narrow at 2 days; too wide at 1 day"),
        ({"bias": 0.2}, "outcomes are lower than predicted (58% ± 1% lie below the median)"),
        ({"bias": -0.2}, "outcomes are higher than predicted"),
    ],
)
def test_the_verdict_flips_where_it_should(wrong, said):
    assert said in judged(points(**wrong)).verdict


def test_the_verdict_has_share_and_standard_error():
    evaluation = judged(points(spread=0.8))
    share = evaluation.overall.coverage[0.95]
    start = f"95% intervals held {share.value:.1%} ± {share.standard_error:.1%} of outcomes: too narrow"
    assert evaluation.verdict == start
    assert str(evaluation) == f"model: {start}"


def test_a_difference_counts_only_beyond_chance_and_beyond_a_point():
    half = Estimate(0.5, 0.001, 10**6)

    def says(share, error, patients):
        held = Estimate(share, error, patients)
        return verdict(0.95, held, [Held("1 day", held)], half)

    assert "well calibrated" in says(0.90, 0.05, 30)  # few patients
    assert "well calibrated" in says(0.955, 1e-4, 10**6)  # many, but what of it
    assert "too narrow" in says(0.93, 1e-3, 10**5)
    assert "well calibrated" in says(1.0, 0.0, 40)  # all of 40 held: no spread, and no news
    assert "too wide" in says(1.0, 0.0, 1_000)
    assert "±" not in says(1.0, np.inf, 1)


def test_bins_that_are_each_within_chance_may_together_be_off():
    share, half = Estimate(0.925, 0.012, 330), Estimate(0.5, 0.01, 1_000)
    assert verdict(0.95, Estimate(0.925, 0.007, 1_000), [Held(f"{i}", share) for i in range(3)], half).endswith(
        "too narrow"
    )


# The scores


def test_scores_are_those_of_the_forecasts():
    found = points(500)
    score = judged(found).scores[0]
    first = found.keep(found.elapsed == 1.0)
    exact = crps_normal_mixture(first.outcome, first.median[None], np.ones((1, 500)))
    assert score.crps.value == pytest.approx(exact.mean(), rel=2e-3)  # from 1,000 spread draws
    assert score.mse.value == pytest.approx(np.mean((first.outcome - first.median) ** 2))
    assert score.mae.value == pytest.approx(np.mean(np.abs(first.outcome - first.median)))
    for level, width in ((0.5, 1.349), (0.95, 3.920), (0.99, 5.152)):
        assert score.width[level] == pytest.approx(width, rel=1e-3)
        assert abs(score.coverage[level].value - level) < 4 * score.coverage[level].standard_error
    assert score.pit.p_value > 1e-3
    assert (score.points, score.patients, score.horizon) == (500, 500, 1.0)


def test_scores_are_in_the_scale_asked_for():
    found = points(200)
    plain, scaled = judged(found), judged(found, scale=10.0)
    for ours, theirs, factor in (("crps", "crps", 10), ("mae", "mae", 10), ("mse", "mse", 100)):
        assert getattr(plain.overall, ours).value == pytest.approx(factor * getattr(scaled.overall, theirs).value)
    assert plain.overall.width[0.95] == pytest.approx(10 * scaled.overall.width[0.95])
    assert plain.overall.interval_score.value == pytest.approx(10 * scaled.overall.interval_score.value)


def test_errors_count_patients_not_outcomes():
    """Four outcomes of each patient that agree tell no more than one."""
    once = points(300, (1.0,))
    often = Points.join([once] * 4)
    assert judged(often).overall.crps.standard_error == pytest.approx(judged(once).overall.crps.standard_error)
    assert (judged(often).overall.points, judged(often).overall.patients) == (1_200, 300)


def test_who_was_not_seen_does_not_count():
    law = Draws(np.random.default_rng(0).normal(size=(50, 3, 2)))
    outcomes = np.array([[0.1, np.nan], [np.nan, np.nan], [0.2, 0.3]])
    found = points_of(law, np.array([7, 8, 9]), np.array([[1.0, 2.0]] * 3), outcomes, rng=np.random.default_rng(0))
    assert found.patient.tolist() == [7, 9, 9]
    assert found.elapsed.tolist() == [1.0, 1.0, 2.0]
    assert found.outcome.tolist() == [0.1, 0.2, 0.3]


def test_an_outcome_with_a_probability_of_its_own_is_still_spread_evenly():
    """A third of the forecast and of the outcomes are at the bound."""
    rng = np.random.default_rng(0)
    scale = Scale(name="volume", lower=0.0)
    centres = np.full((1, 3_000, 1), 0.43, dtype=np.float32)  # Φ(−0.43) is a third
    law = Mixture(centres, np.ones_like(centres)[..., None], scale)
    outcomes = np.maximum(0.43 + rng.normal(size=(3_000, 1)), 0.0)
    found = points_of(law, np.arange(3_000), np.ones((3_000, 1)), outcomes, rng=rng)
    assert judged(found).overall.pit.p_value > 1e-3


def test_many_elapsed_times_are_put_into_bins_of_about_as_many_outcomes():
    rng = np.random.default_rng(0)
    found = points(1_000, tuple(rng.uniform(0.5, 5.0, 30)))
    evaluation = judged(found)
    assert len(evaluation.scores) == 5
    assert sum(score.points for score in evaluation.scores) == 30_000
    assert min(score.points for score in evaluation.scores) > 3_000
    assert all("–" in score.bin and score.bin.endswith("days") for score in evaluation.scores)


def test_subgroups_have_lines_of_their_own():
    spread = np.ones((1_000, 2), dtype=np.float32)
    spread[:500] = 0.6
    found = points(1_000, spread=spread)
    evaluation = judged(found, subgroups={"sure": np.arange(1_000) < 500, "others": np.arange(1_000) >= 500})
    frame = evaluation.to_frame().filter(pl.col("bin") == "all")
    shares = dict(frame.select("subgroup", "coverage_95").rows())
    assert shares["sure"] < 0.85 < 0.93 < shares["others"]
    assert frame.filter(pl.col("subgroup") == "sure")["patients"].item() == 500
    with pytest.raises(CohortError, match="'nobody'"):
        judged(found, subgroups={"nobody": np.zeros(1_000, dtype=bool)})


def test_a_frame_has_an_error_beside_every_mean():
    columns = judged(points(100)).to_frame().columns
    for name in ("crps", "mse", "mae", "coverage_50", "coverage_95", "interval_score_95", "below_median"):
        assert any(column.startswith(name) and column.endswith("error") for column in columns)


def test_deferral_helps_where_the_model_knows_where_it_is_unsure():
    """The unsure half has three times the noise, and says so."""
    rng = np.random.default_rng(0)
    noise = np.where(np.arange(1_000) < 500, 3.0, 1.0)[:, None]
    means = np.zeros((1_000, 1), dtype=np.float32)
    law = Mixture(means[None], noise[None, ..., None].astype(np.float32), Scale(name="volume"))
    found = points_of(law, np.arange(1_000), np.ones((1_000, 1)), noise * rng.normal(size=(1_000, 1)), rng=rng)
    curve = judged(found).deferral
    assert curve.error[np.isclose(curve.shares, 0.5)].item() < 0.6


def test_it_can_be_drawn(tmp_path):
    figure = judged(points(200)).plot(tmp_path / "calibration.png")
    assert len(figure.axes) == 4
    assert (tmp_path / "calibration.png").stat().st_size > 20_000


def test_nothing_to_judge_is_an_error():
    empty = points(5).keep(np.zeros(10, dtype=bool))
    with pytest.raises(CohortError, match="nothing to judge"):
        judged(empty)


def test_without_its_scale_an_evaluation_is_the_one_in_the_outcomes_unit():
    cohort = cp.load_tumor_growth(40, seed=0)
    model = cp.LastValue(max_horizon=5.0).fit(cohort)
    scaled, plain = (model.evaluate(cohort, by="subgroup", scale=s, progress=False) for s in (4.0, 1.0))
    found, expected = scaled.unscaled().to_frame(), plain.to_frame()
    assert scaled.unscaled().scale == 1.0
    for name in expected.columns:
        if expected[name].dtype.is_numeric():
            np.testing.assert_allclose(found[name], expected[name], rtol=1e-9, err_msg=name)
