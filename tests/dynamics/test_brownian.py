import jax
import jax.numpy as jnp
import numpy as np
import pytest

from counterpath.dynamics import brownian_increments

KINDS = ("gaussian", "two-point")
DURATIONS = jnp.array([0.25, 0.01, 0.5, 0.04])
DRAWS, SIZE = 4_000, 35  # more than one random word of 32 bits
of_draws = jax.jit(brownian_increments, static_argnames=("size", "kind"))


def drawn(key, durations, size, kind):
    """Of one draw: cells × size."""
    return of_draws(key[None], durations, size, kind)[:, 0]


@pytest.fixture(scope="module", params=KINDS)
def unit(request):
    """ΔB/√Δt of many draws, in double precision: draws × cells × size."""
    keys = jax.random.split(jax.random.key(0), DRAWS)
    increments = of_draws(keys, DURATIONS, SIZE, request.param)
    return np.asarray(increments, dtype=np.float64).swapaxes(0, 1) / np.sqrt(DURATIONS, dtype=np.float64)[:, None]


def test_mean_is_zero_and_variance_the_duration(unit):
    """Of 140 means and 140 variances, none is beyond 4.5 standard errors in 499 of 500 such families."""
    assert np.abs(unit.mean(axis=0)).max() < 4.5 / np.sqrt(DRAWS)
    np.testing.assert_allclose((unit**2).mean(axis=0), 1.0, atol=4.5 * np.sqrt(2 / DRAWS))


def test_cells_and_weights_are_independent(unit):
    """Uncorrelated in pairs; and in fours, as bits of one word could depend on each other without any correlation."""
    flat = unit.reshape(DRAWS, -1)
    correlations = flat.T @ flat / DRAWS
    np.fill_diagonal(correlations, 0.0)
    assert np.abs(correlations).max() < 5.5 / np.sqrt(DRAWS)  # of 9,730
    fours = flat[:, :-3] * flat[:, 1:-2] * flat[:, 2:-1] * flat[:, 3:]
    assert np.abs(fours.mean(axis=0)).max() < 4.5 / np.sqrt(DRAWS)


def test_draws_are_independent(unit):
    flat = unit.reshape(DRAWS, -1)
    assert np.abs((flat[1:] * flat[:-1]).mean(axis=0)).max() < 4.5 / np.sqrt(DRAWS)


@pytest.mark.parametrize(("kind", "fourth", "eighth"), [("gaussian", 3.0, 105.0), ("two-point", 1.0, 1.0)])
def test_the_fourth_moment_tells_the_kinds_apart(kind, fourth, eighth):
    found = np.asarray(drawn(jax.random.key(1), jnp.ones(500), 200, kind), dtype=np.float64)
    assert abs((found**4).mean() - fourth) <= 4 * np.sqrt((eighth - fourth**2) / found.size)


@pytest.mark.parametrize("kind", KINDS)
def test_increments_do_not_depend_on_how_many_cells_follow(kind):
    key = jax.random.key(1)
    np.testing.assert_array_equal(drawn(key, DURATIONS[:2], SIZE, kind), drawn(key, DURATIONS, SIZE, kind)[:2])


def test_normals_of_a_cell_come_from_its_own_key():
    key = jax.random.key(1)
    found = drawn(key, DURATIONS, SIZE, "gaussian")
    for cell, duration in enumerate(DURATIONS):
        own = jax.random.normal(jax.random.fold_in(key, cell), (SIZE,))
        np.testing.assert_allclose(found[cell], jnp.sqrt(duration) * own, rtol=1e-6)


@pytest.mark.parametrize("size", [1, 32, 33])
def test_two_point_increments_are_exactly_the_root_of_the_duration_up_or_down(size):
    found = drawn(jax.random.key(2), DURATIONS, size, "two-point")
    np.testing.assert_array_equal(np.abs(found), np.broadcast_to(np.sqrt(DURATIONS)[:, None], (4, size)))


@pytest.mark.parametrize("kind", KINDS)
def test_a_step_without_duration_has_no_increment(kind):
    found = drawn(jax.random.key(3), jnp.array([0.5, 0.0]), SIZE, kind)
    np.testing.assert_array_equal(found[1], 0.0)
    assert np.abs(found[0]).max() > 0.0
