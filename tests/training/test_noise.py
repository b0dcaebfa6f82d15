"""The size of the noise, chosen after training so that the mixture over draws describes validation outcomes best."""

from dataclasses import replace

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import pytest
from scipy.special import logsumexp
from scipy.stats import norm, t
from small_networks import DURATIONS, PLAN_DURATIONS, START, small_inputs, small_sizes, with_drift
from still_training import STILL

from counterpath.models import Targets, build_network
from counterpath.models.head import SMALLEST_STD
from counterpath.models.likelihood import STUDENT_DEGREES
from counterpath.training import Clock
from counterpath.training.problem import Problem
from counterpath.training.scores import NOISE_DRAWS, NOISE_SCALES, noise_and_spread

pytestmark = pytest.mark.slow  # networks are compiled

PATIENTS, CUTS, HORIZONS = 60, 2, 2
KEY = jax.random.key(3)
CLOCK = Clock(DURATIONS, PLAN_DURATIONS)
ONE = np.ones((PATIENTS, CUTS, HORIZONS, 2), dtype=np.float32)


def with_times(times):
    """Paths whose first channels pass these times: nothing in whole steps, all in the last part of one."""
    paths = small_inputs(len(times), cuts=CUTS, horizons=HORIZONS)
    return eqx.tree_at(
        lambda inputs: (inputs.steps, inputs.plan_steps, inputs.cut_increments, inputs.horizon_increments),
        paths,
        (
            paths.steps.at[..., 0].set(0.0),
            paths.plan_steps.at[..., 0].set(0.0),
            paths.cut_increments.at[..., 0].set(times[:, :, 0, 0]),
            paths.horizon_increments.at[..., 0].set(times[..., 1]),
        ),
    )


INPUTS = with_times(ONE)  # so that there is nothing for the noise to grow with
SCALES = np.asarray(NOISE_SCALES, dtype=np.float64)
DENSITIES = {"normal": norm.logpdf, "student_t": lambda y, mean, std: t.logpdf(y, STUDENT_DEGREES, mean, std)}


def settings(likelihood="normal"):
    return replace(STILL, likelihood=likelihood)


@eqx.filter_jit
def means_and_stds(network, key):
    keys = jax.random.split(key, NOISE_DRAWS)
    centres, stds, _ = network.outcomes(INPUTS, keys, DURATIONS, PLAN_DURATIONS)
    return centres, stds[..., 0]


def with_std(network, *stds):
    """The same means, and for every patient the same std of each outcome."""
    last = network.outcome_head.network.layers[-1]
    raw = np.log(np.expm1(np.array(stds) - SMALLEST_STD))
    weight, bias = last.weight.at[2:].set(0.0), last.bias.at[2:].set(jnp.asarray(raw, jnp.float32))
    parts = lambda n: [n.outcome_head.network.layers[-1].weight, n.outcome_head.network.layers[-1].bias]  # noqa: E731
    return eqx.tree_at(parts, network, [weight, bias])


@pytest.fixture(scope="module")
def toy():
    """Two outcomes, each about the mean of one of many draws, with a noise larger than the spread of the means.

    The head's std of the first is what the objective asks for. That of the second is three quarters of the noise.
    """
    network = with_drift(build_network(small_sizes(outcomes=2), START, key=jax.random.key(0)))
    means, _ = (np.asarray(part, dtype=np.float64) for part in means_and_stds(network, KEY))
    rng = np.random.default_rng(0)
    shape = means.shape[1:]
    truth = np.take_along_axis(means, rng.integers(NOISE_DRAWS, size=(1, *shape)), axis=0)[0]
    noise = 1.5 * np.sqrt(means.var(axis=0).mean(axis=(0, 1, 2)))
    changes = truth + noise * rng.normal(size=shape)
    shares = rng.uniform(0.5, 1.0, size=shape)
    asked_for = np.sqrt(
        np.average((changes - means) ** 2, axis=(0, 1, 2, 3), weights=np.tile(shares, (64, 1, 1, 1, 1)))
    )
    # What has no share does not count, however far away it is.
    shares[:5], changes[:5] = 0.0, 1e3
    return with_std(network, asked_for[0], 0.75 * noise[1]), changes, shares, noise


def chosen(network, changes, shares, likelihood="normal", members=None):
    """The factor by the library, for one network or for several, where the noise has nothing to grow with."""
    scale, growth = noise_and_growth(network, changes, shares, likelihood, members)
    np.testing.assert_array_equal(growth, 0.0)
    return scale


def noise_and_growth(network, changes, shares, likelihood="normal", members=None, inputs=INPUTS):
    cuts = jnp.full(len(changes), CUTS, dtype=jnp.int32)
    targets = Targets(jnp.asarray(changes, jnp.float32), jnp.asarray(shares, jnp.float32), cuts)
    stacked = jax.tree.map(lambda *leaves: jnp.stack(leaves), *(members or [network]))
    parameters, rest = eqx.partition(stacked, eqx.is_inexact_array)
    problem = Problem(inputs, targets, CLOCK, jnp.sum(targets.shares), rest, settings(likelihood))
    return [np.asarray(part) for part in noise_and_spread(problem, KEY, parameters)[0]]


def scores_of(network, changes, shares, likelihood, *, mixture):
    """In numpy, for each candidate and outcome: of the mixture over draws, or averaged over draws."""
    mean, std = (np.asarray(part, dtype=np.float64) for part in means_and_stds(network, KEY))
    rows = []
    for scale in SCALES:
        densities = DENSITIES[likelihood](changes, mean, scale * std)
        each = logsumexp(densities, axis=0) - np.log(len(densities)) if mixture else densities.mean(axis=0)
        rows.append(np.sum(each * shares, axis=(0, 1, 2)))
    return np.array(rows)


@pytest.mark.parametrize("likelihood", DENSITIES)
def test_no_candidate_describes_the_outcomes_better(toy, likelihood):
    network, changes, shares, _ = toy
    found = chosen(network, changes, shares, likelihood)
    assert found.shape == (1, 2)
    scores = scores_of(network, changes, shares, likelihood, mixture=True)
    for outcome, scale in enumerate(found[0]):
        (index,) = np.flatnonzero(scale == SCALES)
        assert scores[index, outcome] > scores[:, outcome].max() - 1e-5 * np.abs(scores[:, outcome]).max()
        assert 0 < index < len(SCALES) - 1


def test_a_mixture_that_is_too_wide_gets_less_noise_and_one_that_is_too_narrow_more(toy):
    """And the noise comes out as it is, to the error of estimating it from so few outcomes."""
    network, changes, shares, noise = toy
    found = chosen(network, changes, shares)[0]
    assert found[0] < 0.9
    assert found[1] > 1.1
    std = np.asarray(means_and_stds(network, KEY)[1])[0, 0, 0, 0]
    np.testing.assert_allclose(found * std, noise, rtol=0.25)


def test_the_objective_itself_would_have_kept_the_noise_that_pays_for_the_spread_of_the_means(toy):
    """Averaged over draws, the log density of the first outcome is largest at the std that the head has already."""
    network, changes, shares, _ = toy
    averaged = scores_of(network, changes, shares, "normal", mixture=False)[:, 0]
    mixture = scores_of(network, changes, shares, "normal", mixture=True)[:, 0]
    assert SCALES[averaged.argmax()] == pytest.approx(1.0, abs=0.05)
    assert SCALES[mixture.argmax()] < 0.9


def test_members_get_their_own(toy):
    """Ten candidates are a factor of 1.28: with so much more noise in the head, so much less of it is chosen."""
    network, changes, shares, _ = toy
    factor = SCALES[10] / SCALES[0]
    std = np.asarray(means_and_stds(network, KEY)[1])[0, 0, 0, 0]
    found = chosen(None, changes, shares, members=[network, with_std(network, *(factor * std))])
    np.testing.assert_allclose(found[0], chosen(network, changes, shares)[0], rtol=1e-6)
    np.testing.assert_allclose(found[1] * factor, found[0], rtol=0.03)  # to one candidate


@pytest.mark.parametrize(("factor", "end"), [(100.0, 0.5), (0.01, 2.0)])
def test_the_noise_changes_by_at_most_a_factor_of_two(toy, factor, end):
    network, changes, shares, noise = toy
    spread = with_std(network, *(factor * noise + SMALLEST_STD))
    np.testing.assert_allclose(chosen(spread, changes, shares)[0], end)


def test_one_outcome_that_was_thought_impossible_does_not_decide_about_all_others(toy):
    """With an std so small that it lies thirty away from every draw; of all others, the noise stays the same."""
    network, changes, shares, _ = toy
    impossible = changes.copy()
    impossible[7, 0, 0, 1] += 30 * np.asarray(means_and_stds(network, KEY)[1]).max()
    # To one candidate, which is a factor of 1.025.
    np.testing.assert_allclose(chosen(network, impossible, shares), chosen(network, changes, shares), rtol=0.03)
    plain = scores_of(network, impossible, shares, "normal", mixture=True)[:, 1]
    assert SCALES[plain.argmax()] > 1.2 * chosen(network, changes, shares)[0, 1]  # where nothing may be unforeseen


@pytest.mark.parametrize("tilts", [(-0.5, 0.0), (0.0, 0.5), (-0.4, -0.4)], ids=str)
def test_noise_that_changes_with_time_known_or_ahead_is_found(toy, tilts):
    """At no time and at the ends of both, to three standard errors of so many outcomes."""
    network, *_ = toy
    rng = np.random.default_rng(1)
    times = rng.uniform(0.0, (30.0, 4.0), size=(1_000, *ONE.shape[1:])).astype(np.float32)
    times[..., 0] = times[:, :, :1, 0]  # what is known is known at all horizons
    inputs = with_times(times)
    np.testing.assert_allclose(inputs.times, times, rtol=1e-6)
    keys = jax.random.split(KEY, NOISE_DRAWS)
    means, stds, _ = (np.asarray(part) for part in network.outcomes(inputs, keys, DURATIONS, PLAN_DURATIONS))
    factor = np.exp(times / (30.0, 4.0) @ tilts)[..., None]
    truth = np.take_along_axis(means, rng.integers(NOISE_DRAWS, size=(1, *means.shape[1:])), axis=0)[0]
    changes = truth + factor * stds[0, ..., 0] * rng.normal(size=truth.shape)
    (scale,), (growth,) = noise_and_growth(network, changes, np.ones(changes.shape), inputs=inputs)
    found = np.log(scale)[:, None] + growth @ (np.array([[0, 0], [30, 0], [0, 4], [30, 4]]).T)
    expected = np.array([0.0, tilts[0], tilts[1], sum(tilts)])
    # Three standard errors of a logarithm of a std, extrapolated to the corner of both times.
    np.testing.assert_allclose(found, np.tile(expected, (2, 1)), atol=0.12)


def test_without_evidence_the_noise_does_not_grow(toy):
    """Eight outcomes say nothing about it."""
    network, changes, shares, _ = toy
    times = np.random.default_rng(2).uniform(0.0, 5.0, size=ONE.shape).astype(np.float32)
    few = np.zeros_like(shares)
    few[10:12] = 1e-3
    _, growth = noise_and_growth(network, changes, few, inputs=with_times(times))
    np.testing.assert_array_equal(growth, 0.0)
