"""Models that train in a second, once they are compiled, and patients for them."""

from __future__ import annotations

from functools import cache

import equinox as eqx
import jax
import numpy as np

import counterpath as cp
from counterpath.cohort import Cohort
from counterpath.estimators import BNCDE, TECDE
from counterpath.estimators.neural import NeuralEstimator

SMALL = {
    "hidden": 3,
    "field_widths": (4,),
    "embedding_widths": (),
    "head_widths": (),
    "cells": 64,  # a cell per day, so that candidate cuts are the days, whatever the seed
    "plan_cells": 5,
    "batch_size": 4,
    "cuts_per_step": 2,
    "draws": 1,
    "learning_rate": 5e-3,
    "readout_learning_rate": 5e-3,
    "epochs": 30,
}


def small_bncde(**options) -> BNCDE:
    """What is not said is small. Other settings are compiled anew."""
    return BNCDE(5.0, **({"posteriors": 1, "drift_widths": (2,), "kl_ramp": 0.0} | SMALL | options))


def small_tecde(**options) -> TECDE:
    """Likewise, and compiled in half the time."""
    return TECDE(5.0, **({"outcome_noise": True} | SMALL | options))


@cache
def small_study() -> tuple[Cohort, Cohort]:
    """Twenty-four daily patients to learn from and six to validate with."""
    cohort = cp.simulate_tumor_growth(30, seed=0).cohort
    return cohort[:24], cohort[24:]


def fit_small(model: NeuralEstimator, **options) -> NeuralEstimator:
    """Fitted to the small study."""
    return model.fit(*small_study(), progress=False, **options)


def leaves_of(model: NeuralEstimator) -> list[np.ndarray]:
    """All parameters of a fitted model."""
    return [np.asarray(leaf) for leaf in jax.tree.leaves(eqx.filter(model.networks_, eqx.is_array))]
