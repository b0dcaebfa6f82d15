"""A fit far from the others of its model is named beside the means."""

import pytest

from counterpath.experiments.catalogue import EXPERIMENTS
from counterpath.experiments.cells import Cell
from counterpath.experiments.scales import SCALES
from counterpath.experiments.strays import strays

LAPTOP, ERRORS = SCALES["laptop"], EXPERIMENTS["point-error"]


def fits(*curves, name="mean squared error", model="TECDE"):
    return [Cell("point-error", "arms", model, 2.0, seed, "laptop", {}, {name: c}, {}) for seed, c in enumerate(curves)]


def test_it_is_named_with_where_and_how_far():
    cells = fits([0.01, 0.02, 0.03, 0.04], [0.01, 0.02, 35.0, 90.0], [0.01, 0.02, 0.05, 0.04])
    assert strays(ERRORS, cells, LAPTOP) == [
        "TECDE in arms, seed 1, Δ = 2: mean squared error 35, 90 where the noise of the test patients is 0.07, 0.1; "
        "the median over seeds is 0.05, 0.04."
    ]


@pytest.mark.parametrize(
    "cells",
    [
        fits([0.01] * 4, [0.09] * 4, [0.01] * 4),
        fits([0.01] * 4, [1.0] * 4),
        fits([0.01] * 4, [0.01] * 4) + fits([1.0] * 4, model="BNCDE"),
        fits([0.01] * 4, [0.01] * 4, [1.0] * 4, name="coverage"),
    ],
    ids=["not so far", "which of two", "another model", "not a curve of this experiment"],
)
def test_nothing_is_said_where_fits_agree_or_are_few(cells):
    assert strays(ERRORS, cells, LAPTOP) == []


def test_ratios_that_may_come_near_zero_are_left_alone():
    experiment = EXPERIMENTS["deferral"]
    name = experiment.curves[0].name
    cells = fits([1.0, 1e-4], [1.0, 1e-2], [1.0, 1e-4], name=name)
    assert strays(experiment, cells, LAPTOP) == []
