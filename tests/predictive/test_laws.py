import numpy as np
import pytest
from scipy.integrate import quad
from scipy.stats import kstest, norm, t

from counterpath.cohort.scaling import Scale
from counterpath.cohort.transforms import Log, Robust, Standard
from counterpath.predictive import Draws, Mixture, Noise, NotKeptError, join_draws, join_patients
from counterpath.predictive.law import KEPT_LEVELS

SCALES = {
    "standard": Scale(name="y", transform=Standard(), mean=3.0, std=2.0),
    "log": Scale(name="y", transform=Log(foot=0.1, knee=50.0), mean=-2.0, std=1.2, lower=0.0),
    "robust": Scale(name="y", transform=Robust(centre=5.0, scale=2.0), mean=0.2, std=1.1),
}
NOISES = {"normal": Noise(), "student_t": Noise("student_t"), "skewed": Noise(), "skewed t": Noise("student_t")}
SIDES = {"normal": 1, "student_t": 1, "skewed": 2, "skewed t": 2}


def mixture(scale="log", noise="normal", draws=7, patients=5, horizons=3, seed=0) -> Mixture:
    rng = np.random.default_rng(seed)
    centres = rng.normal(size=(draws, patients, horizons)).astype(np.float32)
    spreads = rng.uniform(0.01, 0.5, size=(*centres.shape, SIDES[noise])).astype(np.float32)
    return Mixture(centres, spreads, SCALES[scale], NOISES[noise])


def level(value: float) -> np.ndarray:
    return np.full((1, 1), value)


@pytest.mark.parametrize("noise", NOISES)
@pytest.mark.parametrize("scale", SCALES)
@pytest.mark.parametrize("wanted", [0.005, 0.3, 0.975])
def test_a_quantile_has_its_level_below_it(scale, noise, wanted):
    law = mixture(scale, noise)
    below = law.below(law.quantile(level(wanted)))
    np.testing.assert_allclose(below, wanted, atol=1e-5)  # the root is found to 1e-7 of the scale; spreads reach 0.01


def test_one_component_has_its_own_quantiles():
    law = mixture(draws=1)
    expected = law.scale.inverse(law.centres[0] + law.spreads[0, ..., 0] * norm.ppf(0.9))
    np.testing.assert_allclose(law.quantile(level(0.9)), expected, rtol=1e-5)


def test_components_far_apart_and_narrow_are_both_found():
    """Most of the line between them has no probability at all."""
    centres = np.array([[[-2.0]], [[-2.0]], [[3.0]]], dtype=np.float32)
    law = Mixture(centres, np.full_like(centres, 1e-3)[..., None], SCALES["standard"])
    np.testing.assert_allclose(law.quantile(level(0.5)), 3.0 - 2.0 * 2.0, atol=0.01)  # spreads are 0.002
    np.testing.assert_allclose(law.quantile(level(0.9)), 3.0 + 2.0 * 3.0, atol=0.01)  # likewise


@pytest.mark.parametrize("noise", NOISES)
@pytest.mark.parametrize("scale", SCALES)
def test_moments_are_the_integrals(scale, noise):
    law = mixture(scale, noise, draws=2, patients=2, horizons=1)
    density = t(5.0).pdf if NOISES[noise].kind == "student_t" else norm.pdf
    for draw, patient in np.ndindex(2, 2):
        centre, sides = float(law.centres[draw, patient, 0]), law.spreads[draw, patient, 0].astype(float)

        def power(x, about, exponent, centre=centre, sides=sides):
            side = sides[0] if x < 0 else sides[-1]
            outcome = law.scale.inverse(np.array([centre + side * x]))[0]
            return (outcome - about) ** exponent * density(x) * 2 * side / (sides[0] + sides[-1])

        mean = quad(power, -60, 60, args=(0.0, 1), limit=500, points=(-5, 0, 5))[0]
        square = quad(power, -200, 200, args=(mean, 2), limit=500, points=(-5, 0, 5))[0]
        # Kinks of the transforms are what the quadrature does not see exactly.
        assert law.expected()[draw, patient, 0] == pytest.approx(mean, abs=2e-3 * np.sqrt(square))
        assert law._moments[1][draw, patient, 0] == pytest.approx(square, rel=0.02)


@pytest.mark.parametrize("noise", NOISES)
def test_the_two_uncertainties_add_up_to_the_variance(noise):
    law = mixture("robust", noise)
    drawn = law.sample(70_000, np.random.default_rng(0))
    total = law.model_variance + law.outcome_variance
    np.testing.assert_allclose(drawn.var(axis=0), total, rtol=0.05)  # of 70,000 draws with heavy tails
    np.testing.assert_allclose(drawn.mean(axis=0), law.mean, atol=4 * np.sqrt(total.max() / 70_000))


def test_draws_follow_the_law():
    law = mixture()
    drawn = law.sample(2_000, np.random.default_rng(1))
    for patient, horizon in np.ndindex(5, 3):
        one = law.patients(np.array([patient]))
        own = drawn[:, patient, horizon]
        levels = [one.below(np.full((1, 3), value))[0, horizon] for value in own[:300]]
        assert kstest(levels, "uniform").pvalue > 1e-4


def test_no_outcome_lies_outside_what_the_scale_allows():
    law = mixture()
    assert (law.below(level(-1e-9)) == 0.0).all()
    assert (law.below(level(0.0)) < 1.0).all()
    bounded = Mixture(law.centres, law.spreads, law.scale.model_copy(update={"upper": 4.0}))
    assert (bounded.below(level(4.0)) == 1.0).all()
    assert (bounded.below(level(3.999)) < 1.0).any()


def test_some_patients_are_those_of_all_to_the_bit():
    law = mixture(patients=6)
    parts = [law.patients(slice(0, 2)), law.patients(np.array([2, 3, 4, 5]))]
    joined = join_patients(parts)
    assert isinstance(joined, Mixture)
    for ask in ("mean", "model_variance", "outcome_variance"):
        np.testing.assert_array_equal(getattr(joined, ask), getattr(law, ask))
    np.testing.assert_array_equal(joined.quantile(level(0.2)), law.quantile(level(0.2)))


@pytest.mark.parametrize(
    "law", [mixture(), Draws(mixture().sample(50, np.random.default_rng(0)))], ids=["mixture", "draws"]
)
def test_what_a_summary_keeps_is_what_it_was(law):
    kept = join_patients([law.patients(slice(0, 2)).summarised(), law.patients(slice(2, None)).summarised()])
    np.testing.assert_array_equal(kept.mean, law.mean)
    np.testing.assert_array_equal(kept.model_variance, law.model_variance)
    for wanted in KEPT_LEVELS:
        np.testing.assert_array_equal(kept.quantile(level(wanted)), law.quantile(level(wanted)))
    assert kept.patients(slice(1, 3)).number == 2
    assert kept.summarised() is kept


@pytest.mark.parametrize(
    "ask",
    [
        lambda kept: kept.quantile(level(0.3)),
        lambda kept: kept.below(level(1.0)),
        lambda kept: kept.expected(),
        lambda kept: kept.sample(10, np.random.default_rng(0)),
    ],
)
def test_a_summary_says_what_it_does_not_keep(ask):
    with pytest.raises(NotKeptError, match="keep='draws'"):
        ask(mixture().summarised())


def test_a_mixture_of_two_laws_counts_each_by_its_draws():
    few, many = mixture(draws=2, seed=1), mixture(draws=6, seed=2)
    both = join_draws([few, many])
    value = level(4.0)
    np.testing.assert_allclose(both.below(value), 0.25 * few.below(value) + 0.75 * many.below(value), rtol=1e-6)


def test_laws_on_different_scales_do_not_mix():
    with pytest.raises(ValueError, match="different scales"):
        join_draws([mixture("log"), mixture("robust")])


def test_quantiles_of_draws_may_have_a_level_for_each_horizon():
    law = Draws(np.random.default_rng(0).normal(size=(99, 4, 3)))
    levels = np.array([[0.1, 0.5, 0.9]])
    found = law.quantile(levels)
    for i, wanted in enumerate(levels[0]):
        np.testing.assert_allclose(found[:, i], law.quantile(level(wanted))[:, i])
    ordered = np.sort(law.draws, axis=0)
    np.testing.assert_allclose(found[:, 0], ordered[9, :, 0])  # order statistic 0.1 · 100
    np.testing.assert_array_equal(law.quantile(level(1e-6)), ordered[0])


def test_draws_of_the_weights_have_no_noise_and_others_cannot_tell():
    values = np.random.default_rng(0).normal(size=(30, 4, 3))
    pure, mixed = Draws(values, of_weights=True), Draws(values)
    np.testing.assert_array_equal(pure.model_variance, values.var(axis=0))
    assert (pure.outcome_variance == 0).all()
    assert np.isnan(mixed.model_variance).all()
    assert mixed.expected().shape == (1, 4, 3)
    assert sorted(mixed.sample(60, np.random.default_rng(1))[:, 0, 0]) == sorted(np.repeat(values[:, 0, 0], 2))
