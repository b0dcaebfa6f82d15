"""What a step and an epoch hold, and which settings could not train."""

from dataclasses import replace

import numpy as np
import pytest
from small_models import small_bncde, small_tecde

import counterpath as cp
from counterpath.cohort import CohortError
from counterpath.estimators.joint_fit import settings_of_run
from counterpath.training import tabulate

DAILY = cp.simulate_tumor_growth(30, seed=0).cohort
SETTINGS = replace(small_tecde().training, epochs=None, steps=2_000, batch_size=16)


@pytest.mark.parametrize(
    ("patients", "epochs", "steps"), [(5, 2_000, 1), (1_000, 32, 62), (10_000, 10, 200), (1_000_000, 10, 200)]
)
def test_a_run_has_as_many_steps_as_asked_for_however_many_patients(patients, epochs, steps):
    assert (SETTINGS.epochs_for(patients), SETTINGS.steps_per_epoch(patients)) == (epochs, steps)


def test_epochs_that_are_asked_for_are_passes_over_everybody():
    settings = replace(SETTINGS, epochs=3)
    assert (settings.epochs_for(10_000), settings.steps_per_epoch(10_000)) == (3, 625)


@pytest.mark.parametrize("ramp", [-0.1, 1.0, 1.5, float("nan")])
def test_a_ramp_that_would_leave_no_state_to_keep_is_refused(ramp):
    with pytest.raises(CohortError, match=f"kl_ramp={ramp} must be at least 0 and below 1"):
        small_bncde(kl_ramp=ramp)


def in_a_step(**options):
    """Settings as the user gave them and as they run, cells of history and plan, and the most cuts of a window."""
    model = small_bncde(cuts_per_step=8, batch_size=4, **options)
    tabulation = model.new_tabulation(DAILY)
    examples = tabulate(DAILY, tabulation, cuts=model.architecture.cuts, rng=np.random.default_rng(0))
    cells = tabulation.grid.cells, tabulation.plan_grid.cells
    return model.training, settings_of_run(model, examples, tabulation), cells, examples.inputs.cut_step.shape[1]


def test_settings_run_as_they_are_where_patients_have_enough_cuts():
    asked, own, _, cuts = in_a_step()
    assert own == asked
    assert cuts >= asked.cuts_per_step


@pytest.mark.parametrize("options", [{"lookback": 10.0}, {"cuts": "last"}], ids=["own windows", "one cut"])
def test_where_a_window_has_one_cut_a_step_has_as_many_windows_as_cost_the_same(options):
    """No cut is in a step several times."""
    asked, own, (cells, plan_cells), cuts = in_a_step(**options)
    assert cuts == own.cuts_per_step == 1
    cost = asked.batch_size * (cells + asked.cuts_per_step * plan_cells)
    assert own.batch_size * (cells + plan_cells) == pytest.approx(cost, rel=0.05)
    assert own.batch_size > asked.batch_size


def test_the_published_settings_run_as_they_are():
    model = cp.BNCDE.paper(5.0)
    tabulation = model.new_tabulation(DAILY)
    examples = tabulate(DAILY, tabulation, cuts="last", rng=np.random.default_rng(0))
    assert settings_of_run(model, examples, tabulation) == model.training


@pytest.mark.slow  # it is trained
def test_windows_of_their_own_can_be_learned_from():
    model = small_bncde(lookback=10.0, epochs=None, steps=40, cuts_per_step=8, batch_size=4).fit(DAILY, progress=False)
    assert model.history_["epoch"].max() == 10
    assert np.isfinite(model.predict(DAILY.until(50.0), cp.Plan.none(), horizons=[1.0, 5.0]).mean).all()
