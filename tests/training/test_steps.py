"""What a step makes smaller is the bound of the whole data set, whatever part of it the step sees."""

from dataclasses import replace
from itertools import combinations, product

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import pytest
from small_models import small_bncde, small_study

from counterpath.models import evidence_bound
from counterpath.training import Clock, tabulate
from counterpath.training.problem import Problem
from counterpath.training.steps import batch_loss, draw_batch

pytestmark = pytest.mark.slow  # gradients are compiled

PATIENTS, CUTS = 4, 6  # of each patient
KEYS = jax.random.split(jax.random.key(5), 2)


@pytest.fixture(scope="module")
def whole():
    """A problem of few patients with weights that follow a law, and their parameters."""
    return problem_of(small_bncde(draws=2))


def problem_of(model):
    cohort = small_study()[0].until(CUTS + 1.0)
    model.tabulation_ = model.new_tabulation(cohort)

    def examples(cohort):
        is_balanced = bool(model.training.balancing)
        return tabulate(cohort, model.tabulation_, cuts="many", rng=np.random.default_rng(0), is_balanced=is_balanced)

    alike = np.flatnonzero(examples(cohort).targets.cuts == CUTS)[:PATIENTS]
    found = examples(cohort.take(alike))
    parameters, rest = eqx.partition(model.new_network(model.tabulation_, 0), eqx.is_inexact_array)
    parameters = jax.tree.map(lambda leaf: leaf + 0.01, parameters)  # drifts begin at zero
    settings = replace(model.training, batch_size=PATIENTS, cuts_per_step=CUTS, temperature=1.0)
    clock = Clock.of(model.tabulation_)
    return Problem(found.inputs, found.targets, clock, jnp.asarray(found.outcomes), rest, settings), parameters


@eqx.filter_jit
def gradient(problem, parameters, chosen, places, step=0):
    batch = draw_batch(problem.inputs, problem.targets, chosen, places)
    dropout = jax.random.split(jax.random.key(0), (len(KEYS), len(chosen)))
    found = jax.grad(batch_loss, has_aux=True)(parameters, problem, batch, KEYS, dropout, jnp.asarray(step))[0]
    return jnp.concatenate([leaf.ravel() for leaf in jax.tree.leaves(found)])


def expected(problem, parameters, **settings):
    """The mean over all batches and all ways to choose one cut of each stretch, each as likely as the others."""
    own = replace(problem.settings, **settings)
    problem, stretch = replace(problem, settings=own), CUTS // own.cuts_per_step
    middles = (np.arange(stretch) + 0.5) / stretch
    found = [
        gradient(problem, parameters, jnp.asarray(chosen), jnp.tile(jnp.asarray(places), (len(chosen), 1)))
        for chosen in combinations(range(PATIENTS), own.batch_size)
        for places in product(middles, repeat=own.cuts_per_step)
    ]
    return np.mean(found, axis=0)


def everything(problem):
    return jnp.arange(PATIENTS), jnp.tile(jnp.full(CUTS, 0.5), (PATIENTS, 1))


def parts(problem, parameters, names=("kl", "log_likelihood")):
    """Gradients of KL and likelihood of the data set, per outcome, apart from any step."""
    batch = draw_batch(problem.inputs, problem.targets, *everything(problem))

    def part(parameters, name):
        network, clock = eqx.combine(parameters, problem.rest), problem.clock
        dropout = jax.random.split(jax.random.key(0), (len(KEYS), PATIENTS))
        options = {"likelihood": problem.settings.likelihood, "increments": problem.settings.increments}
        bound = evidence_bound(network, batch, clock.history, clock.plan, keys=KEYS, dropout_keys=dropout, **options)
        return getattr(bound, name) / problem.outcomes

    for name in names:
        leaves = jax.tree.leaves(eqx.filter_jit(jax.grad(part))(parameters, name))
        yield np.concatenate([np.ravel(leaf) for leaf in leaves])


def assert_same(found, wanted):
    np.testing.assert_allclose(found, wanted, rtol=2e-3, atol=2e-5 * np.abs(wanted).max())


def test_a_step_that_sees_all_is_the_bound_with_kl_and_likelihood_once_each(whole):
    kl, likelihood = parts(*whole)
    assert min(np.abs(kl).max(), np.abs(likelihood).max()) > 1e-3
    assert_same(gradient(*whole, *everything(whole[0])), kl - likelihood)


@pytest.mark.parametrize("some", [{"batch_size": 2}, {"batch_size": 1, "cuts_per_step": 1}, {"cuts_per_step": 2}])
def test_the_expected_gradient_does_not_depend_on_what_a_step_sees(whole, some):
    assert_same(expected(*whole, **some), gradient(*whole, *everything(whole[0])))


def test_temperature_divides_the_likelihood_alone(whole):
    problem, parameters = whole
    kl, likelihood = parts(problem, parameters)
    warm = replace(problem, settings=replace(problem.settings, temperature=4.0))
    assert_same(gradient(warm, parameters, *everything(problem)), kl - likelihood / 4)


def test_on_a_ramp_the_kl_comes_in_alone(whole):
    problem, parameters = whole
    kl, likelihood = parts(problem, parameters)
    settings = replace(problem.settings, kl_ramp=0.5, epochs=80)  # of 80 steps
    halfway = gradient(replace(problem, settings=settings), parameters, *everything(problem), step=20)
    assert_same(halfway, kl / 2 - likelihood)


@pytest.mark.parametrize("temperature", [1.0, 4.0])
def test_what_treatments_tell_counts_by_alpha_beside_the_likelihood(temperature):
    problem, parameters = problem_of(small_bncde(draws=2, balancing=0.3))
    problem = replace(problem, settings=replace(problem.settings, temperature=temperature))
    kl, likelihood, guesses = parts(problem, parameters, ("kl", "log_likelihood", "decisions"))
    assert np.abs(guesses).max() > 1e-3
    found = gradient(problem, parameters, *everything(problem))
    assert_same(found, kl - (likelihood - 0.3 * guesses) / temperature)
