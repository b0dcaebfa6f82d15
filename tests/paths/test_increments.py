import numpy as np
import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st
from small_cohorts import cohort_of, tables

from counterpath.cohort import Cohort, Grid, choose_grid, fit_scaler
from counterpath.cohort.grid import window_starts
from counterpath.paths import INTERPOLATIONS, PathError, control_path, partial_steps, path_increments

COARSE = Grid(np.array([0.0, 5.0, 11.0, 40.0]))  # several records share a cell


def path_of(cohort: Cohort, grid: Grid, start: np.ndarray, interpolation="hold", scaler=None):
    scaler = scaler or fit_scaler(cohort, transform="standard")
    return control_path(cohort, scaler, grid, window_start=start, interpolation=interpolation)


@pytest.mark.parametrize("interpolation", INTERPOLATIONS)
@given(rows=tables(), cells=st.sampled_from([1, 3, 64]))
def test_increments_sum_to_end_minus_start(interpolation, rows, cells):
    cohort = cohort_of(rows)
    grid = choose_grid(cohort.records, cohort.history_end, cells=cells)
    start = window_starts(cohort.records, cohort.history_end, grid.lookback)
    path = path_of(cohort, grid, start, interpolation)
    increments = path_increments(path, grid, start=start, end=cohort.history_end)
    end = path.values(cohort.history_end[:, None])[:, 0]
    np.testing.assert_allclose(increments.initial + increments.steps.sum(axis=1), end, atol=1e-9)
    length = (cohort.history_end - start) / grid.lookback
    np.testing.assert_allclose(increments.durations.sum(axis=1), length, atol=1e-12)


@given(rows=tables(), data=st.data())
def test_nothing_up_to_a_cut_depends_on_anything_after_it(rows, data):
    """To the bit, with cuts inside cells, at records and at doses, for hold and rectilinear."""
    cohort = cohort_of(rows)
    scaler = fit_scaler(cohort, transform="standard")
    first = cohort.records.times[cohort.records.offsets[:-1]]
    moments = [[*cohort[[p]].records.times, *cohort[[p]].events.start, 3.3, 7.77, 20.0] for p in cohort.patients]
    cuts = np.array([data.draw(st.sampled_from([t for t in m if t >= f])) for m, f in zip(moments, first, strict=True)])
    history = cohort.until(cuts)
    for interpolation in ("hold", "rectilinear"):
        whole = path_of(cohort, COARSE, first, interpolation, scaler)
        known = path_of(history, COARSE, first, interpolation, scaler)
        earlier = first[:, None] + (cuts - first)[:, None] * np.array([0.0, 0.3, 0.9, 1.0])
        earlier[:, -1] = cuts
        np.testing.assert_array_equal(whole.values(earlier), known.values(earlier))
        step = partial_steps(whole, COARSE, start=first, cuts=cuts[:, None])
        expected = partial_steps(known, COARSE, start=first, cuts=cuts[:, None])
        np.testing.assert_array_equal(step.steps, expected.steps)
        np.testing.assert_array_equal(step.cell, expected.cell)


@pytest.mark.parametrize("interpolation", ["hold", "rectilinear"])
@given(rows=tables())
def test_whole_cells_and_a_partial_step_reach_the_cut(interpolation, rows):
    """Full steps before the cut's cell plus the partial step are the increments of the history that ends there."""
    cohort = cohort_of(rows)
    scaler = fit_scaler(cohort, transform="standard")
    first = cohort.records.times[cohort.records.offsets[:-1]]
    cuts = first + 6.25
    whole = path_of(cohort, COARSE, first, interpolation, scaler)
    # Everybody's window reaches the end of the grid, so that whole cells are known after the cut too.
    full = path_increments(whole, COARSE, start=first, end=first + COARSE.lookback)
    part = partial_steps(whole, COARSE, start=first, cuts=cuts[:, None])
    known = path_of(cohort.until(cuts), COARSE, first, interpolation, scaler)
    history = path_increments(known, COARSE, start=first, end=cuts)
    parts = part.steps.shape[2]
    assert (part.cell == 1).all()
    np.testing.assert_array_equal(history.steps[:, :parts], full.steps[:, :parts])
    np.testing.assert_array_equal(history.steps[:, parts : 2 * parts], part.steps[:, 0])
    np.testing.assert_array_equal(history.durations[:, parts : 2 * parts], part.durations[:, 0])
    np.testing.assert_array_equal(history.steps[:, 2 * parts :], 0.0)


@given(rows=tables())
def test_a_patients_path_does_not_depend_on_who_else_is_there(rows):
    cohort = cohort_of(rows)
    scaler = fit_scaler(cohort, transform="standard")
    start = cohort.records.times[cohort.records.offsets[:-1]]
    together = path_increments(
        path_of(cohort, COARSE, start, scaler=scaler), COARSE, start=start, end=cohort.history_end
    )
    for i in range(len(cohort)):
        alone = cohort[i : i + 1]
        own = path_increments(
            path_of(alone, COARSE, start[i : i + 1], scaler=scaler),
            COARSE,
            start=start[i : i + 1],
            end=alone.history_end,
        )
        np.testing.assert_array_equal(own.steps[0], together.steps[i])
        np.testing.assert_array_equal(own.initial[0], together.initial[i])


@pytest.mark.parametrize("interpolation", ["hold", "rectilinear"])
@given(rows=tables(), shift=st.integers(-40, 40), scale=st.sampled_from([0.25, 2.0, 1024.0]))
def test_shifting_or_rescaling_time_changes_nothing_on_the_models_clock(interpolation, rows, shift, scale):
    """Shifts and powers of two are exact in binary, so the path is the same to the bit."""
    cohort = cohort_of(rows)
    observed, given_ = cohort.observations, cohort.treatments
    moved = Cohort.from_tables(
        observed.with_columns((observed["time"] + shift) * scale),
        given_.with_columns((given_["start"] + shift) * scale, (given_["stop"] + shift) * scale),
        outcome="y",
        time_unit="day",
        time_zero="as given",
    )
    steps = []
    for each in (cohort, moved):
        grid = choose_grid(each.records, each.history_end, cells=3)
        start = window_starts(each.records, each.history_end, grid.lookback)
        path = path_of(each, grid, start, interpolation)
        steps.append(path_increments(path, grid, start=start, end=each.history_end))
    np.testing.assert_array_equal(steps[0].steps, steps[1].steps)
    np.testing.assert_array_equal(steps[0].initial, steps[1].initial)
    np.testing.assert_array_equal(steps[0].durations, steps[1].durations)


def test_what_is_older_than_the_lookback_is_in_the_first_state():
    cohort = _three_visits()
    grid = Grid(np.array([0.0, 2.0, 6.0]))
    start = window_starts(cohort.records, cohort.history_end, grid.lookback)
    assert start[0] == 14.0
    path = path_of(cohort, grid, start)
    increments = path_increments(path, grid, start=start, end=cohort.history_end)
    names = path.channels
    assert increments.initial[0, names.index("y:count")] == 2.0
    assert increments.initial[0, names.index("y:since")] == pytest.approx(4.0 / 6.0)
    assert increments.initial[0, names.index("time")] == 0.0
    np.testing.assert_array_equal(increments.steps[0, :, names.index("y:count")], [0.0, 1.0])


@pytest.mark.parametrize("interpolation", INTERPOLATIONS)
def test_every_record_may_be_a_cut_with_times_in_tenths(interpolation):
    rng = np.random.default_rng(0)
    for _ in range(50):
        times = np.unique(np.round(rng.uniform(0, 20, size=rng.integers(2, 12)), 1))
        cohort = Cohort.from_tables(
            pl.DataFrame({"patient": 1, "time": times, "y": np.sin(times)}),
            outcome="y",
            time_unit="day",
            time_zero="as given",
        )
        grid = choose_grid(cohort.records, cohort.history_end)
        start = window_starts(cohort.records, cohort.history_end, grid.lookback)
        path = path_of(cohort, grid, start, interpolation)
        assert (partial_steps(path, grid, start=start, cuts=times[None]).durations >= 0).all()


def test_a_window_that_starts_a_rounding_after_its_end_has_no_length():
    cohort = _three_visits()
    grid, end = Grid(np.array([0.0, 2.0, 20.0])), np.array([10.0])
    start = np.nextafter(end, 11.0)
    path = path_of(cohort, grid, start)
    increments = path_increments(path, grid, start=start, end=end)
    np.testing.assert_array_equal(increments.durations, 0.0)
    np.testing.assert_array_equal(increments.steps, 0.0)
    np.testing.assert_array_equal(partial_steps(path, grid, start=start, cuts=end[:, None]).durations, 0.0)
    with pytest.raises(PathError, match="A window of -1 does not fit"):
        path_increments(path, grid, start=end + 1.0, end=end)


def test_a_window_longer_than_the_grid_is_refused():
    cohort = _three_visits()
    grid = Grid(np.array([0.0, 2.0, 6.0]))
    start = np.array([0.0])
    with pytest.raises(PathError, match="does not fit the grid's 6"):
        path_increments(path_of(cohort, grid, start), grid, start=start, end=cohort.history_end)


def _three_visits() -> Cohort:
    frame = pl.DataFrame({"patient": [1, 1, 1], "time": [0.0, 10.0, 20.0], "y": [1.0, 2.0, 4.0]})
    return Cohort.from_tables(frame, outcome="y", time_unit="day")
