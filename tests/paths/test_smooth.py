import tracemalloc

import diffrax
import jax
import jax.numpy as jnp
import numpy as np
import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st
from small_cohorts import cohort_of, tables

from counterpath.cohort import Cohort, choose_grid, fit_scaler
from counterpath.cohort.grid import window_starts
from counterpath.paths import PathError, control_path, partial_steps, path_increments
from counterpath.paths.smooth import Knots, _curve


def path_of(cohort: Cohort, interpolation, *, scaler=None, start=None, grid=None):
    grid = grid or choose_grid(cohort.records, cohort.history_end, cells=4)
    start = window_starts(cohort.records, cohort.history_end, grid.lookback) if start is None else start
    scaler = scaler or fit_scaler(cohort, transform="standard")
    return control_path(cohort, scaler, grid, window_start=start, interpolation=interpolation), grid, start


def one_patient(times, values, **more) -> Cohort:
    frame = pl.DataFrame({"patient": [1] * len(times), "time": times, "y": values} | more)
    return Cohort.from_tables(frame, outcome="y", time_unit="day")


def test_linear_passes_straight_between_records():
    path, _, _ = path_of(one_patient([0.0, 2.0, 10.0], [-1.0, 1.0, 3.0]), "linear")
    scale = fit_scaler(one_patient([0.0, 2.0, 10.0], [-1.0, 1.0, 3.0]), transform="standard").variables[0]
    got = path.values(np.array([[1.0, 6.0]]))[0, :, path.channels.index("y")]
    np.testing.assert_allclose(scale.inverse(got), [0.0, 2.0], atol=1e-9)


def test_hermite_is_diffraxs_own_cubic():
    times, values = np.array([0.0, 1.0, 4.0, 6.0]), np.array([1.0, 3.0, 2.0, 5.0])
    cohort = one_patient(times, values)
    path, grid, _ = path_of(cohort, "hermite")
    scaled = fit_scaler(cohort, transform="standard").variables[0].forward(values)
    queries = np.linspace(0, 6, 13)
    with jax.enable_x64(True):
        ts, ys = jnp.asarray(times / grid.lookback), jnp.asarray(scaled)[:, None]
        reference = diffrax.CubicInterpolation(ts, diffrax.backward_hermite_coefficients(ts, ys))
        expected = [float(reference.evaluate(t)[0]) for t in queries / grid.lookback]
    got = path.values(queries[None])[0, :, path.channels.index("y")]
    np.testing.assert_allclose(got, expected, atol=1e-12)


GAPS = st.lists(st.floats(-6, 6).map(lambda power: 10.0**power), min_size=2, max_size=7)


@given(gaps=st.lists(st.sampled_from([1.0, 1.5, 2.0, 3.0]), min_size=5, max_size=5), data=st.data())
def test_hermite_is_diffraxs_own_while_no_gap_is_over_three_times_the_one_before(gaps, data):
    times = np.concatenate([[0.0], np.cumsum(gaps)])
    values = np.array(data.draw(st.lists(st.floats(-50, 50, width=16), min_size=6, max_size=6)))
    cohort = one_patient(times, values)
    path, grid, _ = path_of(cohort, "hermite")
    scaled = fit_scaler(cohort, transform="standard").variables[0].forward(values)
    queries = np.linspace(0, times[-1], 17)
    with jax.enable_x64(True):
        ts, ys = jnp.asarray(times / grid.lookback), jnp.asarray(scaled)[:, None]
        reference = diffrax.CubicInterpolation(ts, diffrax.backward_hermite_coefficients(ts, ys))
        expected = np.asarray(jax.vmap(reference.evaluate)(jnp.asarray(queries / grid.lookback)))[:, 0]
    got = path.values(queries[None])[0, :, path.channels.index("y")]
    np.testing.assert_allclose(got, expected, atol=1e-9)


@given(gaps=GAPS, data=st.data())
def test_hermite_stays_of_the_size_of_the_data_for_any_spacing(gaps, data):
    """Values leave their range by at most 4/9 of it; what is derived never leaves its own."""
    times = np.concatenate([[0.0], np.cumsum(gaps)])
    times = times[np.concatenate([[True], np.diff(times) > 0])]  # 1e-6 may vanish beside 1e6
    columns = {
        name: data.draw(st.lists(values, min_size=len(times), max_size=len(times)))
        for name, values in (("y", st.floats(-50, 50)), ("x", st.none() | st.floats(-50, 50)))
    }
    columns["x"][0] = 1.0  # a column of nulls has no type
    columns["level"] = data.draw(st.lists(st.sampled_from("ab"), min_size=len(times), max_size=len(times)))
    cohort = one_patient(times, columns["y"], x=columns["x"], level=columns["level"])
    path, grid, start = path_of(cohort, "hermite")
    between = (times[:-1, None] + np.diff(times)[:, None] * np.linspace(0, 1, 13)).ravel()
    found = path.values(np.append(between, times[-1])[None])[0]
    hold = control_path(cohort, fit_scaler(cohort, transform="standard"), grid, window_start=start)
    knots = hold.values(times[None])[0]
    for i, channel in enumerate(path.layout):
        lowest, highest = knots[:, i].min(), knots[:, i].max()
        margin = (4 / 9 if channel.role == "value" else 0.0) * (highest - lowest) + 1e-9
        assert found[:, i].min() >= lowest - margin, channel.name
        assert found[:, i].max() <= highest + margin, channel.name


def test_two_records_minutes_apart_and_then_none_for_months():
    """As in the quinidine study: the slope of eleven minutes is not carried over ten months."""
    times = [0.0, 890.0, 967.32, 967.5, 8066.0, 8100.0]
    cohort = one_patient(times, [1.0, 3.0, 2.0, 4.0, 1.0, 2.0], x=[1.0, None, 2.0, 3.0, None, 2.0])
    path, _, _ = path_of(cohort, "hermite")
    found = path.values(np.linspace(0, 8100, 4_001)[None])[0]
    scaled = fit_scaler(cohort, transform="standard").values(cohort.records.values)
    y, count = found[:, path.channels.index("y")], found[:, path.channels.index("y:count")]
    spread = np.ptp(scaled[:, 0])
    assert scaled[:, 0].min() - 4 / 9 * spread <= y.min() <= y.max() <= scaled[:, 0].max() + 4 / 9 * spread
    assert (count.min(), count.max()) == (1.0, 6.0)
    assert (np.diff(count) >= 0).all()


@pytest.mark.parametrize("interpolation", ["linear", "hermite"])
def test_a_variable_that_is_missing_twice_in_a_row_has_one_curve_across(interpolation):
    """Records of something else between two of its own change nothing."""
    y = [1.0, 3.0, None, None, 2.0, 5.0]
    sparse = one_patient([0.0, 1.0, 1.5, 2.0, 4.0, 6.0], y, x=[0.0, 1.0, 2.0, 3.0, 4.0, 5.0])
    alone = one_patient([0.0, 1.0, 4.0, 6.0], [v for v in y if v is not None])
    queries = np.linspace(0, 6, 61)[None]
    paths = [path_of(cohort, interpolation)[0] for cohort in (sparse, alone)]
    found = [path.values(queries)[..., path.channels.index("y")] for path in paths]
    np.testing.assert_allclose(found[0], found[1], atol=1e-12)


@pytest.mark.parametrize("interpolation", ["linear", "hermite"])
def test_after_its_last_record_a_value_is_held(interpolation):
    cohort = one_patient([0.0, 1.0, 2.0, 6.0, 9.0], [1.0, 2.0, 3.0, 4.0, 5.0], x=[1.0, 5.0, 2.0, None, None])
    path, _, _ = path_of(cohort, interpolation)
    x = path.values(np.linspace(2, 9, 15)[None])[0, :, path.channels.index("x")]
    assert (x == x[0]).all()


@pytest.mark.parametrize("interpolation", ["linear", "hermite"])
def test_a_curve_stays_at_its_nearest_knot_and_without_any_at_the_training_mean(interpolation):
    knots = Knots(np.array([0, 2, 2]), np.array([0.0, 2.0]), np.array([[1.0], [3.0]]))
    found = _curve(interpolation, knots, np.array([[-1.0, 1.0, 5.0], [-1.0, 1.0, 5.0]]))
    np.testing.assert_array_equal(found[..., 0], [[1.0, 2.0, 3.0], [0.0, 0.0, 0.0]])
    close = Knots(np.array([0, 2]), np.array([0.0, 5e-324]), np.array([[1.0], [3.0]]))
    np.testing.assert_array_equal(_curve(interpolation, close, np.array([[-1e9, 0.0, 1e9]]))[0, :, 0], [1.0, 1.0, 3.0])
    nobody = Knots(np.array([0]), np.empty(0), np.empty((0, 1)))
    assert _curve(interpolation, nobody, np.empty((0, 3))).shape == (0, 3, 1)


@pytest.mark.parametrize("interpolation", ["linear", "hermite"])
def test_one_patient_with_very_many_records_does_not_cost_memory_for_everybody(interpolation):
    """Padded to the longest, 2,001 patients with 5,000 knots of eight channels would be 640 MB."""
    many = np.concatenate([np.repeat(np.arange(2_000), 3), np.full(5_000, 2_000)])
    times = np.concatenate([np.tile([0.0, 1.0, 2.0], 2_000), np.arange(5_000) / 100])
    frame = pl.DataFrame({"patient": many, "time": times, "y": np.sin(times), "x": np.cos(times)})
    cohort = Cohort.from_tables(frame, outcome="y", time_unit="day")
    scaler = fit_scaler(cohort, transform="standard")
    queries = np.tile([0.0, 0.5, 1.7, 2.0], (2_001, 1))
    tracemalloc.start()
    path, _, _ = path_of(cohort, interpolation, scaler=scaler)
    found = path.values(queries)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert peak < 40e6
    start = np.zeros(1)
    alone, _, _ = path_of(cohort[[7]], interpolation, scaler=scaler, start=start, grid=path.hold.grid)
    np.testing.assert_array_equal(alone.values(queries[:1])[0], found[7])


@pytest.mark.parametrize("interpolation", ["linear", "hermite"])
def test_a_cut_between_records_would_see_the_future_and_is_refused(interpolation):
    path, grid, start = path_of(one_patient([0.0, 2.0, 10.0], [1.0, 2.0, 3.0]), interpolation)
    with pytest.raises(PathError, match=r"day 5 of patient 1.*use interpolation='hold'"):
        partial_steps(path, grid, start=start, cuts=np.array([[5.0]]))


@pytest.mark.parametrize("interpolation", ["linear", "hermite"])
def test_a_cut_at_a_record_that_lacks_a_variable_is_refused(interpolation):
    cohort = one_patient([0.0, 2.0, 10.0], [1.0, 2.0, 3.0], x=[1.0, None, 4.0])
    path, grid, start = path_of(cohort, interpolation)
    with pytest.raises(PathError, match="would see the next record"):
        partial_steps(path, grid, start=start, cuts=np.array([[2.0]]))


@pytest.mark.parametrize("interpolation", ["linear", "hermite"])
def test_a_history_may_end_between_records(interpolation):
    """The path of a history that was cut knows nothing later: it stays where it was, and time goes on."""
    history = one_patient([0.0, 2.0, 10.0], [1.0, 2.0, 3.0]).until(5.0)
    path, grid, start = path_of(history, interpolation)
    increments = path_increments(path, grid, start=start, end=history.history_end)
    end = increments.initial[0] + increments.steps[0].sum(axis=0)
    at_record = path.values(np.array([[2.0]]))[0, 0]
    names = path.channels
    assert end[names.index("y")] == pytest.approx(at_record[names.index("y")])
    assert end[names.index("time")] == pytest.approx(5.0 / grid.lookback)
    assert end[names.index("y:since")] == pytest.approx(3.0 / grid.lookback)


@pytest.mark.parametrize("interpolation", ["linear", "hermite"])
@given(rows=tables(gaps=False), data=st.data())
def test_at_complete_records_nothing_later_enters(interpolation, rows, data):
    cohort = cohort_of(rows)
    scaler = fit_scaler(cohort, transform="standard")
    first = cohort.records.times[cohort.records.offsets[:-1]]
    cuts = np.array([data.draw(st.sampled_from(list(cohort[[p]].records.times))) for p in cohort.patients])
    grid = choose_grid(cohort.records, cohort.history_end, cells=4)
    whole, _, _ = path_of(cohort, interpolation, scaler=scaler, start=first, grid=grid)
    known, _, _ = path_of(cohort.until(cuts), interpolation, scaler=scaler, start=first, grid=grid)
    queries = first[:, None] + (cuts - first)[:, None] * np.array([0.0, 0.4, 1.0])
    np.testing.assert_allclose(whole.values(queries), known.values(queries), atol=1e-10)


@pytest.mark.parametrize("interpolation", ["hold", "rectilinear", "linear", "hermite"])
@given(gap=st.floats(min_value=5e-324, max_value=1e-3), jump=st.floats(-1e3, 1e3))
def test_nearly_coincident_times_stay_finite(interpolation, gap, jump):
    cohort = one_patient([0.0, gap, 4.0, 9.0], [0.0, jump, 1.0, 2.0])
    path, grid, start = path_of(cohort, interpolation)
    increments = path_increments(path, grid, start=start, end=cohort.history_end)
    assert np.isfinite(increments.steps).all()
    middle = path.values(np.linspace(0, 9, 50)[None])[0, :, path.channels.index("y")]
    scaled = fit_scaler(cohort, transform="standard").values(cohort.records.values)
    assert np.abs(middle).max() <= 20 * max(np.abs(scaled).max(), 1.0)


def test_unknown_interpolation_lists_what_there_is(checker_off):
    cohort = one_patient([0.0, 2.0], [1.0, 2.0])
    with pytest.raises(PathError, match="hold, rectilinear, linear, hermite"):
        path_of(cohort, "spline")
