"""Where the rate of visits is learned: places after each cut, with or without a visit."""

from dataclasses import replace

import numpy as np
import polars as pl
import pytest

import counterpath as cp
from counterpath.cohort.grid import choose_grid
from counterpath.training.cut_times import TARGETS_AT_MOST, candidate_cuts
from counterpath.training.visits import PLACES, visit_interval, with_cuts_for_visits, with_visits


def cohort_of(*visits, end=None):
    """Patients who were seen at these times."""
    names = [f"P{i}" for i in range(len(visits))]
    table = pl.DataFrame(
        {
            "patient": np.repeat(names, [len(times) for times in visits]),
            "time": np.concatenate([np.asarray(times, dtype=float) for times in visits]),
            "y": 1.0,
        }
    )
    cohort = cp.Cohort.from_tables(table, outcome="y", time_unit="day")
    return cohort if end is None else cohort.until(end)


def cuts_of(cohort, max_horizon):
    grid = choose_grid(cohort.records, cohort.history_end, lookback=None, cells=64)
    return candidate_cuts(cohort, grid, max_horizon, "many", np.random.default_rng(0))


@pytest.mark.parametrize(
    ("visits", "max_horizon", "expected"),
    [
        ([[0, 1, 3], [0, 4]], 5.0, 1.0),
        ([[0, 0.25, 1.5]], 5.0, 0.25),
        ([[0, 0.3, 1.0]], 5.0, 0.0),  # 0.3 and 0.7 have no common measure so large
        ([[0, 0.01, 3]], 5.0, 0.0),  # a grid, but far finer than visits are
        ([[0, 0]], 5.0, 0.0),
    ],
)
def test_the_grid_of_visits(visits, max_horizon, expected):
    table = pl.DataFrame({"patient": "A", "time": np.unique(np.concatenate(visits)).astype(float), "y": 1.0})
    cohort = cp.Cohort.from_tables(table, outcome="y", time_unit="day")
    assert visit_interval(cohort, max_horizon) == pytest.approx(expected)


def test_on_a_grid_every_time_up_to_the_end_counts_as_a_visit_or_as_none():
    cohort = cohort_of([0, 1, 3, 6], [0, 2, 3])
    found = cuts_of(cohort, 3.0)
    places = with_visits(cohort, found, 3.0, 1.0, np.random.default_rng(0))
    targets = found.elapsed.shape[-1]
    assert not places.present[..., targets:].any()
    np.testing.assert_array_equal(places.came[..., :targets], 0.0)
    np.testing.assert_array_equal(places.exposure[..., :targets], 0.0)
    seen = [{0, 1, 3, 6}, {0, 2, 3}]
    for patient, cut in np.argwhere(found.is_real):
        days = found.times[patient, cut] + places.elapsed[patient, cut, targets:]
        inside = days <= cohort.history_end[patient]
        came = np.array([day in seen[patient] for day in days])
        np.testing.assert_array_equal(days, found.times[patient, cut] + np.array([1.0, 2.0, 3.0]))
        np.testing.assert_array_equal(places.came[patient, cut, targets:], came & inside)
        np.testing.assert_array_equal(places.exposure[patient, cut, targets:], ~came & inside)


def test_between_days_the_next_days_count():
    cohort = cohort_of([0, 1, 3, 6], [0, 2, 3])
    found = cuts_of(cohort, 3.0)
    later = replace(found, times=found.times + 0.5)
    places = with_visits(cohort, later, 3.0, 1.0, np.random.default_rng(0))
    np.testing.assert_array_equal(places.elapsed[0, 0, -3:], [0.5, 1.5, 2.5])
    np.testing.assert_array_equal(places.came[0, 0, -3:], [1.0, 0.0, 1.0])


def test_without_a_grid_all_visits_count_and_places_stand_for_the_time_that_was_followed():
    """Also where a cut has more visits than targets."""
    rng = np.random.default_rng(1)
    many = np.sort(rng.uniform(0, 10, 4 * TARGETS_AT_MOST))
    cohort = cohort_of(many, [0.0, 0.37, 4.2])
    found = cuts_of(cohort, 5.0)
    places = with_visits(cohort, found, 5.0, 0.0, rng)
    real = found.is_real
    for patient, cut in np.argwhere(real):
        time, end = found.times[patient, cut], cohort.history_end[patient]
        own = cohort.records.times[cohort.records.patient_of_row == patient]
        expected = np.sum((own > time) & (own <= time + 5.0))
        assert places.came[patient, cut].sum() == pytest.approx(expected)
        assert places.exposure[patient, cut].sum() == pytest.approx(min(5.0, end - time))
        assert np.all(places.elapsed[patient, cut, -PLACES:] <= min(5.0, end - time))
    np.testing.assert_array_equal(places.came[~real], 0.0)
    np.testing.assert_array_equal(places.exposure[~real], 0.0)


@pytest.mark.parametrize("max_horizon", [1.0, 3.0])
def test_one_cut_before_the_last_outcome_tells_nothing_of_visits_so_another_does(max_horizon):
    """After the first everybody is seen; after the other a patient is seen as often as on any day."""
    study = cp.simulate_tumor_growth(400, seed=3, observation_gamma=2.0)
    cohort = study.cohort.until(55.0)
    rng = np.random.default_rng(0)
    grid = choose_grid(cohort.records, cohort.history_end, lookback=None, cells=64)
    last = candidate_cuts(cohort, grid, max_horizon, "last", rng, keeps_unfollowed=True)
    found = with_cuts_for_visits(cohort, last, max_horizon, 1.0, rng)
    np.testing.assert_array_equal(found.number, 2)
    np.testing.assert_array_equal(found.times[:, 0], last.times[:, 0])
    np.testing.assert_array_equal(found.came[:, 0] + found.exposure[:, 0], 0.0)
    assert found.present[:, 0].sum() == last.present.sum()
    assert not found.present[:, 1].any()
    np.testing.assert_array_equal(np.isin(found.came + found.exposure, (0.0, 1.0)), True)
    assert np.ptp(found.times[:, 1]) > 45.0
    days = found.times[:, 1, None] + found.elapsed[:, 1]
    chance = np.take_along_axis(study.truth.visit_chance, study.truth.settings.step_of(days), axis=1)
    counts = (found.came + found.exposure)[:, 1] > 0
    seen, expected = found.came[:, 1][counts], chance[counts]
    assert abs(seen.mean() - expected.mean()) < 4 * np.sqrt(np.mean(expected * (1 - expected)) / counts.sum())


def test_without_a_grid_the_further_cut_has_the_visits_that_followed_and_the_time_between():
    cohort = cohort_of([0.0, 0.37, 4.2, 9.1], [0.0, 0.5], end=10.0)
    rng = np.random.default_rng(1)
    grid = choose_grid(cohort.records, cohort.history_end, lookback=None, cells=64)
    found = with_cuts_for_visits(cohort, candidate_cuts(cohort, grid, 2.0, "last", rng), 2.0, 0.0, rng)
    for patient, visits in enumerate(([0.0, 0.37, 4.2, 9.1], [0.0, 0.5])):
        time = found.times[patient, 1]
        expected = sum(time < visit <= time + 2.0 for visit in visits)
        assert found.came[patient, 1].sum() == pytest.approx(expected)
        assert found.exposure[patient, 1].sum() == pytest.approx(2.0)
    assert not found.present[:, 1].any()


def test_who_was_not_followed_has_no_further_cut():
    cohort = cohort_of([0, 1, 3, 6], [2])
    rng = np.random.default_rng(0)
    grid = choose_grid(cohort.records, cohort.history_end, lookback=None, cells=64)
    last = candidate_cuts(cohort, grid, 1.0, "last", rng, keeps_unfollowed=True)
    found = with_cuts_for_visits(cohort, last, 1.0, 1.0, rng)
    np.testing.assert_array_equal(found.number, [2, 0])
    assert np.isfinite(found.times).all()
