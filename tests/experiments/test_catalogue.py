"""The experiments are data that fits together."""

import pytest

from counterpath import BNCDE, TECDE
from counterpath.experiments.catalogue import EXPERIMENTS
from counterpath.experiments.recipes import BALANCED, RECIPES, USUAL, WEIGHTED
from counterpath.experiments.scales import SCALES


def test_every_experiment_of_the_paper_is_there():
    assert list(EXPERIMENTS) == [
        "faithfulness",
        "sharpness",
        "point-error",
        "deferral",
        "outcome-uncertainty",
        "windows",
        "informative-sampling",
        "diffusion",
        "runtime",
        "continuous-time",
        "effects",
        "real-icu",
        "semi-synthetic",
    ]


@pytest.mark.parametrize("experiment", EXPERIMENTS.values(), ids=lambda experiment: experiment.name)
def test_models_and_aims_are_known(experiment):
    assert set(experiment.models) <= set(RECIPES)
    assert {aim.model for aim in experiment.aims} <= set(experiment.models)
    assert {aim.than for aim in experiment.aims} <= {None, *experiment.models}
    for aim in experiment.aims:
        assert (aim.than is None) != (aim.lowest is None and aim.highest is None)


@pytest.mark.parametrize("scale", SCALES.values(), ids=lambda scale: scale.name)
@pytest.mark.parametrize("name", sorted({*USUAL, *WEIGHTED, *BALANCED}))
def test_recipes_differ_in_what_they_should(scale, name):
    first, second = (RECIPES[name].build(scale, 5.0, seed) for seed in (0, 1))
    assert (first.seed, second.seed) == (0, 1)
    assert first.max_horizon == second.max_horizon == 5.0
    if name != "LastValue":
        own, other = ({k: v for k, v in model.parameters.items() if k != "seed"} for model in (first, second))
        assert own == other


@pytest.mark.parametrize(
    "names", [("TECDE", "TESAR-CDE"), ("TECDE.paper", "TESAR-CDE.paper")], ids=lambda names: names[0]
)
def test_tesar_is_te_cde_with_weights(names):
    plain, weighted = (RECIPES[name].build(SCALES["paper"], 5.0, 0) for name in names)
    changed = {key for key, value in weighted.parameters.items() if value != plain.parameters[key]}
    assert changed == {"informative_sampling"}


@pytest.mark.parametrize("name", [name for name in BALANCED if name.endswith(", balanced")])
def test_balancing_is_all_that_is_different(name):
    plain, balanced = (RECIPES[own].build(SCALES["paper"], 1.0, 0) for own in (name.removesuffix(", balanced"), name))
    if name.startswith("DeepEnsemble"):
        plain, balanced = plain.model, balanced.model
    changed = {key for key, value in balanced.parameters.items() if value != plain.parameters[key]}
    assert changed == {"balancing"}
    assert (plain.parameters["balancing"], balanced.parameters["balancing"]) == (0.0, 0.01)


@pytest.mark.parametrize("model", [BNCDE, TECDE])
def test_the_paper_is_judged_by_its_own_configuration(model):
    name = f"{model.__name__}.paper"
    assert RECIPES[name].per_horizon
    assert RECIPES[name].build(SCALES["paper"], 3.0, 4).parameters == model.paper(3.0, seed=4).parameters
    claims = [aim for experiment in EXPERIMENTS.values() for aim in experiment.aims if aim.whose == "paper"]
    assert all(aim.model.startswith(("BNCDE.paper", "TECDE.paper", "TESAR-CDE.paper")) for aim in claims)
    assert {aim.than for aim in claims if aim.than and "σ" not in aim.than} == {
        "TECDE.paper",
        "TESAR-CDE.paper",
        "TECDE.paper, balanced",
        "BNCDE.paper, balanced",
    }


@pytest.mark.parametrize("name", EXPERIMENTS)
def test_the_smallest_scale_has_two_horizons_for_what_is_drawn_over_them(name):
    experiment, smoke = EXPERIMENTS[name], SCALES["smoke"]
    asked = smoke.among(experiment.horizons)
    assert set(asked) <= set(experiment.horizons)
    assert len(asked) == (2 if experiment.courses else min(len(asked), 2)) > 0
    assert SCALES["paper"].among(experiment.horizons) == experiment.horizons
