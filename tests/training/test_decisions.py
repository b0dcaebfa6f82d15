"""Where treatments are guessed: what was given at a time, and the states that must not know it."""

from dataclasses import replace

import jax
import numpy as np
import polars as pl
import pytest
from small_models import small_study, small_tecde

import counterpath as cp
from counterpath.cohort.grid import choose_grid
from counterpath.training import Clock, tabulate
from counterpath.training.cut_times import candidate_cuts
from counterpath.training.decisions import decisions, given_within, with_cuts_themselves


def cohort_of(treatments, end=6.0):
    observations = pl.DataFrame({"patient": ["A", "A", "A"], "time": [0.0, 2.0, 5.0], "y": [1.0, 2.0, 3.0]})
    static = pl.DataFrame({"patient": ["A"], "end": [end]})
    return cp.Cohort.from_tables(
        observations, treatments, static, outcome="y", time_unit="day", follow_up_end="end", time_zero="as given"
    )


DOSES = pl.DataFrame({"patient": "A", "treatment": "pill", "time": [1.0, 4.0], "dose": 1.0})
INFUSION = pl.DataFrame({"patient": "A", "treatment": "drip", "start": [1.0, 2.5], "stop": [2.0, 4.0], "rate": 1.0})


def test_a_dose_is_given_within_the_window_that_begins_before_it():
    times = np.array([[0.0, 0.5, 1.0, 1.1, 2.0, 3.0, 4.0]])
    found = given_within(cohort_of(DOSES), times, 1.0)[0, :, 0]
    np.testing.assert_array_equal(found, [False, True, True, False, False, False, True])


def test_an_infusion_is_given_while_it_runs():
    times = np.array([[0.0, 1.0, 1.9, 2.05, 3.0, 3.9, 4.0]])
    found = given_within(cohort_of(INFUSION), times, 0.4)[0, :, 0]
    np.testing.assert_array_equal(found, [False, True, True, False, True, True, False])


def test_decisions_are_those_of_cuts_and_outcomes_and_count_as_much_as_outcomes():
    cohort = cohort_of(DOSES)
    grid = choose_grid(cohort.records, cohort.history_end, lookback=None, cells=64)
    found = with_cuts_themselves(candidate_cuts(cohort, grid, 5.0, "many", np.random.default_rng(0)))
    np.testing.assert_array_equal(found.elapsed[..., -1], 0.0)
    assert not found.present[..., -1].any()
    given, shares = decisions(cohort, found, 5.0, outcomes=2.0)
    assert shares.sum() == pytest.approx(2)  # outcomes that follow a record
    times = (found.times[..., None] + found.elapsed)[shares > 0]
    assert set(times) >= {0.0, 2.0, 5.0}
    interval = 3.0  # between the two doses: the grid on which they lie
    expected = [any(t <= dose < t + interval for dose in (1.0, 4.0)) for t in times]
    np.testing.assert_array_equal(given[shares > 0][:, 0], expected)


def test_nothing_is_guessed_after_the_end_of_follow_up():
    cohort = cohort_of(DOSES, end=5.0)
    grid = choose_grid(cohort.records, cohort.history_end, lookback=None, cells=64)
    found = with_cuts_themselves(candidate_cuts(cohort, grid, 5.0, "many", np.random.default_rng(0)))
    _, shares = decisions(cohort, found, 5.0, outcomes=2.0)
    assert not shares[found.times[..., None] + found.elapsed >= 5.0].any()


@pytest.mark.slow
def test_the_state_at_a_cut_knows_nothing_of_what_is_given_then():
    train, validation = small_study()
    model = small_tecde(epochs=1, balancing=0.01).fit(train, validation, progress=False)
    (network,), clock = model.networks_, Clock.of(model.tabulation_)
    dose = {"patient": validation.patients[0], "treatment": "radiotherapy", "dose": 2.0}

    def states(doses):
        cohort = cp.Cohort.from_tables(
            validation.observations.filter(pl.col("patient") == dose["patient"]),
            pl.DataFrame([dose | {"time": time} for time in doses]),
            validation.static.filter(pl.col("patient") == dose["patient"]),
            like=train,
        )
        found = tabulate(cohort, model.tabulation_, cuts="many", rng=np.random.default_rng(0), is_balanced=True)
        keys = jax.random.split(jax.random.key(0), 1)
        hidden, _ = network.hidden_and_kl(found.inputs, keys, clock.history, clock.plan)
        return np.asarray(hidden[0, 0, :, -1, :3]), np.asarray(found.targets.decisions.given[0, :, -1])

    without, with_dose = states([50.0, 51.0]), states([20.0, 50.0, 51.0])
    changed = np.flatnonzero((without[1] != with_dose[1]).any(axis=-1))
    assert len(changed) == 1  # the decision on day 20
    cut = changed[0]
    np.testing.assert_array_equal(without[0][: cut + 1], with_dose[0][: cut + 1])
    assert np.abs(without[0][cut + 1] - with_dose[0][cut + 1]).max() > 0


def test_single_cuts_have_rows_of_their_own():
    train, _ = small_study()
    model = small_tecde(cuts="last", balancing=0.01)
    tabulation = replace(model.new_tabulation(train), interpolation="linear")
    found = tabulate(train, tabulation, cuts="last", rng=np.random.default_rng(0), is_balanced=True)
    assert found.targets.decisions.shares.shape == found.inputs.horizon_step.shape
