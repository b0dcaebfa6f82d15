"""Models that correct a forecast from each patient's own linear response."""

import equinox as eqx
import jax.numpy as jnp
import numpy as np
import pytest
from small_models import fit_small, small_study, small_tecde

import counterpath as cp
from counterpath.cohort.cuts import events_until_and_from
from counterpath.estimators.unsure_start import with_unsure_start
from counterpath.predictive import Noise

PLAN = cp.Plan.dose("radiotherapy", at=1.0) + cp.Plan.repeat("chemotherapy", every=1.0, times=3)
HORIZONS = np.array([1.0, 2.5, 5.0])


@pytest.mark.slow  # a network is compiled and trained
def test_a_network_that_corrects_nothing_predicts_the_forecast():
    model = fit_small(small_tecde(epochs=2))
    last = model.networks_[0].outcome_head.network.layers[-1]
    silent = eqx.tree_at(
        lambda network: (network.outcome_head.network.layers[-1].weight, network.outcome_head.network.layers[-1].bias),
        model.networks_[0],
        (jnp.zeros_like(last.weight), jnp.zeros_like(last.bias)),
    )
    model.networks_ = (silent,)
    today = small_study()[1].until(50.0)
    planned, each = PLAN.resolve(today), np.tile(HORIZONS, (len(today), 1))
    events = events_until_and_from(today.events, today.history_end, planned)
    begin = model.tabulation_.predicted_from(today, today.history_end[:, None], events, each[:, None])
    (law,) = next(model.laws(today, PLAN, each, 10, 0))
    np.testing.assert_allclose(law.centres.mean(axis=0), begin.start[:, 0, :, 0], rtol=1e-5, atol=1e-6)
    unsure = (begin.unsure[:, 0, :, 0] ** 2).sum(axis=-1)
    assert 0.01 < np.median(unsure) < 0.9
    widths = law.spreads[..., 0] / begin.units[:, 0, :, 0] / np.sqrt(1 - np.minimum(unsure, 0.9))
    # What the head says is multiplied by the units, and by one plane over the times for all patients.
    np.testing.assert_allclose(widths, np.broadcast_to(widths[:1, :1], widths.shape), rtol=1e-4)


def test_what_is_not_known_of_the_start_moves_from_the_noise_to_the_draws():
    rng = np.random.default_rng(0)
    centre, std = rng.normal(size=(2_000, 3, 2, 1)), np.full((2_000, 3, 2, 1, 2), [0.5, 1.5])
    centre[:] = centre[:1]
    unsure = rng.normal(size=(3, 2, 1, 4)) * 0.3
    unsure[0] = 0.0
    moved, left = with_unsure_start(centre, std, unsure, Noise(), seed=1)
    before, after = (own + Noise().moments(sides)[0] for own, sides in ((centre, std), (moved, left)))
    np.testing.assert_allclose(after.mean(axis=0), before[0], atol=1e-12)
    share = (unsure**2).sum(axis=-1)
    # 1,000 pairs: a variance is known to √(2/1,000), which is 4.5%.
    np.testing.assert_allclose(moved.var(axis=0), share, rtol=0.15, atol=1e-12)
    np.testing.assert_allclose(left, std * np.sqrt(1 - share)[None, ..., None])
    np.testing.assert_array_equal(moved[:, 0], centre[:, 0])  # of whom all is known


@pytest.mark.parametrize("draws", [6, 7])
def test_the_mean_stays_where_it_was_for_any_number_of_draws(draws):
    centre, std = np.zeros((draws, 3, 2, 1)), np.ones((draws, 3, 2, 1, 1))
    unsure = np.random.default_rng(0).normal(size=(3, 2, 1, 4)) * 0.3
    moved, _ = with_unsure_start(centre, std, unsure, Noise(), seed=1)
    assert np.abs(moved).min() > 0
    np.testing.assert_allclose(moved.mean(axis=0), 0.0, atol=1e-15)


def test_a_draw_of_the_start_is_the_same_whoever_else_is_asked_about():
    rng = np.random.default_rng(0)
    centre, std, unsure = np.zeros((7, 3, 2, 1)), np.ones((7, 3, 2, 1, 1)), rng.normal(size=(3, 2, 1, 4)) * 0.3
    all_of_them, _ = with_unsure_start(centre, std, unsure, Noise(), seed=1)
    some, _ = with_unsure_start(centre[:, 1:2, :1], std[:, 1:2, :1], unsure[1:2, :1], Noise(), seed=1)
    np.testing.assert_array_equal(some, all_of_them[:, 1:2, :1])
    assert not np.array_equal(with_unsure_start(centre, std, unsure, Noise(), seed=2)[0], all_of_them)


def test_it_needs_an_outcome_to_lead_on_from():
    with pytest.raises(cp.CohortError, match=r"corrects_last=True, or linear_response=False"):
        cp.BNCDE(max_horizon=5.0, corrects_last=False)
