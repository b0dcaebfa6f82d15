"""Verdicts follow from the figures."""

from dataclasses import replace

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
    values = {("BNCDE", horizon): dict(enumerate(own)) for horizon, own in found.items()}
    assert judge(WITHIN, values, (1.0, 2.0)).word == word


def by_seed(model, *values):
    return {(model, 1.0): dict(enumerate(values))}


def test_a_comparison_needs_both_models():
    own, other = by_seed("BNCDE", 0.2), by_seed("TECDE", 0.3)
    assert judge(NARROWER, own, (1.0,)).word == "not measured"
    assert judge(NARROWER, own | other, (1.0,)).word == "holds"
    assert judge(NARROWER, by_seed("BNCDE", 0.4) | other, (1.0,)).word == "does not hold"
    assert judge(NARROWER, own | other, (1.0,)).found == "0.2 beside 0.3 at 1"


def test_figures_come_with_their_spread_over_seeds():
    values = by_seed("BNCDE", 0.1, 0.3) | by_seed("TECDE", 0.5)
    assert judge(NARROWER, values, (1.0,)).found == "0.2 ± 0.1 beside 0.5 at 1"


def test_two_models_are_compared_seed_by_seed_and_chance_is_named():
    other = by_seed("TECDE", 0.5, 0.7, 0.9)
    assert judge(NARROWER, by_seed("BNCDE", 0.4, 0.61, 0.8) | other, (1.0,)).word == "holds"  # always 0.1 less
    assert judge(NARROWER, by_seed("BNCDE", 0.6, 0.79, 1.0) | other, (1.0,)).word == "does not hold"
    assert judge(NARROWER, by_seed("BNCDE", 0.1, 0.9, 1.0) | other, (1.0,)).word == "within chance"


def test_an_advantage_that_grows_is_larger_at_each_longer_horizon():
    grows = replace(NARROWER, grows=True)
    own = {("BNCDE", horizon): {0: 0.1} for horizon in (1.0, 2.0, 3.0)}
    others = {("TECDE", horizon): {0: value} for horizon, value in ((1.0, 0.2), (2.0, 0.3), (3.0, 0.4))}
    assert judge(grows, own | others, (1.0, 2.0, 3.0)).word == "holds"
    assert judge(grows, own | others | {("TECDE", 3.0): {0: 0.25}}, (1.0, 2.0, 3.0)).word == "holds partly"
    assert judge(grows, own | others, (1.0,)).word == "not measured"
    assert judge(grows, own | others, (1.0, 2.0)).found == "2 times at 1; 3 times at 2"
