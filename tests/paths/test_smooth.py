import diffrax
import jax
import jax.numpy as jnp
import numpy as np
import polars as pl
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from small_cohorts import cohort_of, tables

from counterpath.cohort import Cohort, choose_grid, fit_scaler
from counterpath.cohort.grid import window_starts
from counterpath.paths import PathError, control_path, partial_steps, path_increments


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
@settings(max_examples=25)  # compiles for every new shape
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
@settings(max_examples=25)  # compiles for every new shape
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
