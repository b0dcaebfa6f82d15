"""Models learn from cohorts that have little: no static covariates, no treatments; and from several outcomes."""

import numpy as np
import polars as pl
import pytest
from small_models import small_bncde, small_tecde

import counterpath as cp

pytestmark = pytest.mark.slow  # models are compiled and trained


def visits(patients=16, days=12, seed=0):
    """Two outcomes that fall under a pill, seen on most days."""
    rng = np.random.default_rng(seed)
    rows = []
    for patient in range(patients):
        y, z = rng.normal(5.0, 1.0, 2)
        for day in range(days):
            rows.append((patient, float(day), y, z if day % 2 else None))
            y, z = 0.9 * y + 0.1 * rng.normal() - (day == 6), 0.95 * z + 0.1 * rng.normal()
    return pl.DataFrame(rows, schema=["patient", "time", "y", "z"], orient="row")


def pills(patients=16):
    given = {"patient": list(range(0, patients, 2)), "treatment": "pill", "time": 6.5, "dose": 1.0}
    return pl.DataFrame(given)


def fitted(kind, **options):
    cohort = cp.Cohort.from_tables(visits(), time_unit="day", **options)
    return kind(epochs=2).fit(cohort[:12], cohort[12:], progress=False), cohort[12:]


def test_without_static_covariates(tmp_path):
    """As from two tables, of visits and of doses, and nothing else."""
    model, others = fitted(small_bncde, treatments=pills(), outcome="y")
    today = others.until(6.0)
    asked = {"horizons": [1.0, 5.0], "draws": 8, "progress": False}
    prediction = model.predict(today, cp.Plan.repeat("pill", every=1.0, times=2), **asked)
    assert prediction.mean.shape == (4, 2)
    assert np.isfinite(prediction.mean).all()
    model.save(tmp_path / "model.safetensors")
    again = cp.load(tmp_path / "model.safetensors").predict(today, cp.Plan.repeat("pill", every=1.0, times=2), **asked)
    np.testing.assert_array_equal(again.mean, prediction.mean)
    assert np.isfinite(model.evaluate(others).scores[0].crps.value)


def test_without_treatments_too():
    model, others = fitted(small_tecde, outcome="y")
    assert np.isfinite(model.predict(others.until(6.0), cp.Plan.none(), horizons=[2.0], progress=False).mean).all()


def test_several_outcomes_at_once(tmp_path):
    model, others = fitted(small_bncde, treatments=pills(), outcome=["y", "z"])
    today, pill = others.until(6.0), cp.Plan.repeat("pill", every=1.0, times=2)
    asked = {"horizons": [1.0, 5.0], "draws": 8, "progress": False}
    prediction = model.predict(today, pill, **asked)
    assert prediction.mean.shape == (4, 2, 2)
    assert np.isfinite(prediction.mean).all()
    assert (prediction["y"].mean != prediction["z"].mean).all()
    model.save(tmp_path / "model.safetensors")
    again = cp.load(tmp_path / "model.safetensors").predict(today, pill, **asked)
    np.testing.assert_array_equal(again.mean, prediction.mean)
    effect = model.effect(today, pill, versus=cp.Plan.none(), outcome="z", **asked)
    assert np.isfinite(effect.mean).all()
    for name in ("y", "z"):
        evaluation = model.evaluate(others, outcome=name)
        assert evaluation.outcome.name == name
        assert np.isfinite(evaluation.scores[0].crps.value)
