import numpy as np
import pytest

from counterpath.cohort import Grid, Plan, fit_scaler, load_example_ward
from counterpath.paths import partial_steps, path_increments, plan_path

GRID = Grid(np.array([0.0, 2.0, 6.0]))


@pytest.fixture(scope="module")
def ward():
    return load_example_ward()


def test_a_dose_now_enters_with_the_first_step(ward):
    today = ward.until(10.0)
    grid = Grid(np.linspace(0.0, 6.0, 7))
    path = plan_path(Plan.dose("fluid") + Plan.dose("fluid", at=3.0), today, fit_scaler(ward), grid=grid)
    zero = np.zeros(len(today))
    increments = path_increments(path, grid, start=zero, end=zero + 6.0)
    count = increments.steps[:, :, path.channels.index("fluid:count")]
    np.testing.assert_array_equal(count, np.tile([1.0, 0, 0, 1.0, 0, 0], (len(today), 1)))
    assert increments.initial.max() == 0.0


def test_a_dose_at_the_horizon_is_not_given_yet(ward):
    """A plan acts on [0, Δ)."""
    today = ward.until(10.0)
    path = plan_path(Plan.dose("fluid", at=3.0), today, fit_scaler(ward), grid=GRID)
    horizons = np.tile([2.5, 3.0, 3.01], (len(today), 1))
    steps = partial_steps(path, GRID, start=np.zeros(len(today)), cuts=horizons)
    np.testing.assert_array_equal(steps.steps[:, :, 0, path.channels.index("fluid:count")][0], [0.0, 0.0, 1.0])
    np.testing.assert_array_equal(steps.cell[0], [1, 1, 1])


def test_plans_that_agree_up_to_a_horizon_have_the_same_path_up_to_it(ward):
    today = ward.until(10.0)
    scaler = fit_scaler(ward)
    short = plan_path(Plan.infusion("norepinephrine", 0.0, 2.0, rate=0.1), today, scaler, grid=GRID)
    longer = plan_path(Plan.infusion("norepinephrine", 0.0, 5.0, rate=0.1), today, scaler, grid=GRID)
    until = np.tile([0.0, 0.5, 2.0], (len(today), 1))
    np.testing.assert_array_equal(short.values(until), longer.values(until))
    after = np.full((len(today), 1), 3.0)
    infused = short.channels.index("norepinephrine:infused")
    assert (short.values(after)[..., infused] < longer.values(after)[..., infused]).all()


def test_continued_and_none_differ_only_for_those_who_have_an_infusion(ward):
    today = ward.until(8.0)
    scaler = fit_scaler(ward)
    at = np.full((len(today), 1), 1.0)
    none = plan_path(Plan.none(), today, scaler, grid=GRID).values(at)
    path = plan_path(Plan.continued(), today, scaler, grid=GRID)
    differs = (path.values(at) != none).any(axis=(1, 2))
    running = np.zeros(len(today), bool)
    running[today.events.patient_of_row[np.isinf(today.events.stop)]] = True
    assert 0 < running.sum() < len(today)
    np.testing.assert_array_equal(differs, running)


def test_the_clock_and_infused_amounts_count_in_longest_horizons(ward):
    today = ward.until(10.0)
    path = plan_path(Plan.infusion("norepinephrine", 0.0, 3.0, rate=0.1), today, fit_scaler(ward), grid=GRID)
    values = dict(zip(path.channels, path.values(np.full((len(today), 1), 4.5))[0, 0], strict=True))
    assert values["elapsed"] == 0.75
    usual = fit_scaler(ward).rates[[t.name for t in ward.schema.treatments].index("norepinephrine")]
    assert values["norepinephrine:infused"] == pytest.approx(0.5 * 0.1 / usual)


def test_timing_tells_doses_of_one_cell_apart(ward):
    """In the cell from 2 to 6: given at its start, at a quarter of it, and just before its end."""
    today = ward.until(10.0)
    found = []
    for time in (2.0, 3.0, 5.0):
        path = plan_path(Plan.dose("fluid", at=time), today, fit_scaler(ward), grid=GRID)
        zero = np.zeros(len(today))
        steps = path_increments(path, GRID, start=zero, end=zero + 6.0).steps
        count, timing = (steps[..., path.channels.index(f"fluid:{role}")] for role in ("count", "timing"))
        np.testing.assert_array_equal(count, np.tile([0.0, 1.0], (len(today), 1)))
        np.testing.assert_array_equal(timing[:, 0], 0.0)
        found.append(timing[:, 1])
    np.testing.assert_array_equal(found, np.repeat([[0.5], [0.25], [-0.25]], len(today), axis=1))
