"""Scores of the epochs of our own training, as the bench follows them."""

import math

import pytest

from bench.speed_crps import crps_ours


@pytest.mark.slow  # the paper's network is compiled
def test_our_training_is_scored_after_an_epoch():
    found = crps_ours(patients=64, test_patients=8, target=math.inf, cap_s=0.0)
    assert found["reached"]
    assert len(found["curve"]) == 1
    assert 0 < found["crps"] < 10  # in standard deviations of the outcome
