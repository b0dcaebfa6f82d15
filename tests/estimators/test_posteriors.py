"""A model of several posteriors: the networks that single models would have, mixed."""

import numpy as np
import pytest
from small_models import SMALL, small_bncde, small_study

import counterpath as cp
from counterpath.cohort import CohortError
from counterpath.estimators.joint_fit import fit_members
from counterpath.models.posterior import set_apart

pytestmark = pytest.mark.slow  # models are compiled and trained

EPOCHS = 3
TRAIN, VALIDATION = small_study()
TODAY = VALIDATION.until(40.0)


@pytest.fixture(scope="module")
def mixture():
    return small_bncde(posteriors=2, epochs=EPOCHS, skewed=False).fit(TRAIN, VALIDATION, progress=False)


def noise_of(network):
    return np.append(network.outcome_head.noise_scale, network.outcome_head.noise_growth)


def test_each_posterior_starts_and_ends_elsewhere(mixture):
    one, other = mixture.networks_
    assert np.abs(one.encoder_law.initial_mean - other.encoder_law.initial_mean).max() > 0.01


def test_they_share_the_size_of_their_noise(mixture):
    one, other = (noise_of(network) for network in mixture.networks_)
    np.testing.assert_array_equal(one, other)
    assert one[0] != 1.0


def test_the_history_has_a_row_per_epoch_and_posterior(mixture):
    assert mixture.history_.height == 2 * EPOCHS
    assert sorted(mixture.history_["posterior"].unique()) == [0, 1]


def test_a_prediction_has_draws_of_all_posteriors(mixture):
    inputs, _ = mixture._inputs(TODAY, cp.Plan.none().resolve(TODAY), np.ones((len(TODAY), 1)))
    means, _ = mixture.posterior(6, 0).outcomes(inputs)
    alone = []
    for network in mixture.networks_:
        one = small_bncde(skewed=False)
        one.tabulation_, one.networks_ = mixture.tabulation_, (network,)
        alone.append(one.posterior(3, 0).outcomes(inputs)[0])
    apart = np.stack(alone)  # posteriors × draws × patients × cuts × horizons × outcomes
    centre, own = apart.mean(axis=(0, 1)), apart.mean(axis=1, keepdims=True)
    apart = apart - own + centre + np.sqrt(2) * (own - centre)
    np.testing.assert_allclose(means, np.swapaxes(apart, 0, 1).reshape(means.shape), rtol=1e-5, atol=1e-6)


@pytest.mark.parametrize("number", [2, 4])
def test_a_few_posteriors_are_as_far_apart_as_many_would_be(number):
    """Of a few, the spread about their own mean is too small; set apart, it is right on average."""
    rng = np.random.default_rng(0)
    centres, within = rng.normal(size=(number, 1, 20_000)), 0.1 * rng.normal(size=(number, 5, 20_000))
    means = centres + within - within.mean(axis=1, keepdims=True)
    found = set_apart(means)
    # To the error of 20,000 patients.
    assert means.mean(axis=1).var(axis=0).mean() == pytest.approx((number - 1) / number, rel=0.03)
    assert found.mean(axis=1).var(axis=0).mean() == pytest.approx(1.0, rel=0.03)
    np.testing.assert_allclose(found.mean(axis=(0, 1)), means.mean(axis=(0, 1)), atol=1e-12)
    np.testing.assert_allclose(found.std(axis=1), means.std(axis=1))
    np.testing.assert_array_equal(set_apart(means[:1]), means[:1])


def test_models_that_train_together_are_those_that_train_alone(mixture):
    together = [small_bncde(posteriors=2, epochs=EPOCHS, seed=seed, skewed=False) for seed in (0, 1)]
    fit_members(together, [TRAIN], [VALIDATION], progress=False)
    for network, alone in zip(together[0].networks_, mixture.networks_, strict=True):
        np.testing.assert_allclose(network.encoder_law.initial_mean, alone.encoder_law.initial_mean, atol=1e-5)
    seeds = [seed for model in together for seed in model.network_seeds]
    assert len(set(seeds)) == 4


def test_with_cohorts_of_their_own_each_mixture_fits_its_own_noise():
    other = cp.simulate_tumor_growth(30, seed=5).cohort
    together = [small_bncde(posteriors=2, epochs=EPOCHS, seed=seed, skewed=False) for seed in (0, 1)]
    fit_members(together, [TRAIN, other[:24]], [VALIDATION, other[24:]], progress=False)
    noises = [[noise_of(network) for network in model.networks_] for model in together]
    for own in noises:
        np.testing.assert_array_equal(own[0], own[1])
    assert np.abs(noises[0][0] - noises[1][0]).max() > 0


def test_no_posterior_is_refused():
    with pytest.raises(CohortError, match="posteriors=0"):
        cp.BNCDE(5.0, **SMALL, posteriors=0)
