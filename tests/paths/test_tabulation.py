import numpy as np
import pytest

import counterpath as cp
from counterpath.cohort import Grid, fit_scaler
from counterpath.paths import PathError, control_path
from counterpath.paths.tabulation import Tabulation

GRID = Grid(np.array([0.0, 5.0, 11.0, 20.0, 60.0]))


def test_steps_before_a_cut_and_the_partial_step_lead_to_the_path_at_the_cut():
    """Many cuts in one window, as in training: inside of cells, at an edge, and at the window's start."""
    cohort = cp.simulate_tumor_growth(5, seed=0).cohort
    scaler = fit_scaler(cohort, transform="standard")
    options = {"plain_path": False, "corrects_last": True}
    tabulation = Tabulation.unscaled(cohort.schema, scaler, GRID, GRID, "hold", **options)
    cuts = np.broadcast_to([0.0, 3.0, 11.0, 17.5, 40.0], (5, 5)).copy()
    arrays = tabulation.windows(cohort, cuts)
    reached = np.cumsum(np.concatenate([np.zeros_like(arrays.steps[:, :1]), arrays.steps], axis=1), axis=1)
    found = np.take_along_axis(reached, arrays.cut_step[:, :, None], axis=1) + arrays.cut_increments
    path = control_path(cohort, scaler, GRID, window_start=np.zeros(5))
    np.testing.assert_allclose(found, path.values(cuts) - path.values(cuts[:, :1]), atol=1e-9)


@pytest.mark.parametrize("interpolation", ["rectilinear", "linear", "hermite"])
def test_only_hold_serves_many_cuts_with_one_window(interpolation):
    cohort = cp.simulate_tumor_growth(5, seed=0).cohort
    scaler = fit_scaler(cohort, transform="standard")
    options = {"plain_path": False, "corrects_last": True}
    tabulation = Tabulation.unscaled(cohort.schema, scaler, GRID, GRID, interpolation, **options)
    with pytest.raises(PathError, match="needs one for each"):
        tabulation.windows(cohort, np.full((5, 2), 10.0))
