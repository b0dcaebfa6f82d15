import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import counterpath as cp
from counterpath.cohort import Grid, Observations, choose_grid
from counterpath.cohort.grid import share_in_shared_cells, window_starts


def records_of(*times):
    """One patient per list of times."""
    offsets = np.cumsum([0, *(len(t) for t in times)]).astype(np.int64)
    flat = np.array([x for t in times for x in sorted(t)], dtype=np.float64)
    return Observations(offsets, flat, np.zeros((len(flat), 1)))


def ends_of(*times):
    return np.array([max(t) for t in times], dtype=np.float64)


def test_few_distinct_times_have_a_cell_each():
    times = [0, 1, 2, 4], [0, 2, 7]
    grid = choose_grid(records_of(*times), ends_of(*times))
    assert grid.edges.tolist() == [0.0, 1.0, 2.0, 4.0, 7.0]
    assert (grid.cells, grid.lookback, grid.typical_width) == (4, 7.0, 1.5)


def test_many_times_give_quantiles():
    times = np.sort(np.random.default_rng(0).exponential(size=1_001))
    times[0] = 0.0
    grid = choose_grid(records_of(times), ends_of(times), cells=10)
    assert grid.cells == 10
    counts = np.bincount(grid.cell_of(times[1:]))
    np.testing.assert_allclose(counts, 100, atol=3)  # edges are rounded up to a fraction of the lookback
    assert not np.isin(grid.edges[1:], times).any()


def test_a_lookback_counts_from_the_end_of_the_history():
    times = [0, 6, 8, 9, 10], [0, 3]
    ends = ends_of(*times)
    assert window_starts(records_of(*times), ends, 4.0).tolist() == [6.0, 0.0]
    assert choose_grid(records_of(*times), ends, lookback=4.0).edges.tolist() == [0.0, 2.0, 3.0, 4.0]


def test_the_longest_window_starts_at_its_first_record_to_the_bit():
    """18.3 - (18.3 - 0.3) is above 0.3."""
    rng = np.random.default_rng(0)
    for _ in range(2_000):
        times = np.unique(np.round(rng.uniform(0, 20, size=rng.integers(2, 12)), 1))
        records, ends = records_of(times), ends_of(times)
        lookback = choose_grid(records, ends).lookback
        assert window_starts(records, ends, lookback)[0] == times[0]


def test_one_time_only_still_makes_a_grid():
    assert choose_grid(records_of([5.0]), ends_of([5.0])).edges.tolist() == [0.0, 1.0]


def test_an_observation_belongs_to_the_cell_that_ends_with_it():
    grid = Grid(np.array([0.0, 1.0, 3.0]))
    assert grid.cell_of(np.array([0.0, 0.5, 1.0, 1.5, 3.0, 9.0])).tolist() == [0, 0, 0, 1, 1, 1]
    assert grid.width_at(np.array([1.0, 1.5])).tolist() == [1.0, 2.0]


def test_what_is_left_of_a_cell_after_a_dose_by_hand():
    """A dose on an edge acts in the later cell, of which all is left; outside, the nearest edge counts."""
    grid = Grid(np.array([0.0, 1.0, 3.0]))
    elapsed = np.array([0.0, 0.25, 1.0, 1.5, 2.5, 3.0, -2.0, 9.0])
    assert grid.share_left(elapsed).tolist() == [1.0, 0.75, 1.0, 0.75, 0.25, 0.0, 1.0, 0.0]
    assert grid.share_left(elapsed.reshape(2, 4)).tolist() == [[1.0, 0.75, 1.0, 0.75], [0.25, 0.0, 1.0, 0.0]]
    assert grid.share_left(np.nextafter(np.array([1.0, 3.0]), 0.0)) == pytest.approx([0.0, 0.0], abs=1e-15)


def test_what_is_left_of_a_cell_after_an_observation_is_of_the_cell_that_ends_with_it():
    grid = Grid(np.array([0.0, 1.0, 3.0]))
    elapsed = np.array([0.0, 0.25, 1.0, 1.5, 3.0, -2.0, 9.0])
    assert grid.share_left(elapsed, side="left").tolist() == [1.0, 0.75, 0.0, 0.75, 0.0, 1.0, 0.0]


def test_share_in_shared_cells_by_hand():
    records = records_of([0, 0.5, 1.0, 3.0], [0, 2.0])
    grid = Grid(np.array([0.0, 1.0, 3.0]))
    # after the window's start: 0.5 and 1.0 share a cell, 3.0 and the other patient's 2.0 are alone
    assert share_in_shared_cells(records, np.array([3.0, 2.0]), grid) == 0.5


@pytest.mark.parametrize(
    ("options", "message"), [({"cells": 0}, "Use 1 or more"), ({"lookback": -1.0}, "not a positive time")]
)
def test_a_grid_that_cannot_be(options, message):
    with pytest.raises(cp.CohortError, match=message):
        choose_grid(records_of([0, 1]), ends_of([0, 1]), **options)


@pytest.mark.parametrize("edges", [[1.0, 2.0], [0.0, 2.0, 2.0], [0.0, np.inf]])
def test_edges_that_cannot_be(edges):
    with pytest.raises(cp.CohortError, match="start at 0, increase and are finite"):
        Grid(np.array(edges))


TIMES = st.lists(st.floats(0, 1e4, allow_subnormal=False, width=32), min_size=1, max_size=30, unique=True)


@given(st.lists(TIMES, min_size=1, max_size=5), st.integers(1, 12), st.none() | st.floats(0.01, 1e4))
def test_edges_increase_from_zero_to_the_lookback(times, cells, lookback):
    grid = choose_grid(records_of(*times), ends_of(*times), lookback=lookback, cells=cells)
    assert grid.edges[0] == 0.0
    assert (np.diff(grid.edges) > 0).all()
    assert 1 <= grid.cells <= cells
    if lookback is not None:
        assert grid.lookback == lookback


@given(TIMES, TIMES)
def test_the_cell_and_what_is_left_of_it_say_when_a_dose_was_given(edges, elapsed):
    edges = np.unique([0.0, *edges, 2e4])
    grid, elapsed = Grid(edges), np.array(elapsed)
    left = grid.share_left(elapsed)
    assert np.all((left > 0) & (left <= 1))
    assert np.all(left[np.isin(elapsed, edges)] == 1)
    cell = np.searchsorted(edges, elapsed, side="right") - 1
    np.testing.assert_allclose(edges[cell + 1] - left * np.diff(edges)[cell], elapsed, rtol=1e-9, atol=1e-9)


@given(st.lists(TIMES, min_size=1, max_size=5), st.integers(1, 12), st.integers(-8, 8))
def test_another_power_of_two_as_unit_scales_the_edges_exactly(times, cells, power):
    times = [[t for t in some if t == 0 or t > 1e-6] or [0.0] for some in times]
    factor = 2.0**power
    scaled = [[t * factor for t in some] for some in times]
    grid = choose_grid(records_of(*times), ends_of(*times), cells=cells)
    other = choose_grid(records_of(*scaled), ends_of(*scaled), cells=cells)
    if max(max(some) - min(some) for some in times) > 0:  # else the one cell has width 1 in any unit
        np.testing.assert_array_equal(other.edges, grid.edges * factor)
