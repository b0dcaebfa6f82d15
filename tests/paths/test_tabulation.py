from dataclasses import replace

import numpy as np
import pytest

import counterpath as cp
from counterpath.cohort import Grid, fit_scaler
from counterpath.paths import PathError, control_path, plan_path
from counterpath.paths.channels import history_channels, plan_channels
from counterpath.paths.linear_response import fit_linear_response
from counterpath.paths.tabulation import Tabulation

GRID = Grid(np.array([0.0, 5.0, 11.0, 20.0, 60.0]))


def test_steps_before_a_cut_and_the_partial_step_lead_to_the_path_at_the_cut():
    """Many cuts in one window, as in training: inside of cells, at an edge, and at the window's start."""
    cohort = cp.simulate_tumor_growth(5, seed=0).cohort
    scaler = fit_scaler(cohort, transform="standard")
    response = fit_linear_response(cohort, scaler)
    options = {"plain_path": False, "corrects_last": True, "response": response}
    tabulation = Tabulation.unscaled(cohort.schema, scaler, GRID, GRID, "hold", **options)
    cuts = np.broadcast_to([0.0, 3.0, 11.0, 17.5, 40.0], (5, 5)).copy()
    arrays = tabulation.windows(cohort, cuts)
    reached = np.cumsum(np.concatenate([np.zeros_like(arrays.steps[:, :1]), arrays.steps], axis=1), axis=1)
    found = np.take_along_axis(reached, arrays.cut_step[:, :, None], axis=1) + arrays.cut_increments
    path = control_path(cohort, scaler, GRID, window_start=np.zeros(5), response=response)
    np.testing.assert_allclose(found, path.values(cuts) - path.values(cuts[:, :1]), atol=1e-9)


# What a state carries along


@pytest.fixture(scope="module")
def ward_and_scales():
    """Patients with static covariates, and scales of all sizes."""
    ward = cp.load_example_ward()
    grids = Grid(np.array([0.0, 3.0, 8.0, 30.0])), Grid(np.array([0.0, 2.0, 6.0]))
    scaler = fit_scaler(ward)
    options = {"plain_path": False, "corrects_last": True, "response": fit_linear_response(ward, scaler)}
    plain = Tabulation.unscaled(ward.schema, scaler, *grids, "hold", **options)
    rng = np.random.default_rng(0)
    names = ("first_scale", "step_scale", "plan_step_scale", "plan_level_scale")
    scales = {name: rng.uniform(0.1, 10.0, size=getattr(plain, name).shape) for name in names}
    return ward, plain, replace(plain, **scales)


def reached(steps, which, increments):
    """The sum of all steps before this one, and the part of it up to the cut or horizon."""
    before = np.cumsum(np.concatenate([np.zeros_like(steps[:, :1]), steps], axis=1), axis=1)
    return np.take_along_axis(before, which[:, :, None], axis=1) + increments


def test_carried_rows_keep_what_is_known_up_to_date_in_its_own_units(ward_and_scales):
    """X(cut) and what is static, each divided by its usual size, at an edge and inside of cells."""
    ward, plain, scaled = ward_and_scales
    first = ward.records.times[ward.records.offsets[:-1]]
    cuts = first[:, None] + np.array([0.0, 1.1, 3.0, 7.7, 12.0])
    arrays = scaled.windows(ward, cuts)
    carry, _ = scaled.carried_units()
    moved = reached(arrays.steps, arrays.cut_step, arrays.cut_increments)
    found = arrays.first[:, None] + moved @ carry.T.astype(np.float64)
    known = plain.windows(ward, cuts).first
    channels = len(scaled.step_scale)
    assert known.shape[1] > channels  # something is static
    path = control_path(ward, plain.scaler, plain.grid, window_start=first, response=plain.response)
    static = np.broadcast_to(known[:, None, channels:], (*cuts.shape, known.shape[1] - channels))
    expected = np.concatenate([path.values(cuts), static], axis=2) / scaled.first_scale
    np.testing.assert_allclose(found, expected, rtol=1e-5, atol=1e-5)


def test_carried_rows_of_the_plan_add_up_what_has_been_given(ward_and_scales):
    ward, plain, scaled = ward_and_scales
    today = ward.until(10.0)
    plan = cp.Plan.dose("fluid", at=1.5) + cp.Plan.infusion("norepinephrine", 0.0, 4.0, rate=0.1)
    horizons = np.tile([0.7, 2.0, 3.3, 6.0], (len(today), 1))
    arrays = scaled.plans(plan.resolve(today), horizons)
    _, carry = scaled.carried_units()
    found = reached(arrays.steps, arrays.horizon_step, arrays.horizon_increments) @ carry.T.astype(np.float64)
    known = len(scaled.first_scale)
    np.testing.assert_array_equal(found[..., :known], 0.0)  # the plan does not change what was known at the cut
    path = plan_path(plan, today, plain.scaler, grid=plain.plan_grid)
    np.testing.assert_allclose(
        found[..., known:], path.values(horizons) / scaled.plan_level_scale, rtol=1e-5, atol=1e-6
    )


def test_a_plain_path_has_only_time_values_and_treatments():
    ward = cp.load_example_ward()
    options = {"plain_path": True, "corrects_last": True}
    tabulation = Tabulation.unscaled(ward.schema, fit_scaler(ward), GRID, GRID, "hold", **options)
    made = {"slope", "since", "unseen", "timing", "answered", "response", "exposure", "count", "drift", "effect"}
    for channels, scale in (
        (history_channels(ward.schema), tabulation.step_scale),
        (plan_channels(ward.schema), tabulation.plan_step_scale),
    ):
        assert len(scale) == sum(channel.role not in made for channel in channels) < len(channels)


@pytest.mark.parametrize("interpolation", ["rectilinear", "linear", "hermite"])
def test_only_hold_serves_many_cuts_with_one_window(interpolation):
    cohort = cp.simulate_tumor_growth(5, seed=0).cohort
    scaler = fit_scaler(cohort, transform="standard")
    options = {"plain_path": False, "corrects_last": True}
    tabulation = Tabulation.unscaled(cohort.schema, scaler, GRID, GRID, interpolation, **options)
    with pytest.raises(PathError, match="needs one for each"):
        tabulation.windows(cohort, np.full((5, 2), 10.0))
