from dataclasses import replace
from itertools import combinations

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import optax
import pytest
from jax.flatten_util import ravel_pytree
from scipy.stats import norm
from small_networks import (
    DURATIONS,
    PLAN_DURATIONS,
    carrying_network,
    fixed_network,
    small_inputs,
    small_sizes,
)
from still_training import STILL

from counterpath.dynamics import VectorField
from counterpath.models import Batch, Inputs, Targets, build_network, evidence_bound
from counterpath.models.sizes import PosteriorStart
from counterpath.training.problem import Clock, Problem
from counterpath.training.steps import Progress, draw_batch, optimiser_for, train_epoch

pytestmark = pytest.mark.slow  # networks are compiled

KEY = jax.random.key(7)
CUTS = np.array([4, 1, 3, 0, 2])  # of five patients; one has none
HORIZONS = 2


def make_targets() -> Targets:
    """Shares of all sizes; nothing counts beyond a patient's own cuts."""
    rng = np.random.default_rng(1)
    shape = (len(CUTS), CUTS.max(), HORIZONS, 1)
    real = np.arange(CUTS.max()) < CUTS[:, None]
    shares = np.where(real[:, :, None, None], rng.uniform(0.1, 1.0, size=shape), 0.0)
    shares[0, 1, 1] = 0.0  # nothing was recorded there
    changes = rng.normal(size=shape)
    return Targets(*(jnp.asarray(a, dtype=jnp.float32) for a in (changes, shares)), jnp.asarray(CUTS, dtype=jnp.int32))


INPUTS, TARGETS = small_inputs(len(CUTS), cuts=int(CUTS.max()), horizons=HORIZONS), make_targets()


def bound(network, batch, key, **options):
    usual = {"keys": jax.random.split(key), "likelihood": "normal", "increments": "two-point"}
    dropout_keys = jax.random.split(key, (2, len(batch.targets.cuts)))
    return evidence_bound(network, batch, DURATIONS, PLAN_DURATIONS, dropout_keys=dropout_keys, **(usual | options))[:2]


@eqx.filter_jit
def outcomes_bound_and_gradients(network, key):
    """What the network says, what the bound makes of it, and gradients of the likelihood and of the KL."""
    keys = jax.random.split(key)
    outcomes = network.outcomes(INPUTS, keys, DURATIONS, PLAN_DURATIONS, increments="two-point")
    parameters, rest = eqx.partition(network, eqx.is_inexact_array)
    terms = lambda parameters: bound(eqx.combine(parameters, rest), Batch(INPUTS, TARGETS), key)  # noqa: E731
    found, pull_back = jax.vjp(terms, parameters)
    one, zero = jnp.ones(()), jnp.zeros(())
    return outcomes, found, {"likelihood": pull_back((one, zero))[0], "KL": pull_back((zero, one))[0]}


@pytest.fixture(scope="module")
def worked_out():
    return outcomes_bound_and_gradients(carrying_network(), KEY)


def test_it_is_the_mean_over_draws_of_the_log_density_of_each_outcome_times_its_share(worked_out):
    (mean, std, path_kl), (log_likelihood, kl), _ = worked_out
    densities = norm.logpdf(TARGETS.changes, np.asarray(mean), np.asarray(std)[..., 0])
    assert densities.std(axis=0).max() > 0.1  # draws differ
    np.testing.assert_allclose(log_likelihood, np.sum(densities.mean(axis=0) * TARGETS.shares), rtol=1e-5)
    initial = carrying_network().initial_kl()
    np.testing.assert_allclose(kl, path_kl + initial, rtol=1e-5)
    assert kl > initial > 0.0


def test_without_outcome_noise_it_is_half_the_squared_error():
    network = fixed_network()

    @jax.jit
    def both_ways(key):
        mean, _, _ = network.outcomes(INPUTS, jax.random.split(key, 1), DURATIONS, PLAN_DURATIONS)
        return mean, bound(network, Batch(INPUTS, TARGETS), key, outcome_noise=False)

    mean, (found, kl) = both_ways(KEY)
    squares = 0.5 * (TARGETS.changes - np.asarray(mean[0])) ** 2 + 0.5 * np.log(2 * np.pi)
    np.testing.assert_allclose(found, -np.sum(squares * TARGETS.shares), rtol=1e-5)
    assert kl == 0.0


# Which parameters it reaches


GROUPS = {
    "embedding": lambda network: network.embedding,
    "head": lambda network: network.outcome_head.network,
    "encoder's initial mean": lambda network: network.encoder_law.initial_mean,
    "decoder's initial mean": lambda network: network.decoder_law.initial_mean,
    "encoder's initial scale": lambda network: network.encoder_law.initial_log_std,
    "decoder's initial scale": lambda network: network.decoder_law.initial_log_std,
    "encoder's drift": lambda network: network.encoder_law.drift.layers,
    "decoder's drift": lambda network: network.decoder_law.drift.layers,
}
CONSTANTS = {
    "prior's scale": lambda law: law.prior_std,
    "diffusion": lambda law: law.diffusion,
    "prior's rate": lambda law: law.prior_rate,
    "drift's input scale": lambda law: law.drift.input_std,
}
NOT_LEARNED = {
    "the head's noise scale": lambda network: network.outcome_head.noise_scale,
    "the head's noise growth": lambda network: network.outcome_head.noise_growth,
    "what the encoder carries": lambda network: network.encoder_field.carry,
    "what the decoder carries": lambda network: network.decoder_field.carry,
}


@pytest.fixture(scope="module")
def gradients(worked_out):
    return worked_out[2]


@pytest.mark.parametrize("group", GROUPS)
def test_the_likelihood_reaches_every_array_of_every_group(gradients, group):
    for leaf in jax.tree.leaves(GROUPS[group](gradients["likelihood"])):
        assert np.isfinite(leaf).all()
        assert np.abs(leaf).max() > 1e-6


@pytest.mark.parametrize("group", GROUPS)
def test_the_kl_reaches_the_laws_and_nothing_else(gradients, group):
    for leaf in jax.tree.leaves(GROUPS[group](gradients["KL"])):
        assert np.isfinite(leaf).all()
        assert np.abs(leaf).max() == 0.0 if group in ("embedding", "head") else np.abs(leaf).max() > 1e-6


@pytest.mark.parametrize("term", ["likelihood", "KL"])
@pytest.mark.parametrize("constant", CONSTANTS)
def test_neither_reaches_a_constant(gradients, term, constant):
    for law in (gradients[term].encoder_law, gradients[term].decoder_law):
        np.testing.assert_array_equal(CONSTANTS[constant](law), 0.0)


@pytest.mark.parametrize("term", ["likelihood", "KL"])
@pytest.mark.parametrize("part", NOT_LEARNED)
def test_neither_reaches_what_is_not_learned(gradients, term, part):
    np.testing.assert_array_equal(NOT_LEARNED[part](gradients[term]), 0.0)


def test_these_are_all_arrays_of_the_network(gradients):
    network = gradients["likelihood"]
    parts = [group(network) for group in (*GROUPS.values(), *NOT_LEARNED.values())]
    parts += [constant(law) for constant in CONSTANTS.values() for law in (network.encoder_law, network.decoder_law)]
    assert len(jax.tree.leaves(parts)) == len(jax.tree.leaves(network))


# Batches


@eqx.filter_jit
def value_and_gradient(network, batch, factor, key):
    """Of the likelihood, as one vector with the value at its end."""
    value, gradient = eqx.filter_value_and_grad(lambda network: factor * bound(network, batch, key)[0])(network)
    return jnp.append(ravel_pytree(gradient)[0], value)


@eqx.filter_jit
def estimates_from_batches(network, choices, cuts_per_step, cut_keys, key):
    """For every choice of patients, and many of their cuts."""

    def estimate(chosen, cut_key):
        batch = draw_batch(INPUTS, TARGETS, chosen, jax.random.uniform(cut_key, (len(chosen), cuts_per_step)))
        return value_and_gradient(network, batch, len(CUTS) / len(chosen), key)

    return jax.vmap(jax.vmap(estimate, in_axes=(None, 0)))(choices, cut_keys)


@pytest.mark.parametrize(("batch_size", "cuts_per_step"), [(1, 2), (3, 7)])
def test_value_and_gradient_do_not_depend_on_batch_size_or_cuts_per_step(batch_size, cuts_per_step):
    """In expectation over all batches of this size and over cuts, at fixed weights; seven are more than anybody has."""
    network, number = fixed_network(), 1_000
    choices = np.array(list(combinations(range(len(CUTS)), batch_size)))
    cut_keys = jax.random.split(jax.random.key(3), (len(choices), number))
    full = np.asarray(value_and_gradient(network, Batch(INPUTS, TARGETS), 1.0, KEY), dtype=np.float64)
    estimates = estimates_from_batches(network, jnp.asarray(choices), cuts_per_step, cut_keys, KEY)
    estimates = np.asarray(estimates, dtype=np.float64)
    error = np.sqrt(np.mean(estimates.var(axis=1), axis=0) / (len(choices) * number))
    # So many standard errors that all of them stay within in 999 of 1,000 such families; and rounding.
    most = norm.isf(0.0005 / len(full))
    assert (np.abs(estimates.mean(axis=(0, 1)) - full) < most * error + 1e-5 * np.abs(full).max()).all()
    assert error[-1] < 0.02 * abs(full[-1])
    assert np.linalg.norm(error) < 0.1 * np.linalg.norm(full)


@pytest.mark.slow  # compiles whole epochs of training
@pytest.mark.parametrize(("batch_size", "cuts_per_step"), [(2, 1), (5, 3)])
def test_training_itself_climbs_the_objective_of_the_data_set(batch_size, cuts_per_step):
    """The log likelihood that an epoch reports at learning rate zero and fixed weights, for many orders of patients."""
    members, outcomes = 2_000, 10
    parameters, rest = eqx.partition(fixed_network(), eqx.is_inexact_array)
    expected = eqx.filter_jit(bound)(eqx.combine(parameters, rest), Batch(INPUTS, TARGETS), KEY)[0] / outcomes
    settings = replace(STILL, batch_size=batch_size, cuts_per_step=cuts_per_step)
    many = jax.tree.map(lambda leaf: jnp.broadcast_to(leaf, (members, *leaf.shape)).copy(), parameters)
    progress = Progress(
        many, jax.vmap(optimiser_for(settings, len(CUTS)).init)(many), jnp.zeros(members, dtype=jnp.int32)
    )
    keys = jax.random.split(jax.random.key(4), members)
    clock, number = Clock(DURATIONS, PLAN_DURATIONS), jnp.asarray(outcomes, jnp.float32)
    problem = Problem(INPUTS, TARGETS, clock, number, rest, settings)
    reported = np.asarray(train_epoch((problem, keys), progress)[1][:, 0], dtype=np.float64)
    error = reported.std() / np.sqrt(members)
    assert abs(reported.mean() - expected) < 4 * error
    assert error < 0.03 * abs(expected)


# A linear regression in disguise: one step, Z = ω·x, and a head that reads Z with a known noise


class WithoutTanh(VectorField):
    """f(Z, t | ω) = M (Z, t) + b, and so b where Z and t are zero."""

    def with_signals(self, state, clock, layers):
        ((matrix, bias),) = layers
        return (matrix @ jnp.append(state, clock) + bias).reshape(self.hidden, self.channels), []

    def slopes(self, slope, matrix, before, layers):
        return [slope.ravel()], (layers[0][0].T @ slope.ravel())[:-1]


NOISE_STD, TRUTH, ROOM = 0.5, np.array([0.5, -0.3]), 150


def regression(patients):
    """Patients whose paths are the rows of an orthogonal design, with XᵀX = patients; and the product Xᵀy.

    Up to `ROOM` there follow patients whose outcomes have no share.
    """
    rng = np.random.default_rng(5)
    design = np.linalg.qr(rng.normal(size=(patients, 2)))[0] * np.sqrt(patients)
    outcome = design @ TRUTH + NOISE_STD * rng.normal(size=patients)
    rows = jnp.ones((ROOM, 1, 2)).at[:patients, 0].set(design)
    zero, none = jnp.zeros((ROOM, 1, 1, 1)), jnp.zeros((ROOM, 1, 1), dtype=jnp.int32)
    inputs = Inputs(zero[:, 0, 0], rows, none[:, 0], rows, zero, none, zero)
    targets = Targets(zero.at[:patients, 0, 0, 0].set(outcome), zero.at[:patients].set(1.0), none[:, 0, 0] + 1)
    return Batch(inputs, targets), design.T @ outcome


def linear_network():
    sizes = small_sizes(
        known=1, plan_channels=1, hidden=1, field_widths=(), embedding_widths=(), head_widths=(), start_scale=0.0
    )
    start = PosteriorStart(
        initial_law="learned",
        start_std=1.0,
        prior_std=0.7,
        prior_rate=0.0,
        diffusion=1e-6,
        drift_widths=(2,),
    )
    network = build_network(sizes, start, key=jax.random.key(0))
    raw_std = float(np.log(np.expm1(NOISE_STD - 1e-3)))
    known = {
        lambda n: n.embedding.layers[0].weight: jnp.zeros((1, 1)),
        lambda n: n.embedding.layers[0].bias: jnp.zeros(1),
        lambda n: n.outcome_head.network.layers[0].weight: jnp.array([[1.0], [0.0]]),
        lambda n: n.outcome_head.network.layers[0].bias: jnp.array([0.0, raw_std]),
    }
    for where, value in known.items():
        network = eqx.tree_at(where, network, value)
    return replace(network, encoder_field=WithoutTanh(1, 2, ()), decoder_field=WithoutTanh(1, 1, ()))


@eqx.filter_jit
def trained_law(batch, key):
    """Mean and log scale of the encoder's weights after Adam on the bound with its own random draws."""
    network, steps, one = linear_network(), 1_500, jnp.ones(1)
    optimiser = optax.adam(optax.cosine_decay_schedule(0.03, steps), b2=0.9)
    parts = lambda network: [network.encoder_law.initial_mean, network.encoder_law.initial_log_std]  # noqa: E731

    def loss(parameters, key):
        keys = jax.random.split(key, 32)
        dropout_keys = jnp.broadcast_to(key, (32, len(batch.targets.cuts)))
        options = {"keys": keys, "dropout_keys": dropout_keys, "likelihood": "normal", "increments": "two-point"}
        log_likelihood, kl, *_ = evidence_bound(eqx.tree_at(parts, network, parameters), batch, one, one, **options)
        return kl - log_likelihood

    def step(state, key):
        parameters, optimiser_state = state
        updates, optimiser_state = optimiser.update(jax.grad(loss)(parameters, key), optimiser_state)
        return (optax.apply_updates(parameters, updates), optimiser_state), None

    start = parts(network)
    return jax.lax.scan(step, (start, optimiser.init(start)), jax.random.split(key, steps))[0][0]


@pytest.mark.parametrize("patients", [6, ROOM])
def test_maximising_it_gives_the_conjugate_posterior(patients):
    """Likelihood and KL are in balance: precision n/τ² + 1/s_0², and mean Xᵀy/τ² divided by it."""
    batch, product = regression(patients)
    mean, log_std = trained_law(batch, KEY)
    prior_std = np.asarray(linear_network().encoder_law.prior_std)
    precision = patients / NOISE_STD**2 + 1 / prior_std[-2:] ** 2
    np.testing.assert_allclose(np.exp(log_std[-2:]), precision**-0.5, rtol=0.05)
    apart = mean[-2:] - product / NOISE_STD**2 / precision
    np.testing.assert_allclose(apart * precision**0.5, 0.0, atol=0.1)  # in posterior stds
    # Weights that no outcome depends on stay at the prior.
    np.testing.assert_allclose(np.exp(log_std[:-2]), prior_std[:-2], rtol=0.01)
    np.testing.assert_allclose(mean[:-2], 0.0, atol=0.01)
