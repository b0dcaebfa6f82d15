"""Changes whose noise has known sources."""

import numpy as np
import pytest

from counterpath.paths.response_noise import ResponseNoise

TRUE = ResponseNoise(0.01, np.array([0.09, 0.01, 0.04]), np.array([0.04, 0.0]), np.array([-1.0, 0.0, 1.0]))


@pytest.fixture
def changes():
    """Time, level and what two treatments did; errors of that variance."""
    rng, number = np.random.default_rng(0), 20_000
    time, level = rng.choice([0.1, 1.0, 4.0], size=number), rng.normal(size=number)
    done = rng.choice([0.0, 0.0, 1.0, 3.0], size=(number, 2))
    errors = np.sqrt(TRUE.variance(time, level, done)) * rng.normal(size=number)
    return time, level, done, errors**2


def learned(changes, start, rounds=300):
    for _ in range(rounds):
        start = start.learned(*changes)
    return start


def test_each_source_is_told_apart(changes):
    found = learned(changes, ResponseNoise.before_learning(1.0, TRUE.levels, 2))
    # The relative error of a variance from n changes is √(2/n); a source matters for at least some 2,000 of them.
    assert found.measured == pytest.approx(TRUE.measured, rel=0.2)
    np.testing.assert_allclose(found.rates, TRUE.rates, rtol=0.15)
    assert found.shares[0] == pytest.approx(TRUE.shares[0], rel=0.15)
    assert found.shares[1] < 0.001  # a treatment that always does the same


def test_a_level_that_few_were_at_is_like_the_others(changes):
    time, level, done, squared = changes
    few = np.flatnonzero(level < 0)[:3]
    kept = np.concatenate([few, np.flatnonzero(level > 0)])
    squared = squared.copy()
    squared[few] = 100.0
    level = np.where(level < 0, -1.0, level)
    found = learned((time[kept], level[kept], done[kept], squared[kept]), TRUE, rounds=50)
    alone = 100.0 / time[few].min()  # what three changes by themselves would say
    assert found.rates[0] < 0.5 * alone


def test_it_stays_positive_where_nothing_is_left(changes):
    time, level, done, squared = changes
    found = learned((time, level, done, 0.0 * squared), TRUE, rounds=20)
    assert np.all(found.variance(time, level, done) > 0)


def test_the_usual_is_over_one_gap_without_treatment():
    assert TRUE.usual_std == pytest.approx(np.sqrt(0.01 + 0.04))
