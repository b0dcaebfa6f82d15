"""Models that correct a forecast from each patient's own linear response."""

import equinox as eqx
import jax.numpy as jnp
import numpy as np
import pytest
from small_models import fit_small, small_study, small_tecde

import counterpath as cp
from counterpath.cohort.cuts import events_until_and_from

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
    np.testing.assert_allclose(law.centres, np.broadcast_to(begin.start[:, 0, :, 0], law.centres.shape), rtol=1e-5)
    widths = law.spreads[..., 0] / begin.units[:, 0, :, 0]
    # What the head says is multiplied by the units, and by one plane over the times for all patients.
    np.testing.assert_allclose(widths, np.broadcast_to(widths[:1, :1], widths.shape), rtol=1e-4)


def test_it_needs_an_outcome_to_lead_on_from():
    with pytest.raises(cp.CohortError, match=r"corrects_last=True, or linear_response=False"):
        cp.BNCDE(max_horizon=5.0, corrects_last=False)
