"""Verdicts follow from the figures."""

import pytest

from counterpath.experiments.experiment import Aim
from counterpath.experiments.verdicts import judge

WITHIN = Aim("hold 94 to 96%", "95% holds", lowest=0.94, highest=0.96)
NARROWER = Aim("narrower", "95% width", than="TECDE")


@pytest.mark.parametrize(
    ("found", "word"),
    [
        ({1.0: [0.95, 0.955], 2.0: [0.945]}, "holds"),
        ({1.0: [0.95], 2.0: [0.93]}, "holds partly"),
        ({1.0: [0.99], 2.0: [0.93]}, "does not hold"),
        ({1.0: [0.95]}, "holds where measured"),
        ({}, "not measured"),
        ({1.0: [0.93, 0.97], 2.0: [0.95]}, "holds"),  # the mean over seeds counts
    ],
)
def test_a_range_holds_at_every_horizon_or_not(found, word):
    values = {("BNCDE", horizon): own for horizon, own in found.items()}
    assert judge(WITHIN, values, (1.0, 2.0)).word == word


def test_a_comparison_needs_both_models():
    own, other = {("BNCDE", 1.0): [0.2]}, {("TECDE", 1.0): [0.3]}
    assert judge(NARROWER, own, (1.0,)).word == "not measured"
    assert judge(NARROWER, own | other, (1.0,)).word == "holds"
    assert judge(NARROWER, {("BNCDE", 1.0): [0.4]} | other, (1.0,)).word == "does not hold"
    assert judge(NARROWER, own | other, (1.0,)).found == "0.2 beside 0.3 at 1"
