"""When within a cell something happened: with the counts, the timing channels say it exactly."""

import numpy as np
import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st
from small_cohorts import cohort_of, tables

from counterpath.cohort import Cohort, Grid, fit_scaler
from counterpath.paths import control_path, path_increments

GRID = Grid(np.array([0.0, 5.0, 11.0, 40.0]))


def steps_of(cohort: Cohort, start: np.ndarray):
    """Increments over whole cells, by channel."""
    path = control_path(cohort, fit_scaler(cohort, transform="standard"), GRID, window_start=start)
    increments = path_increments(path, GRID, start=start, end=start + GRID.lookback)
    return {name: increments.steps[:, :, i] for i, name in enumerate(path.channels)}


def total_elapsed(count: np.ndarray, timing: np.ndarray) -> np.ndarray:
    """The sum of the times in each cell: of each, timing is what is left of the cell, less one half."""
    return count * GRID.edges[1:] - (timing + 0.5 * count) * np.diff(GRID.edges)


def summed_by_cell(patient: np.ndarray, elapsed: np.ndarray, cell: np.ndarray, patients: int) -> np.ndarray:
    totals = np.zeros((patients, GRID.cells))
    np.add.at(totals, (patient, cell), elapsed)
    return totals


@given(rows=tables())
def test_count_and_timing_of_doses_give_back_the_mean_time_in_each_cell(rows):
    """And so the exact time of one that is alone."""
    cohort = cohort_of(rows)
    start = cohort.records.times[cohort.records.offsets[:-1]]
    steps = steps_of(cohort, start)
    doses = cohort.events.keep(cohort.events.is_dose)
    elapsed = doses.start - start[doses.patient_of_row]
    inside = (elapsed >= 0) & (elapsed < GRID.lookback)
    cell = np.searchsorted(GRID.edges, elapsed, side="right") - 1
    expected = summed_by_cell(doses.patient_of_row[inside], elapsed[inside], cell[inside], len(cohort))
    found = total_elapsed(steps["pill:count"], steps["pill:timing"])
    np.testing.assert_allclose(found, expected, atol=1e-9)


@given(times=st.lists(st.floats(0.01, 40.0) | st.sampled_from([5.0, 11.0]), max_size=8, unique=True))
def test_count_and_timing_of_records_give_back_the_mean_time_in_each_cell(times):
    """Of those that hold the outcome: the others hold a covariate alone. On an edge, the cell ends with the record."""
    recorded = np.array([0.0, *sorted(times)])
    has = np.arange(len(recorded)) % 3 != 2
    frame = pl.DataFrame({"patient": 1, "time": recorded, "y": np.where(has, np.sin(recorded), np.nan), "x": recorded})
    cohort = Cohort.from_tables(frame.fill_nan(None), outcome="y", time_unit="day", time_zero="as given")
    steps = steps_of(cohort, np.zeros(1))
    seen = recorded[has][1:]  # the first is where the window starts, not in a step
    expected = summed_by_cell(np.zeros(len(seen), dtype=int), seen, GRID.cell_of(seen), 1)
    found = total_elapsed(steps["y:count"], steps["y:timing"])
    np.testing.assert_allclose(found, expected, atol=1e-9)


def test_timing_counts_from_each_patients_own_window():
    """Two patients with the same dose and record, a day after windows that start at other times."""
    frame = pl.DataFrame({"patient": [1, 1, 2, 2], "time": [0.0, 1.0, 7.0, 8.0], "y": [1.0, 2.0, 4.0, 8.0]})
    treatments = pl.DataFrame({"patient": [1, 2], "treatment": "pill", "start": [1.0, 8.0], "dose": 1.0})
    cohort = Cohort.from_tables(frame, treatments, outcome="y", time_unit="day", time_zero="as given")
    steps = steps_of(cohort, np.array([0.0, 7.0]))
    for channel in ("y:timing", "pill:timing"):
        np.testing.assert_allclose(steps[channel], [[0.3, 0.0, 0.0]] * 2)  # four fifths of the cell are left


@pytest.mark.parametrize("interpolation", ["hold", "rectilinear", "linear", "hermite"])
def test_what_is_older_than_the_window_counts_as_at_its_start(interpolation):
    frame = pl.DataFrame({"patient": 1, "time": [0.0, 10.0, 20.0], "y": [1.0, 2.0, 4.0]})
    treatments = pl.DataFrame({"patient": [1, 1], "treatment": "pill", "start": [3.0, 12.0], "dose": 1.0})
    cohort = Cohort.from_tables(frame, treatments, outcome="y", time_unit="day")
    start = np.array([20.0])
    path = control_path(
        cohort, fit_scaler(cohort, transform="standard"), GRID, window_start=start, interpolation=interpolation
    )
    first = path_increments(path, GRID, start=start, end=start).initial[0]
    assert first[path.channels.index("y:timing")] == 1.5
    assert first[path.channels.index("pill:timing")] == 1.0
