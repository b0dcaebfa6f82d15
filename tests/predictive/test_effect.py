from dataclasses import replace

import numpy as np
import polars as pl
import pytest

import counterpath as cp
from counterpath.predictive import Effect, Ranking, Support
from counterpath.predictive.effect import NOT_RANDOMISED

HISTORY = cp.simulate_tumor_growth(12, seed=0).cohort.until(40.0)
PLAN, NONE = cp.Plan.dose("chemotherapy"), cp.Plan.none()


def effect(draws) -> Effect:
    draws = np.asarray(draws, dtype=np.float64)
    horizons = np.arange(1.0, draws.shape[2] + 1)
    return Effect(HISTORY[: draws.shape[1]], PLAN, NONE, horizons, HISTORY.schema.outcomes[0], draws)


@pytest.fixture
def random_effect():
    return effect(np.random.default_rng(0).normal(-1.0, 2.0, size=(199, 12, 2)))


def test_summary_has_a_line_per_patient_and_horizon(random_effect):
    frame = random_effect.summary(0.9, better="lower")
    assert frame.columns == ["patient", "elapsed", "effect", "lower", "upper", "probability_of_benefit"]
    np.testing.assert_array_equal(frame["effect"], random_effect.mean.ravel())
    ordered = np.sort(random_effect.draws, axis=0)
    np.testing.assert_allclose(frame["lower"], ordered[9].ravel())  # order statistic 0.05 · 200
    np.testing.assert_allclose(frame["upper"], ordered[189].ravel())
    assert "probability_of_benefit" not in random_effect.summary().columns


def test_benefit_asks_which_direction_is_better(checker_off):
    found = effect([[[-2.0]], [[-1.0]], [[0.0]], [[3.0]]])
    assert found.probability_of_benefit(better="lower").item() == pytest.approx((2 + 0.5) / 4)
    assert found.probability_of_benefit(better="higher").item() == pytest.approx((1 + 0.5) / 4)
    assert found.probability_of_benefit(better="lower", margin=1.5).item() == pytest.approx(1 / 4)
    with pytest.raises(ValueError, match="'lower' or 'higher'"):
        found.probability_of_benefit(better="down")
    with pytest.raises(ValueError, match="negative"):
        found.probability_of_benefit(better="lower", margin=-1.0)


def test_the_average_is_over_patients_within_each_draw(random_effect):
    """Its interval is narrower than the mean of the patients' own, as errors of patients partly cancel."""
    frame = random_effect.average(better="lower")
    inside = random_effect.draws.mean(axis=1)
    np.testing.assert_allclose(frame["effect"], inside.mean(axis=0))
    lower, upper = random_effect.interval()
    assert (frame["upper"] - frame["lower"]).max() < 0.5 * (upper - lower).mean()
    assert frame["patients"].to_list() == [12, 12]


def test_subgroups_go_by_a_static_covariate_or_by_masks(random_effect):
    table = HISTORY.static
    name = next(c for c in table.columns if c != "patient" and table[c].n_unique() < 10)
    frame = random_effect.average(by=name)
    assert frame["subgroup"].unique(maintain_order=True)[0] == "all"
    sizes = frame.filter((pl.col("subgroup") != "all") & (pl.col("elapsed") == 1.0))["patients"]
    assert sizes.sum() == 12
    first = np.arange(12) < 3
    masked = random_effect.average(by={"first three": first}).filter(pl.col("subgroup") == "first three")
    np.testing.assert_allclose(masked["effect"], random_effect.mean[:3].mean(axis=0))


@pytest.mark.parametrize(
    ("by", "message"),
    [
        ("no such column", "no static covariate"),
        ({"short": np.ones(3, dtype=bool)}, "'short' is not a mask"),
        ({"nobody": np.zeros(12, dtype=bool)}, "'nobody' has no patient"),
    ],
)
def test_subgroups_that_cannot_be_made(random_effect, by, message):
    with pytest.raises(cp.CohortError, match=message):
        random_effect.average(by=by)


def test_the_label_depends_on_how_treatment_was_given(random_effect):
    assert "randomised" in random_effect.label
    arms = cp.simulate_tumor_growth(3, seed=0, assignment="arms").cohort.until(40.0)
    other = Effect(arms, PLAN, NONE, np.array([1.0]), arms.schema.outcomes[0], np.zeros((2, 3, 1)))
    assert arms.schema.randomised or other.label == NOT_RANDOMISED
    assert "unmeasured confounding" in other.assumptions


def test_effects_can_be_drawn(random_effect, tmp_path):
    figure = random_effect.plot(better="lower", path=tmp_path / "effects.png")
    assert len(figure.axes) == 2
    assert (tmp_path / "effects.png").stat().st_size > 10_000


# Ranking


def ranking(expected, better="lower") -> Ranking:
    expected = np.asarray(expected, dtype=np.float64)
    plans = {"a": PLAN, "b": NONE, "c": PLAN}
    names = dict(list(plans.items())[: len(expected)])
    horizons = np.arange(1.0, expected.shape[3] + 1)
    return Ranking(HISTORY[: expected.shape[2]], names, horizons, HISTORY.schema.outcomes[0], better, expected)


def test_the_best_plan_is_the_one_with_the_best_expectation_in_most_draws():
    expected = np.array([[1.0, 2.0, 3.0, 4.0], [2.0, 1.0, 4.0, 5.0]]).reshape(2, 4, 1, 1)
    np.testing.assert_allclose(ranking(expected).probability_best.ravel(), [0.75, 0.25])
    np.testing.assert_allclose(ranking(expected, "higher").probability_best.ravel(), [0.25, 0.75])


def test_plans_that_are_the_same_share_the_first_place():
    expected = np.zeros((3, 5, 2, 1))
    np.testing.assert_allclose(ranking(expected).probability_best, 1 / 3)


def test_ranking_frames_and_figure(tmp_path):
    found = ranking(np.random.default_rng(0).normal(size=(3, 50, 12, 2)))
    frame = found.summary()
    assert frame.columns == ["patient", "elapsed", "plan", "mean", "probability_best"]
    per_patient = frame.group_by("patient", "elapsed").agg(pl.col("probability_best").sum())
    np.testing.assert_allclose(per_patient["probability_best"], 1.0)
    row = frame.filter(
        (pl.col("patient") == HISTORY.patients[3]) & (pl.col("elapsed") == 2.0) & (pl.col("plan") == "b")
    )
    assert row["mean"].item() == pytest.approx(found.expected[1, :, 3, 1].mean())
    average = found.average()
    shares = average.group_by("elapsed").agg(pl.col("share_of_patients").sum())
    np.testing.assert_allclose(shares["share_of_patients"], 1.0)
    found.plot(path=tmp_path / "ranking.png")
    assert (tmp_path / "ranking.png").stat().st_size > 10_000


def test_a_long_label_has_lines_as_wide_as_the_picture():
    """Else it would squeeze the axes."""
    unseen = np.zeros((12, 1), dtype=np.int64)
    no = np.zeros(unseen.shape, dtype=bool)
    support = Support(unseen, np.array([100]), no, no, no, np.full(unseen.shape, np.nan))
    found = replace(effect(np.random.default_rng(0).normal(size=(20, 12, 1))), support=support)
    figure = found.plot()
    said = figure.get_suptitle()
    assert said.replace("\n", " ") == found.label
    assert "never observed for all patients" in found.label
    assert max(map(len, said.split("\n"))) <= 13 * figure.get_figwidth()
