from dataclasses import replace

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import pytest
from small_networks import (
    CHANNELS,
    DURATIONS,
    PLAN_CHANNELS,
    PLAN_DURATIONS,
    fixed_network,
    small_inputs,
    small_sizes,
    trained_network,
)

from counterpath.dynamics import VectorField
from counterpath.models import build_network, posterior
from counterpath.models.posterior import Posterior
from counterpath.models.sizes import PosteriorStart

pytestmark = pytest.mark.slow  # networks are compiled


def make_posterior(network=None, *, draws=100, seed=0):
    return Posterior(network or trained_network(), DURATIONS, PLAN_DURATIONS, draws=draws, seed=seed)


def ask(inputs, network=None, **options):
    """Centres and stds, which both sides share, together: 2 × draws × patients × cuts × horizons × outcomes."""
    centres, stds = make_posterior(network, **options).outcomes(inputs)
    return np.stack([centres, stds[..., 0]])


def of_patients(inputs, which):
    return jax.tree.map(lambda column: column[np.array(which)], inputs)


def at_horizons(inputs, which):
    parts = lambda inputs: [inputs.horizon_step, inputs.horizon_increments]  # noqa: E731
    return eqx.tree_at(parts, inputs, replace_fn=lambda column: column[:, :, np.array(which)])


SEVEN = small_inputs(7, horizons=4)


@pytest.fixture(scope="module")
def of_seven():
    return ask(SEVEN)


@pytest.fixture
def made(monkeypatch):
    """How many draws were made each time that draws were made."""
    numbers, plain = [], posterior._draw_weights
    monkeypatch.setattr(posterior, "_draw_weights", lambda *args: numbers.append(len(args[1])) or plain(*args))
    return numbers


def test_draws_differ_and_so_do_patients(of_seven):
    """Otherwise nothing below would mean anything."""
    assert of_seven.shape == (2, 100, 7, 2, 4, 1)
    assert of_seven[0].std(axis=0).min() > 1e-3
    assert of_seven[0].std(axis=1).min() > 1e-3


def test_batch_mates_and_order_do_not_enter(of_seven):
    """In the same padded shape, to the bit; in another, to rounding."""
    np.testing.assert_array_equal(ask(of_patients(SEVEN, [6, 2, 4, 0, 1])), of_seven[:, :, [6, 2, 4, 0, 1]])
    np.testing.assert_allclose(ask(of_patients(SEVEN, [3])), of_seven[:, :, [3]], rtol=1e-5, atol=1e-5)


def test_other_horizons_do_not_enter(of_seven):
    np.testing.assert_array_equal(ask(at_horizons(SEVEN, [3, 1, 0])), of_seven[..., [3, 1, 0], :])
    np.testing.assert_allclose(ask(at_horizons(SEVEN, [2])), of_seven[..., [2], :], rtol=1e-5, atol=1e-5)


def test_draws_in_chunks_are_the_same_draws(of_seven, made, monkeypatch):
    """Three parts of one size, so that they are compiled once; two of the last part are not needed."""
    fields = trained_network().encoder_field, trained_network().decoder_field
    path = sum(4 * len(each) * field.size for each, field in zip((DURATIONS, PLAN_DURATIONS), fields, strict=True))
    monkeypatch.setattr(posterior, "BYTES_AT_ONCE", 45 * path + 1)
    np.testing.assert_allclose(ask(SEVEN), of_seven, rtol=1e-5, atol=1e-5)
    assert made == [34, 34, 34]


def test_patients_in_chunks_are_the_same_patients(of_seven, monkeypatch):
    monkeypatch.setattr(posterior, "PATIENTS_AT_ONCE", 1)
    np.testing.assert_allclose(ask(SEVEN), of_seven, rtol=1e-5, atol=1e-5)


def test_a_draw_has_the_same_values_however_many_there_are(of_seven):
    np.testing.assert_allclose(ask(SEVEN, draws=10), of_seven[:, :10], rtol=1e-5, atol=1e-5)


def test_the_seed_decides(of_seven):
    np.testing.assert_array_equal(ask(SEVEN), of_seven)
    assert np.abs(ask(SEVEN, seed=1)[0] - of_seven[0]).min() > 0.0


def test_paths_are_made_once_and_used_for_every_question(made):
    one = make_posterior(draws=10)
    first, again = one.outcomes(SEVEN), one.outcomes(SEVEN)
    for before, after in zip(first, again, strict=True):
        np.testing.assert_array_equal(before, after)
    assert made == [10]


def test_ragged_numbers_of_patients_and_horizons_need_no_new_compilation(caplog):
    """Five to eight patients with three or four horizons are one shape; nine patients are another."""
    one = make_posterior(draws=10)

    def compilations(*shapes):
        caplog.clear()
        with jax.log_compiles():
            for patients, horizons in shapes:
                one.outcomes(small_inputs(patients, cuts=3, horizons=horizons))  # no other test has three cuts
        return sum("Compiling" in text and "_outcomes" in text for text in caplog.messages)

    assert compilations((5, 3)) == 1
    assert compilations((6, 4), (7, 3), (8, 4), (5, 4)) == 0
    assert compilations((9, 3)) == 1


def test_fixed_weights_have_one_answer():
    found = ask(SEVEN, fixed_network(), draws=4)
    np.testing.assert_array_equal(found, np.broadcast_to(found[:, :1], found.shape))


def test_what_dropout_leaves_out_is_the_draws_and_not_the_batchs():
    network, some = fixed_network(dropout=0.5), [5, 0, 6, 2, 1]
    found = ask(SEVEN, network, draws=20)
    assert found[0].std(axis=0).min() > 1e-3
    np.testing.assert_array_equal(ask(of_patients(SEVEN, some), network, draws=20), found[:, :, some])


# A network that is linear in its weights, whose outcomes are therefore normal


class LinearInWeights(VectorField):
    """f(Z, t | ω) = b + m t, with b and m parts of ω: it does not look at the state."""

    def with_signals(self, state, clock, layers):
        ((matrix, bias),) = layers
        return (bias + matrix[:, -1] * clock).reshape(self.hidden, self.channels), []


RATE, DIFFUSION = 0.8, 0.3


@pytest.fixture(scope="module")
def linear_network():
    start = PosteriorStart(
        initial_law="learned",
        start_std=1e-6,  # ω_0 is fixed
        prior_std=1.0,
        prior_rate=RATE,
        diffusion=DIFFUSION,
        drift_widths=(4,),
    )
    sizes = small_sizes(field_widths=(), embedding_widths=(), head_widths=())
    network = build_network(sizes, start, key=jax.random.key(0))
    constant_std = lambda weight: weight.at[1].set(0.0)  # noqa: E731
    network = eqx.tree_at(
        lambda network: network.outcome_head.network.layers[0].weight, network, replace_fn=constant_std
    )
    biased = lambda mean: mean + 0.5  # biases start at zero, where the prior's pull could not be seen  # noqa: E731
    laws = lambda network: [network.encoder_law.initial_mean, network.decoder_law.initial_mean]  # noqa: E731
    return replace(
        eqx.tree_at(laws, network, replace_fn=biased),
        encoder_field=LinearInWeights(3, CHANNELS, ()),
        decoder_field=LinearInWeights(3, PLAN_CHANNELS, ()),
    )


def along(field, law, durations, steps):
    """Mean and variance of Σ_k f(ω_k) ΔX_k: the path of a weight has Cov(ω_j, ω_k) = v_j Π_{j ≤ l < k} (1 − θΔt_l)."""
    durations = np.asarray(durations, dtype=np.float64)
    keep = 1 - RATE * durations
    decay = np.concatenate([[1.0], np.cumprod(keep)[:-1]])
    clocks = np.cumsum(durations) - durations
    variance = np.zeros(len(durations))
    for k in range(len(durations) - 1):
        variance[k + 1] = keep[k] ** 2 * variance[k] + DIFFUSION**2 * durations[k]
    cells = np.arange(len(keep))
    earlier, later = np.minimum.outer(cells, cells), np.maximum.outer(cells, cells)
    covariance = variance[earlier] * decay[later] / decay[earlier]
    ((matrix, bias),) = jax.tree.map(np.asarray, field.layers(law.initial_mean))
    per_step = decay[:, None, None] * (bias + clocks[:, None] * matrix[:, -1]).reshape(len(keep), 3, -1)
    mean = np.einsum("khc,kc->h", per_step, steps)
    timed = clocks[:, None] * steps
    total = sum(np.einsum("jc,jk,kc->", each, covariance, each) for each in (steps, timed))
    return mean, np.full(3, total)


def up_to(steps, query_step, query_increment):
    """Increments of a path that ends at a query."""
    whole = np.array(steps, dtype=np.float64)
    whole[query_step] = query_increment
    whole[query_step + 1 :] = 0.0
    return whole


def test_predictive_mean_and_variance_are_those_of_the_gaussian_recursion(linear_network):
    """ω_0 is fixed and then moves like the prior. Within 3 Monte Carlo standard errors."""
    draws, inputs = 10_000, small_inputs(2, cuts=2, horizons=2, seed=3)
    inputs = eqx.tree_at(lambda inputs: inputs.cut_step, inputs, replace_fn=lambda step: jnp.maximum(step, 1))
    means, stds = (a.astype(np.float64) for a in ask(inputs, linear_network, draws=draws))
    head = jax.tree.map(np.asarray, linear_network.outcome_head.network.layers[0])
    noise_std = 1e-3 + np.log1p(np.exp(head.bias[1]))
    np.testing.assert_allclose(stds, noise_std, rtol=1e-5)
    for patient, cut, horizon in np.ndindex(2, 2, 2):
        x = jax.tree.map(lambda column, patient=patient: np.asarray(column[patient]), inputs)
        history = up_to(x.steps, x.cut_step[cut], x.cut_increments[cut])
        plan = up_to(x.plan_steps[cut], x.horizon_step[cut, horizon], x.horizon_increments[cut, horizon])
        past = along(linear_network.encoder_field, linear_network.encoder_law, DURATIONS, history)
        future = along(linear_network.decoder_field, linear_network.decoder_law, PLAN_DURATIONS, plan)
        hidden = np.asarray(linear_network.embedding(jnp.asarray(x.first))) + past[0] + future[0]
        mean = head.weight[0] @ hidden + head.bias[0]
        model_variance = head.weight[0] ** 2 @ (past[1] + future[1])
        own = means[:, patient, cut, horizon, 0]
        assert abs(own.mean() - mean) < 3 * np.sqrt(model_variance / draws)
        assert abs(own.var() / model_variance - 1) < 3 * np.sqrt(2 / draws)
