"""Members differ in their seed, when they learn and when they are asked."""

from copy import copy

import numpy as np
import pytest
from small_models import fit_small, small_bncde, small_study

import counterpath as cp

pytestmark = pytest.mark.slow  # a model is compiled and trained


def test_no_member_has_the_random_numbers_of_another():
    member = fit_small(small_bncde(epochs=1))
    ensemble = cp.DeepEnsemble(small_bncde(), members=2)
    ensemble.take([member, copy(member)])
    today = small_study()[1].until(40.0)
    (law,) = next(ensemble.laws(today, cp.Plan.none(), np.full((len(today), 1), 2.0), 10, 0))
    centres = law.centres[:, 0, 0]
    assert len(np.unique(centres)) == len(centres) == 10
