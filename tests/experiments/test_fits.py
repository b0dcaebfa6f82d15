"""Fits of an experiment: all seeds at once."""

from __future__ import annotations

import numpy as np
import pytest

from counterpath.estimators import DeepEnsemble
from counterpath.experiments.fits import fit_seeds
from counterpath.experiments.recipes import RECIPES
from counterpath.experiments.scales import SCALES
from counterpath.experiments.tumor_worlds import ARMS

SMOKE = SCALES["smoke"]


@pytest.mark.slow
def test_ensembles_of_several_seeds_train_as_one_by_one(tmp_path):
    recipe, horizon = RECIPES["DeepEnsemble"], 1.0
    together = fit_seeds(recipe, ARMS, SMOKE, horizon, (0, 1), tmp_path, progress=False)
    assert sorted(path.suffix for path in tmp_path.iterdir()) == [".json", ".json", ".safetensors", ".safetensors"]
    asked = ARMS.asked(SMOKE, "factual")
    for seed, ensemble in together.items():
        alone = recipe.build(SMOKE, horizon, seed).fit(*ARMS.learners(SMOKE, seed), progress=False)
        assert isinstance(ensemble, DeepEnsemble)
        assert isinstance(alone, DeepEnsemble)
        assert [member.seed for member in ensemble.members_] == [member.seed for member in alone.members_]
        told = (
            model.predict(asked.history, asked.plan, horizons=[horizon], progress=False) for model in (ensemble, alone)
        )
        one, other = (np.concatenate([prediction.mean, prediction.interval(0.95)[1]]) for prediction in told)
        np.testing.assert_allclose(one, other, rtol=1e-3)
