"""Queries inside of steps: cuts and horizons that the solver reaches on its way."""

from dataclasses import replace

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from small_fields import FIELD, HIDDEN, solve_alone, through

from counterpath.dynamics import VectorField, WeightPath, solve

STEPS = 5


@pytest.fixture(scope="module")
def problem():
    rng = np.random.default_rng(6)
    weights = jax.vmap(FIELD.usual_start)(jax.random.split(jax.random.key(7), STEPS))
    steps = jnp.asarray(rng.normal(size=(STEPS, 2)), dtype=jnp.float32)
    return weights, jnp.linspace(0.0, 0.8, STEPS), steps


@jax.jit
def answers(weights, clocks, steps, query_step, query_increments):
    return solve_alone(FIELD, through(weights), HIDDEN, clocks, steps, query_step, query_increments)


def explicit_states(weights, clocks, steps):
    """Z at every edge, step by step."""
    states = [HIDDEN]
    for k in range(STEPS):
        states.append(states[-1] + FIELD(states[-1], clocks[k], FIELD.layers(weights[k])) @ steps[k])
    return np.stack(states)


def test_a_query_at_either_edge_of_a_step_is_the_state_there(problem):
    states = explicit_states(*problem)
    everywhere = jnp.arange(STEPS)
    np.testing.assert_allclose(answers(*problem, everywhere, problem[2]), states[1:], rtol=1e-5, atol=1e-6)
    np.testing.assert_allclose(answers(*problem, everywhere, 0 * problem[2]), states[:-1], rtol=1e-5, atol=1e-6)


@pytest.mark.parametrize("cells", [2, 3, 5, 8])
def test_over_a_stretch_of_cells_the_weights_stay_and_the_state_moves(problem, cells):
    """Also where the last stretch is shorter than the others."""
    weights, clocks, steps = problem
    path = replace(through(weights[::cells]), cells=cells)
    found = solve_alone(FIELD, path, HIDDEN, clocks, steps, jnp.arange(STEPS), steps)
    held = jnp.repeat(weights[::cells], cells, axis=0)[:STEPS]
    np.testing.assert_allclose(found, explicit_states(held, clocks, steps)[1:], rtol=1e-5, atol=1e-6)


def test_a_query_inside_a_step_is_the_end_of_a_path_that_stops_there(problem):
    """What follows the query, in its step or later, does not enter."""
    weights, clocks, steps = problem
    for k in (0, 2, 4):
        inside = jnp.array([0.3, -0.7]) * steps[k]
        stopped = steps.at[k].set(inside).at[k + 1 :].set(jnp.nan)
        expected = answers(weights, clocks, stopped, jnp.array([k]), inside[None])
        other_end = answers(weights, clocks, steps, jnp.array([k]), inside[None])
        np.testing.assert_array_equal(other_end, expected)
        truncated = solve_alone(
            FIELD,
            through(weights[: k + 1]),
            HIDDEN,
            clocks[: k + 1],
            stopped[: k + 1],
            jnp.array([k]),
            stopped[k : k + 1],
        )
        np.testing.assert_allclose(truncated, expected, rtol=1e-6, atol=1e-7)


def test_what_is_carried_along_is_the_path_at_every_query():
    """And the learned part sees it there, at the start of each step."""
    rows = np.array([[0.5, 0.0], [1.0, -2.0]], dtype=np.float32)
    field = replace(FIELD, carry=jnp.asarray(rows))
    rng = np.random.default_rng(9)
    steps, inside = (jnp.asarray(rng.normal(size=(STEPS, 2)), dtype=jnp.float32) for _ in range(2))
    weights, clocks = field.usual_start(jax.random.key(10)), jnp.linspace(0.0, 0.8, STEPS)
    start = jnp.append(HIDDEN, jnp.array([0.3, -0.1]))
    path = through(jnp.broadcast_to(weights, (STEPS, field.size)))
    found = solve_alone(field, path, start, clocks, steps, jnp.arange(STEPS), inside)
    state, expected = start, []
    for k in range(STEPS):
        matrix = jnp.concatenate([field(state, clocks[k], field.layers(weights)), rows])
        expected.append(state + matrix @ inside[k])
        state = state + matrix @ steps[k]
    np.testing.assert_allclose(found, expected, rtol=1e-5, atol=1e-6)


def test_queries_do_not_disturb_each_other(problem):
    where = jnp.array([3, 0, 3, 4, 1])
    increments = jnp.asarray(np.random.default_rng(8).normal(size=(5, 2)), dtype=jnp.float32)
    together = answers(*problem, where, increments)
    alone = [answers(*problem, where[i : i + 1], increments[i : i + 1])[0] for i in range(5)]
    np.testing.assert_allclose(together, alone, rtol=1e-6, atol=1e-7)
    others_moved = answers(*problem, where, increments.at[:4].multiply(100.0))
    np.testing.assert_array_equal(others_moved[4], together[4])


def test_steps_on_which_the_path_rests_leave_the_state_alone(problem):
    weights, clocks, steps = problem
    rests = steps.at[2:].set(0.0)
    at_rest = answers(weights, clocks, rests, jnp.array([1, 4]), jnp.stack([steps[1], jnp.zeros(2)]))
    np.testing.assert_array_equal(at_rest[0], at_rest[1])
    assert np.abs(at_rest[0] - HIDDEN).max() > 0.01


# The way back, which is written by hand


@pytest.mark.parametrize("queries", [1, 4], ids=["which ends at its only query", "past several queries"])
@pytest.mark.parametrize("activation", ["relu", "silu", "tanh"])
def test_gradients_are_those_of_the_recursion_as_it_is_written(activation, queries):
    """Along the weights of every stretch, along Z, and along what is carried; patients share the weights."""
    patients, cells, rng = 3, 2, np.random.default_rng(11)

    def random(*shape):
        return jnp.asarray(rng.normal(size=shape), dtype=jnp.float32)

    field = VectorField(2, 3, (6, 5), activation, carry=random(2, 3))
    moves = random(3, field.size) / 3
    kept, clocks, steps = jnp.array([0.9, 0.8, 0.7]), jnp.linspace(0.0, 0.8, STEPS), random(patients, STEPS, 3)
    where, inside = rng.integers(0, STEPS, (patients, queries)), random(patients, queries, 3)
    valued = random(patients, queries, 4)  # what each answer is worth

    def solved(start, moves, hidden):
        path = WeightPath(start, kept, moves, cells)
        return jnp.sum(valued * solve(field, path, hidden, clocks, steps, jnp.asarray(where), inside))

    def written(start, moves, hidden):
        total = 0.0
        for patient in range(patients):
            weights, state = start, hidden[patient]
            for k in range(STEPS):
                matrix = jnp.concatenate([field(state, clocks[k], field.layers(weights)), field.carry])
                for query in np.flatnonzero(where[patient] == k):
                    total += valued[patient, query] @ (state + matrix @ inside[patient, query])
                state = state + matrix @ steps[patient, k]
                if k % cells == cells - 1:
                    weights = kept[k // cells] * weights + moves[k // cells]
        return total

    at = field.usual_start(jax.random.key(12)), moves, random(patients, 4)
    found = jax.jit(jax.value_and_grad(solved, argnums=(0, 1, 2)))(*at)
    expected = jax.jit(jax.value_and_grad(written, argnums=(0, 1, 2)))(*at)
    for ours, theirs in zip(jax.tree.leaves(found), jax.tree.leaves(expected), strict=True):
        np.testing.assert_allclose(ours, theirs, rtol=1e-4, atol=1e-5)
        assert np.abs(theirs).max() > 0.1
