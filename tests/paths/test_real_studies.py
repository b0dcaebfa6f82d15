"""Paths of real records, whose gaps differ by a thousand within one patient."""

import os
from pathlib import Path

import numpy as np
import polars as pl
import pytest

from counterpath.cohort import Cohort, choose_grid, fit_scaler
from counterpath.cohort.grid import window_starts
from counterpath.paths import INTERPOLATIONS, control_path, path_increments

FOLDER = os.environ.get("COUNTERPATH_DATA")

pytestmark = [
    pytest.mark.data,
    pytest.mark.skipif(not FOLDER, reason="COUNTERPATH_DATA is not set: it names the folder with pkpd/*.csv"),
]


@pytest.fixture(scope="module")
def quinidine() -> Cohort:
    frame = pl.read_csv(
        Path(str(FOLDER)) / "pkpd" / "nlme_Quinidine.csv", null_values=["NA", ""], infer_schema_length=None
    )
    return Cohort.from_frame(
        frame,
        patient="Subject",
        time="time",
        outcome="conc",
        time_unit="hour",
        treatments={"quinidine": "dose"},
        covariates=["Weight", "glyco"],
        changes_only=["Weight", "glyco"],
    )


@pytest.mark.parametrize("interpolation", INTERPOLATIONS)
def test_a_path_of_real_records_stays_with_them(quinidine, interpolation):
    grid = choose_grid(quinidine.records, quinidine.history_end, cells=64)
    start = window_starts(quinidine.records, quinidine.history_end, grid.lookback)
    scaler = fit_scaler(quinidine)
    path = control_path(quinidine, scaler, grid, window_start=start, interpolation=interpolation)
    increments = path_increments(path, grid, start=start, end=quinidine.history_end)
    along = increments.initial[:, None] + np.cumsum(increments.steps, axis=1)
    along = along[:, increments.steps.shape[1] // grid.cells - 1 :: increments.steps.shape[1] // grid.cells]  # at edges
    held = control_path(quinidine, scaler, grid, window_start=start).values(
        np.minimum(start[:, None] + grid.edges, quinidine.history_end[:, None])
    )
    assert np.isfinite(along).all()
    # Counts never exceed what was counted; a cubic leaves the data by at most four ninths of a change.
    for i, name in enumerate(path.channels):
        most = np.abs(held[..., i]).max()
        limit = most + 1e-9 if ":" in name or name == "time" else most + 4 / 9 * np.ptp(held[..., i]) + 0.5
        assert np.abs(along[..., i]).max() <= limit, name
