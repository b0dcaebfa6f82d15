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
        ({1.0: [0.95, 0.951], 2.0: [0.945]}, "holds"),
        ({1.0: [0.95], 2.0: [0.93]}, "holds partly"),
        ({1.0: [0.99], 2.0: [0.93]}, "does not hold"),
        ({1.0: [0.95]}, "holds where measured"),
        ({}, "not measured"),
        ({1.0: [0.949, 0.95, 0.951], 2.0: [0.95]}, "holds"),  # the mean over seeds counts
        ({1.0: [0.935, 0.95, 0.955], 2.0: [0.95]}, "holds, partly within chance"),
        ({1.0: [0.935, 0.95, 0.955], 2.0: [0.93]}, "does not hold, partly within chance"),
        ({1.0: [0.935, 0.95, 0.955]}, "within chance where measured"),
        ({1.0: [0.929, 0.93, 0.931], 2.0: [0.97]}, "does not hold"),
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
    assert judge(NARROWER, own | other, (1.0,)).found == "0.200 beside 0.300 at 1"


def test_figures_come_with_their_spread_over_seeds():
    values = by_seed("BNCDE", 0.1, 0.3) | by_seed("TECDE", 0.5)
    assert judge(NARROWER, values, (1.0,)).found == "0.20 ± 0.14 beside 0.500 at 1"


def test_two_models_are_compared_seed_by_seed_and_chance_is_named():
    other = by_seed("TECDE", 0.5, 0.7, 0.9)
    assert judge(NARROWER, by_seed("BNCDE", 0.4, 0.61, 0.8) | other, (1.0,)).word == "holds"  # always 0.1 less
    assert judge(NARROWER, by_seed("BNCDE", 0.6, 0.79, 1.0) | other, (1.0,)).word == "does not hold"
    assert judge(NARROWER, by_seed("BNCDE", 0.1, 0.9, 1.0) | other, (1.0,)).word == "within chance"


def test_few_seeds_leave_more_to_chance_than_many():
    """Ten and three seeds with the same mean and spread: Student's t knows how many there are."""
    other = {("TECDE", 1.0): dict.fromkeys(range(10), 0.5)}
    differences = [0.03, -0.01, -0.02]  # mean 0, spread 0.026
    few = {("BNCDE", 1.0): {seed: 0.465 + d for seed, d in enumerate(differences)}}
    many = {("BNCDE", 1.0): {seed: 0.465 + differences[seed % 3] for seed in range(9)}}
    assert judge(NARROWER, few | other, (1.0,)).word == "within chance"
    assert judge(NARROWER, many | other, (1.0,)).word == "holds"


def test_an_advantage_that_grows_does_so_seed_by_seed():
    grows = replace(NARROWER, grows=True)
    own = {("BNCDE", horizon): {0: 0.1, 1: 0.2} for horizon in (1.0, 2.0, 3.0)}

    def beside(*by_horizon):
        return own | {("TECDE", 1.0 + i): dict(enumerate(values)) for i, values in enumerate(by_horizon)}

    assert judge(grows, beside((0.2, 0.4), (0.3, 0.6), (0.4, 0.8)), ()).word == "holds"
    assert judge(grows, beside((0.4, 0.8), (0.3, 0.6), (0.2, 0.4)), ()).word == "does not hold"
    assert judge(grows, beside((0.2, 0.6), (0.3, 0.5), (0.4, 0.6)), ()).word == "within chance"
    assert judge(grows, beside((0.2, 0.4)), ()).word == "not measured"
    some = beside((0.2, 0.4), (0.3, 0.6), (0.4, 0.8))
    assert judge(grows, some, (1.0, 2.0, 3.0)).word == "holds"
    assert judge(grows, some, (1.0, 2.0, 3.0, 4.0)).word == "holds where measured"
    assert judge(grows, beside((0.2, 0.4), (0.3, 0.6)), ()).found == "2 times at 1; 3 times at 2"
