import numpy as np
import pytest

from counterpath.metrics import Uniformity, pit_uniformity


def test_distance_by_hand():
    # Four values at ⅛, ⅜, ⅝, ⅞: the step function is off by ⅛ at most
    result = pit_uniformity(np.array([0.125, 0.875, 0.375, 0.625]))
    assert result.distance == pytest.approx(1 / 8)
    assert result.points == 4
    # All on one value: off by that value just below it
    assert pit_uniformity(np.full(10, 0.75)).distance == pytest.approx(0.75)


def test_p_values_are_uniform_under_uniformity():
    rng = np.random.default_rng(0)
    rejected = np.mean([pit_uniformity(rng.random(200)).p_value < 0.1 for _ in range(500)])
    assert abs(rejected - 0.1) < 3 * np.sqrt(0.1 * 0.9 / 500)


def test_narrow_forecasts_are_rejected():
    assert pit_uniformity(np.random.default_rng(0).beta(0.5, 0.5, size=1_000)).p_value < 1e-6


def test_values_outside_0_and_1_are_refused():
    with pytest.raises(ValueError, match="between 0 and 1"):
        pit_uniformity(np.array([0.5, 1.5]))


def test_text():
    assert str(Uniformity(0.0312, 0.04, 100)) == "distance from uniform 0.031 (p = 0.04, 100 points)"
