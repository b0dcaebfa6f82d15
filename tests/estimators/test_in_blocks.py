"""Many patients are predicted some at a time, which must not show."""

import jax
import numpy as np
import pytest
from small_models import fit_small, small_tecde

import counterpath as cp
from counterpath.estimators import neural

pytestmark = pytest.mark.slow  # a model is compiled and trained

PLAN = cp.Plan.repeat("chemotherapy", every=1.0, times=3)
TODAY = cp.simulate_tumor_growth(70, seed=3).cohort.until(50.0)


@pytest.fixture(scope="module")
def model():
    cohort = cp.simulate_tumor_growth(60, seed=5).cohort
    return fit_small(small_tecde(epochs=2)).calibrate(cohort, progress=False)


@pytest.mark.parametrize("recalibrated", [False, True])
@pytest.mark.parametrize("keep", ["draws", "summary"])
def test_blocks_of_patients_give_what_all_at_once_give(model, monkeypatch, keep, recalibrated):
    def ask():
        return model.predict(TODAY, PLAN, horizons=[1, 4], draws=10, keep=keep, recalibrated=recalibrated).to_frame()

    once = ask()
    monkeypatch.setattr(neural, "PATIENTS_AT_ONCE", 16)
    blocks = ask()
    assert blocks["patient"].equals(once["patient"])
    for column in once.columns[3:]:
        np.testing.assert_allclose(blocks[column], once[column], rtol=1e-4, atol=1e-5)  # other shapes round otherwise


def test_effects_in_blocks_are_those_of_all_at_once(model, monkeypatch):
    once = model.effect(TODAY, PLAN, versus=cp.Plan.none(), horizons=[2, 5], draws=10).draws
    monkeypatch.setattr(neural, "PATIENTS_AT_ONCE", 16)
    blocks = model.effect(TODAY, PLAN, versus=cp.Plan.none(), horizons=[2, 5], draws=10).draws
    np.testing.assert_allclose(blocks, once, rtol=1e-3, atol=1e-4)  # differences of numbers that are rounded


def test_plans_per_patient_stay_with_their_patients(model, monkeypatch):
    chosen = {patient: PLAN if i % 3 == 0 else cp.Plan.none() for i, patient in enumerate(TODAY.patients)}
    monkeypatch.setattr(neural, "PATIENTS_AT_ONCE", 16)
    mixed = model.predict(TODAY, cp.Plan.per_patient(chosen), horizons=[5]).mean
    treated, untreated = (model.predict(TODAY, plan, horizons=[5]).mean for plan in (PLAN, cp.Plan.none()))
    expected = np.where((np.arange(len(TODAY)) % 3 == 0)[:, None], treated, untreated)
    np.testing.assert_allclose(mixed, expected, rtol=1e-5)


def test_ragged_patients_and_horizons_compile_nothing_at_all(model, caplog):
    """Patients of other numbers, up to other days, at other horizons, under other plans: nothing is compiled."""

    def compilations(patients, day, horizons, plan=PLAN):
        caplog.clear()
        with jax.log_compiles():
            model.predict(TODAY[:patients].until(day), plan, horizons=horizons, draws=6).sample(3)
        return sum("Compiling" in text for text in caplog.messages)

    assert compilations(20, 50.0, [1, 2, 4]) > 0  # the count does count
    often = PLAN + cp.Plan.repeat("radiotherapy", every=0.3, times=15, start=0.1)
    asked = [(23, 50.0, [1, 2, 4]), (17, 41.5, [0.5, 1, 4, 5]), (32, 9, [3, 4, 5])]
    asked += [(20, 50.0, [1, 2, 4], plan) for plan in (cp.Plan.none(), often, cp.Plan.continued())]
    assert [compilations(*one) for one in asked] == [0] * 6


def test_what_is_behind_the_last_record_or_horizon_is_empty(model):
    """A patient beside one who is known for longer, and a plan that goes on, are patient and plan alone."""
    days = np.linspace(20.0, 50.0, len(TODAY))
    longer = PLAN + cp.Plan.repeat("chemotherapy", every=0.5, times=5, start=4.5)
    together = model.predict(TODAY.until(days), longer, horizons=[1, 4], draws=10).to_frame()[:2]
    alone = model.predict(TODAY[:1].until(20.0), PLAN, horizons=[1, 4], draws=10).to_frame()
    for column in alone.columns[3:]:
        np.testing.assert_allclose(together[column], alone[column], rtol=1e-5)
