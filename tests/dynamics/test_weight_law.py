import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import optax
import pytest
from scipy.integrate import quad
from scipy.stats import norm

from counterpath.dynamics import FixedWeights, WeightLaw, weight_paths
from counterpath.dynamics.weight_law import Drift

MEAN, STD, PRIOR_STD = np.array([1.0, -2.0, 0.0]), np.array([0.3, 0.1, 0.5]), np.array([1.0, 0.5, 0.25])
DURATIONS = np.array([0.05, 0.2, 0.1, 0.3, 0.15, 0.2])
DIFFUSION, RATE = 0.4, 1.5
DRAWS = 20_000
KINDS = ("gaussian", "two-point")


class Affine(eqx.Module):
    """u(ω, t) = a + b t − c ω."""

    constant: jax.Array
    clock: jax.Array
    pull: jax.Array

    def __call__(self, weights, clock):
        return self.constant + self.clock * clock - self.pull * weights


def f32(values):
    return jnp.asarray(values, dtype=jnp.float32)


def make_law(*, mean=MEAN, std=STD, control=None) -> WeightLaw:
    prior_std = f32(PRIOR_STD)
    drift = Drift(prior_std, (8,), key=jax.random.key(9))
    law = WeightLaw(f32(mean), None if std is None else f32(np.log(std)), prior_std, drift, f32(DIFFUSION), f32(RATE))
    if control is None:
        return law
    zero = {"constant": np.zeros(3), "clock": 0.0, "pull": 0.0}
    return eqx.tree_at(lambda law: law.drift, law, Affine(**{name: f32(x) for name, x in (zero | control).items()}))


@eqx.filter_jit
def jitted_paths(law, keys, durations, kind):
    paths, kl = weight_paths(law, keys, durations, kind)
    return jnp.moveaxis(paths.at_stretches(), 1, 0), kl


def draw_paths(law, durations=DURATIONS, kind="gaussian", draws=DRAWS):
    """Paths, draws × cells × weights, and the KL of each."""
    found = jitted_paths(law, jax.random.split(jax.random.key(0), draws), f32(durations), kind)
    return (np.asarray(values, dtype=np.float64) for values in found)


def recursion_moments(mean, variance, rate, durations):
    """Mean and variance at the left edge of every cell, exact for the Euler–Maruyama steps."""
    means, variances = [], []
    for duration in durations:
        means.append(mean)
        variances.append(variance)
        keep = 1 - rate * duration
        mean, variance = keep * mean, keep**2 * variance + DIFFUSION**2 * duration
    return np.array(means), np.array(variances)


def check_moments(paths, mean, variance, *, errors):
    """Empirical moments within so many standard errors; the variance of n normals has a relative one of √(2/n)."""
    draws = len(paths)
    assert np.abs((paths.mean(axis=0) - mean) / np.sqrt(variance / draws)).max() < errors
    assert np.abs((paths.var(axis=0) / variance - 1) / np.sqrt(2 / draws)).max() < errors


@pytest.mark.parametrize("kind", KINDS)
def test_without_control_the_moments_are_those_of_the_euler_recursion(kind):
    paths, _ = draw_paths(make_law(control={}), kind=kind)
    check_moments(paths, *recursion_moments(MEAN, STD**2, RATE, DURATIONS), errors=4)


def test_control_adds_to_the_priors_drift():
    """u = −c ω is an Ornstein–Uhlenbeck process of rate θ + c."""
    paths, _ = draw_paths(make_law(control={"pull": 0.7}))
    check_moments(paths, *recursion_moments(MEAN, STD**2, RATE + 0.7, DURATIONS), errors=4)


def test_a_path_does_not_depend_on_how_many_cells_follow():
    (short, _), (whole, _) = (draw_paths(make_law(control={}), durations) for durations in (DURATIONS[:4], DURATIONS))
    np.testing.assert_array_equal(short, whole[:, :4])


def test_a_constant_control_has_the_kl_of_a_shifted_brownian_motion():
    """½ |a|² T / σ², for every path alike."""
    shift = np.array([0.3, -0.1, 0.2])
    _, kl = draw_paths(make_law(control={"constant": shift}))
    np.testing.assert_allclose(kl, 0.5 * np.sum(shift**2) * np.sum(DURATIONS) / DIFFUSION**2, rtol=1e-5)


def test_control_sees_the_clock_at_the_left_edge_of_a_cell():
    _, kl = draw_paths(make_law(control={"clock": 1.0}))
    left = np.cumsum(DURATIONS) - DURATIONS
    np.testing.assert_allclose(kl, 0.5 * 3 * np.sum(left**2 * DURATIONS) / DIFFUSION**2, rtol=1e-5)


def normal_path(start, rate):
    """Mean and covariance of ω_1, …, ω_K, which solve (a bidiagonal matrix) ω = (the start) + noise."""
    keep = 1 - rate * DURATIONS
    inverse = np.linalg.inv(np.eye(len(keep)) - np.diag(keep[1:], -1))
    return inverse[:, 0] * keep[0] * start, inverse @ np.diag(DIFFUSION**2 * DURATIONS) @ inverse.T


def normal_kl(mean, covariance, prior_mean, prior):
    apart, ratio = mean - prior_mean, np.linalg.solve(prior, covariance)
    log_determinant = np.linalg.slogdet(ratio)[1]
    return 0.5 * (np.trace(ratio) + apart @ np.linalg.solve(prior, apart) - len(mean) - log_determinant)


@pytest.mark.parametrize("kind", KINDS)
def test_the_kl_of_two_ornstein_uhlenbeck_processes_is_that_of_two_multivariate_normals(kind):
    """On a grid both paths are jointly normal, and Girsanov's expression must be the KL of their laws."""
    pull = 2.0
    expected = sum(normal_kl(*normal_path(start, RATE + pull), *normal_path(start, RATE)) for start in MEAN)
    _, kl = draw_paths(make_law(std=np.full(3, 1e-6), control={"pull": pull}), kind=kind)
    standard_error = kl.std() / np.sqrt(len(kl))
    assert abs(kl.mean() - expected) < 4 * standard_error
    assert standard_error < 0.01 * expected


def test_on_a_fine_grid_moments_and_kl_are_those_of_the_continuous_processes():
    """κ = θ + c: E ω = e^{−κt} ν, Var ω = e^{−2κt} s² + σ² (1 − e^{−2κt}) / 2κ, KL = ½ c²/σ² ∫ E|ω|² dt."""
    pull, cells = 0.5, 1_000
    rate = RATE + pull
    paths, kl = draw_paths(make_law(control={"pull": pull}), np.full(cells, 1 / cells), draws=4_000)
    decay = np.exp(-rate * np.arange(cells) / cells)[:, None]
    variance = decay**2 * STD**2 + DIFFUSION**2 * (1 - decay**2) / (2 * rate)
    some = slice(99, None, 100)  # neighbours are nearly equal
    check_moments(paths[:, some], (decay * MEAN)[some], variance[some], errors=4)
    square = quad(
        lambda t: np.sum(
            np.exp(-2 * rate * t) * (MEAN**2 + STD**2) + DIFFUSION**2 * (1 - np.exp(-2 * rate * t)) / (2 * rate)
        ),
        0,
        1,
    )[0]
    expected = 0.5 * pull**2 / DIFFUSION**2 * square
    # The left edges of a thousand cells overstate the integral by a five-hundredth.
    assert abs(kl.mean() - expected) < 4 * kl.std() / np.sqrt(len(kl)) + 0.002 * expected


def draw_starts(law):
    keys = jax.random.split(jax.random.key(1), DRAWS)
    return np.asarray(jax.jit(jax.vmap(law.initial))(keys), dtype=np.float64)


def test_the_initial_law_has_the_learned_mean_and_scale():
    check_moments(draw_starts(make_law()), MEAN, STD**2, errors=4)


def test_the_papers_initial_law_has_the_scale_of_the_diffusion_and_no_kl():
    law = make_law(std=None)
    check_moments(draw_starts(law), MEAN, np.full(3, DIFFUSION**2), errors=4)
    assert law.initial_kl() == 0.0


def test_the_papers_initial_law_does_not_learn_the_diffusion():
    gradient = eqx.filter_grad(lambda law: jnp.sum(law.initial(jax.random.key(2)) ** 2))(make_law(std=None))
    assert gradient.diffusion == 0.0
    assert np.abs(gradient.initial_mean).min() > 0.0


def test_the_initial_kl_is_the_integral_that_defines_it():
    expected = 0.0
    for mean, std, prior_std in zip(MEAN, STD, PRIOR_STD, strict=True):
        posterior, prior = norm(mean, std), norm(0.0, prior_std)
        integrand = lambda w, q=posterior, p=prior: q.pdf(w) * (q.logpdf(w) - p.logpdf(w))  # noqa: E731
        expected += quad(integrand, mean - 12 * std, mean + 12 * std)[0]
    np.testing.assert_allclose(make_law().initial_kl(), expected, rtol=1e-5)


def test_the_initial_kl_vanishes_at_the_prior_only():
    kl = lambda mean, std: make_law(mean=mean, std=std).initial_kl()  # noqa: E731
    assert kl(np.zeros(3), PRIOR_STD) == pytest.approx(0.0, abs=1e-6)
    assert kl(np.array([0.0, 0.1, 0.0]), PRIOR_STD) == pytest.approx(0.5 * 0.2**2, rel=1e-4)
    assert kl(np.zeros(3), 1.1 * PRIOR_STD) > 0.01
    assert kl(np.zeros(3), PRIOR_STD / 1.1) > 0.01


def test_before_training_there_is_no_control_and_no_kl():
    law = make_law()
    assert not np.any(law.control(jnp.array([5.0, -3.0, 1.0]), jnp.array(0.7)))
    _, kl = draw_paths(law)
    np.testing.assert_array_equal(kl, 0.0)


def test_control_is_a_network_of_the_weights_in_units_of_their_scale():
    law = make_law()
    last, shift = np.random.default_rng(0).normal(size=(3, 8)), np.array([0.1, 0.2, 0.3])
    learned = eqx.tree_at(lambda law: law.drift.layers[-1], law, (f32(last), f32(shift)))
    weights, clock = np.array([0.4, -0.2, 0.1]), 0.6
    matrix, bias = (np.asarray(part) for part in law.drift.layers[0])
    inner = np.maximum(matrix @ [*(weights / PRIOR_STD), clock] + bias, 0)
    found = learned.control(f32(weights), f32(clock))
    np.testing.assert_allclose(found, PRIOR_STD * (last @ inner + shift), rtol=1e-4)


class Plain(eqx.Module):
    """The same control, of a kind that the solver does not take a short cut for."""

    drift: Drift

    def __call__(self, weights, clock):
        return self.drift(weights, clock)


@pytest.fixture(params=[(8,), (4, 6, 5)], ids=str)
def short_and_plain(request):
    """Laws with one drift; the solver takes the short cut for the first."""
    drift = Drift(f32(PRIOR_STD), request.param, key=jax.random.key(2))
    last = 0.7 * jax.random.normal(jax.random.key(3), drift.layers[-1][0].shape)
    drift = eqx.tree_at(lambda d: d.layers[-1], drift, (last, f32([0.3, -0.2, 0.1])))
    return [eqx.tree_at(lambda law: law.drift, make_law(), each) for each in (drift, Plain(drift))]


def test_the_short_cut_through_a_narrow_drift_is_the_plain_recursion(short_and_plain):
    (short_path, short_kl), (plain_path, plain_kl) = (draw_paths(law, draws=3) for law in short_and_plain)
    np.testing.assert_allclose(short_path, plain_path, atol=1e-5)
    assert plain_kl.min() > 0.1
    np.testing.assert_allclose(short_kl, plain_kl, rtol=1e-5)


def test_the_short_cut_has_the_gradient_of_the_plain_recursion(short_and_plain):
    @eqx.filter_grad
    def gradient(law):
        paths, kl = weight_paths(law, jax.random.split(jax.random.key(4), 3), f32(DURATIONS))
        return jnp.sum(jnp.sin(paths.at_stretches())) + jnp.sum(kl)

    short, plain = (jax.tree.leaves(gradient(law)) for law in short_and_plain)
    assert len(short) == len(plain)
    for ours, expected in zip(short, plain, strict=True):
        np.testing.assert_allclose(ours, expected, rtol=1e-4, atol=1e-4)


def test_a_drift_without_hidden_layers_is_refused():
    with pytest.raises(ValueError, match="at least one hidden layer"):
        Drift(f32(PRIOR_STD), (), key=jax.random.key(0))


def test_fixed_weights_stay_where_they_are_and_cost_nothing():
    paths, kl = draw_paths(FixedWeights(f32(MEAN)), draws=2)
    np.testing.assert_array_equal(paths, np.broadcast_to(MEAN, (2, len(DURATIONS), 3)))
    np.testing.assert_array_equal(kl, 0.0)
    assert FixedWeights(jnp.ones(3)).initial_kl() == 0.0


@eqx.filter_jit
def best_law(law, rows, product, noise_std):
    """Mean and scale that maximise the exact bound for y = Xω + noise with XᵀX = rows, from Xᵀy."""

    def loss(parameters):
        own = eqx.tree_at(lambda law: [law.initial_mean, law.initial_log_std], law, parameters)
        second_moment = own.initial_mean**2 + jnp.exp(2 * own.initial_log_std)
        expected_square = jnp.sum(rows * second_moment - 2 * product * own.initial_mean)
        return expected_square / (2 * noise_std**2) + own.initial_kl()

    optimiser = optax.adam(optax.cosine_decay_schedule(0.05, 1_000), b2=0.9)

    def step(state, _):
        parameters, optimiser_state = state
        updates, optimiser_state = optimiser.update(jax.grad(loss)(parameters), optimiser_state)
        return (optax.apply_updates(parameters, updates), optimiser_state), None

    start = [law.initial_mean, law.initial_log_std]
    return jax.lax.scan(step, (start, optimiser.init(start)), length=1_000)[0][0]


@pytest.mark.parametrize("rows", [8, 800])
def test_the_initial_law_contracts_like_conjugate_bayes(rows):
    """Posterior precision n/τ² + 1/s_0², and mean Xᵀy/τ² divided by it."""
    rng = np.random.default_rng(1)
    noise_std = 0.5
    design = np.linalg.qr(rng.normal(size=(rows, 3)))[0] * np.sqrt(rows)
    outcome = design @ np.array([0.5, -0.3, 0.2]) + noise_std * rng.normal(size=rows)
    precision = rows / noise_std**2 + 1 / PRIOR_STD**2
    law = make_law(mean=np.zeros(3), std=PRIOR_STD)
    mean, log_std = best_law(law, f32(rows), f32(design.T @ outcome), f32(noise_std))
    np.testing.assert_allclose(np.exp(log_std), precision**-0.5, rtol=1e-3)
    np.testing.assert_allclose(mean, design.T @ outcome / noise_std**2 / precision, atol=0.01 * precision.min() ** -0.5)
