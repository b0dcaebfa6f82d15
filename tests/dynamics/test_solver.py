import diffrax
import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import pytest
from scipy.linalg import expm
from small_fields import FIELD, HIDDEN, solve_alone, through

from counterpath.dynamics import VectorField, WeightLaw, solver, weight_paths
from counterpath.dynamics.weight_law import Drift


class LinearField(VectorField):
    """f(Z) = (A_1 Z, A_2 Z): without the tanh, so that there is a closed form."""

    def with_signals(self, state, clock, layers):
        ((matrix, _),) = layers
        return (matrix[:, :-1] @ state).reshape(self.channels, self.hidden).T, []


def log_log_slope(cells, errors):
    """The order: by which power of the step the error shrinks."""
    return np.polyfit(np.log(1 / np.array(cells)), np.log(errors), 1)[0]


def end_of(field, weights, hidden, clocks, path_steps):
    """Z after the last step."""
    last = jnp.array([len(path_steps) - 1])
    return solve_alone(field, through(weights), hidden, clocks, path_steps, last, path_steps[-1:])[0]


# A linear equation, dZ = A_1 Z dX_1 + A_2 Z dX_2 with matrices that do not commute


MATRICES = np.array([[[0.2, -0.9], [0.7, -0.3]], [[-0.5, 0.4], [0.1, 0.6]]])
CORNERS = {
    "straight": np.array([[0.0, 0.0], [0.8, 1.3]]),
    "with a corner": np.array([[0.0, 0.0], [1.0, 0.0], [1.0, 1.5]]),
}


@jax.jit
def linear_end(steps):
    matrix = np.pad(MATRICES.reshape(4, 2), [(0, 0), (0, 1)])  # of Z and the clock, which does not enter
    weights = jnp.asarray(np.append(matrix, np.zeros(4)), dtype=jnp.float32)
    along = jnp.broadcast_to(weights, (len(steps), len(weights)))
    return end_of(LinearField(2, 2, ()), along, jnp.array([1.0, -0.5]), jnp.zeros(len(steps)), steps)


def equal_steps(corners, cells):
    """As many for each leg of the path."""
    each = cells // (len(corners) - 1)
    return jnp.asarray(np.repeat(np.diff(corners, axis=0) / each, each, axis=0), dtype=jnp.float32)


@pytest.mark.parametrize("corners", CORNERS.values(), ids=CORNERS)
def test_a_linear_equation_approaches_its_matrix_exponential(corners):
    """exp(A·ΔX) for each leg in turn; the error halves with the step."""
    expected = np.array([1.0, -0.5])
    for leg in np.diff(corners, axis=0):
        expected = expm(np.tensordot(leg, MATRICES, axes=1)) @ expected
    cells = [64, 128, 256]
    errors = [np.linalg.norm(linear_end(equal_steps(corners, n)) - expected) for n in cells]
    assert errors[-1] < 0.005
    assert log_log_slope(cells, errors) == pytest.approx(1.0, abs=0.05)


def test_each_step_is_one_explicit_euler_step():
    """(I + A·ΔX)^n, to rounding."""
    step = np.eye(2) + np.tensordot([0.8 / 64, 1.3 / 64], MATRICES, axes=1)
    expected = np.linalg.matrix_power(step, 64) @ [1.0, -0.5]
    np.testing.assert_allclose(linear_end(equal_steps(CORNERS["straight"], 64)), expected, rtol=1e-5)


# The network's own field along a smooth path, against diffrax


def path_at(clock):
    return jnp.stack([clock, jnp.sin(3 * clock)], axis=-1)


def path_rate(clock):
    return jnp.stack([jnp.ones_like(clock), 3 * jnp.cos(3 * clock)], axis=-1)


def test_along_a_smooth_path_with_smooth_weights_the_order_is_one():
    """The weights go from those of one network to those of another."""
    first, last = np.random.default_rng(0).normal(size=(2, FIELD.size)) * FIELD.fan_in_std()

    def weights_at(clock):
        return first + (last - first) * jnp.asarray(clock)[..., None]

    def rate(clock, hidden, _):
        return FIELD(hidden, clock, FIELD.layers(weights_at(clock))) @ path_rate(clock)

    tight = diffrax.diffeqsolve(
        diffrax.ODETerm(rate),
        diffrax.Tsit5(),
        0.0,
        1.0,
        0.01,
        HIDDEN,
        stepsize_controller=diffrax.PIDController(rtol=1e-6, atol=1e-6),
    ).ys[-1]

    @jax.jit
    def ours(edges):
        steps = jnp.diff(path_at(edges), axis=0)
        return end_of(FIELD, weights_at(edges[:-1]), HIDDEN, edges[:-1], steps)

    cells = [64, 128, 256]
    errors = [np.linalg.norm(ours(jnp.linspace(0.0, 1.0, n + 1)) - tight) for n in cells]
    assert errors[-1] < 0.01
    assert np.linalg.norm(tight - HIDDEN) > 0.3  # there is something to follow
    assert log_log_slope(cells, errors) == pytest.approx(1.0, abs=0.1)


FINE, PATHS = 1_024, 32


@pytest.fixture(scope="module")
def moving_law():
    scale = FIELD.fan_in_std()
    drift = Drift(scale, (8,), key=jax.random.key(2))
    last = jax.random.normal(jax.random.key(3), drift.layers[-1][0].shape) / 8**0.5
    drift = eqx.tree_at(lambda drift: drift.layers[-1][0], drift, last)
    start = FIELD.usual_start(jax.random.key(4))
    return WeightLaw(start, jnp.full_like(start, -40.0), scale, drift, jnp.array(0.5), jnp.array(1.0))


@pytest.fixture(scope="module")
def brownian():
    """The same paths at every resolution: paths × fine cells × weights."""
    return jax.random.normal(jax.random.key(5), (PATHS, FINE, FIELD.size)) / FINE**0.5


@pytest.fixture(scope="module")
def tight_solution(moving_law, brownian):
    """ω after three quarters, and Z at the end, along the polygon through the fine Brownian path.

    With V = ω − σB, additive noise leaves an ordinary equation: dV = (u(V + σB, t) − θ (V + σB)) dt.
    """

    def one_path(fine):
        edges = jnp.linspace(0.0, 1.0, FINE + 1)
        walk = jnp.concatenate([jnp.zeros((1, FIELD.size)), jnp.cumsum(fine, axis=0)])
        polygon = diffrax.LinearInterpolation(edges, moving_law.diffusion * walk)

        def rate(clock, state, _):
            moved, hidden = state
            weights = moved + polygon.evaluate(clock)
            matrix = FIELD(hidden, clock, FIELD.layers(weights))
            drift = moving_law.control(weights, clock) - moving_law.prior_rate * weights
            return drift, matrix @ path_rate(clock)

        moved, hidden = diffrax.diffeqsolve(
            diffrax.ODETerm(rate),
            diffrax.Heun(),
            0.0,
            1.0,
            None,
            (moving_law.initial_mean, HIDDEN),
            stepsize_controller=diffrax.StepTo(edges),
            saveat=diffrax.SaveAt(ts=jnp.array([0.75, 1.0])),
            max_steps=FINE,
        ).ys
        return moved[0] + polygon.evaluate(0.75), hidden[1]

    return jax.jit(jax.vmap(one_path))(brownian)


@pytest.mark.slow  # a tight solution for each of 32 Brownian paths
def test_jointly_with_weights_on_a_given_brownian_path_the_strong_order_is_one(
    moving_law, brownian, tight_solution, monkeypatch
):
    """Noise is additive, so Euler–Maruyama has strong order 1, not ½."""
    cells = [8, 16, 32]
    weight_errors, hidden_errors = [], []
    for n in cells:

        def ours(fine, n=n):
            summed = fine.reshape(n, FINE // n, FIELD.size).sum(axis=1)
            monkeypatch.setattr(solver, "brownian_increments", lambda *_: summed[:, None])
            paths, _ = weight_paths(moving_law, jax.random.key(0)[None], jnp.full(n, 1 / n))
            weights = paths.at_stretches()[:, 0]
            edges = jnp.linspace(0.0, 1.0, n + 1)
            steps = jnp.diff(path_at(edges), axis=0)
            return weights[3 * n // 4], end_of(FIELD, weights, HIDDEN, edges[:-1], steps)

        found = jax.jit(jax.vmap(ours))(brownian)
        errors = [np.sqrt(np.mean((a - b) ** 2)) for a, b in zip(found, tight_solution, strict=True)]
        weight_errors.append(errors[0])
        hidden_errors.append(errors[1])
    # A root mean square over 32 paths has a relative standard error of about a tenth, but the paths are shared.
    assert log_log_slope(cells, weight_errors) == pytest.approx(1.0, abs=0.15)
    assert log_log_slope(cells, hidden_errors) == pytest.approx(1.0, abs=0.15)


def test_weights_of_stretches_are_those_of_a_grid_with_longer_cells(moving_law):
    keys, durations = jax.random.split(jax.random.key(8), 3), jnp.array([0.1, 0.2, 0.1, 0.25, 0.35])
    path, kl = weight_paths(moving_law, keys, durations, cells=2)
    longer, expected = weight_paths(moving_law, keys, jnp.array([0.3, 0.35, 0.35]))
    np.testing.assert_allclose(path.at_stretches(), longer.at_stretches(), rtol=1e-6)
    np.testing.assert_allclose(kl, expected, rtol=1e-6)
