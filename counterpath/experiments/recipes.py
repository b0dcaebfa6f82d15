"""The models of the tables, by name."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from counterpath.estimators import BNCDE, TECDE, DeepEnsemble, Estimator, LastValue
from counterpath.experiments.scales import Scale

DIFFUSIONS = (1e-4, 1e-3, 1e-2)
BALANCING = 0.01  # α of the paper's supplement on real and semi-synthetic data


@dataclass(frozen=True)
class Recipe:
    """How a model is made.

    Attributes:
        name: In tables.
        build: From a scale, the longest horizon and a seed.
        per_horizon: Whether each horizon has a fit of its own, as in the paper.
    """

    name: str
    build: Callable[[Scale, float, int], Estimator]
    per_horizon: bool = False


def _bncde(scale: Scale, horizon: float, seed: int, **options: Any) -> Estimator:
    asked = {name: value for name, value in scale.bncde.items() if name != "large"} | options
    made = BNCDE.large if scale.bncde.get("large") else BNCDE
    return made(horizon, seed=seed, **asked)


def _tecde(scale: Scale, horizon: float, seed: int, **options: Any) -> TECDE:
    asked: Any = {**scale.tecde, **options}
    return TECDE(horizon, seed=seed, **asked)


def _as_published(published: BNCDE | TECDE, scale: Scale, **options: Any) -> Estimator:
    """With the scale's settings, as far as the model has them."""
    own = published.parameters
    asked: Any = own | {name: value for name, value in scale.paper.items() if name in own} | options
    return type(published)(published.max_horizon, **asked)


def _paper(scale: Scale, horizon: float, seed: int, **options: Any) -> Estimator:
    return _as_published(BNCDE.paper(horizon, seed=seed), scale, **options)


def _tecde_paper(scale: Scale, horizon: float, seed: int, **options: Any) -> Estimator:
    return _as_published(TECDE.paper(horizon, seed=seed), scale, **options)


def _ensemble(scale: Scale, horizon: float, seed: int, **options: Any) -> Estimator:
    return DeepEnsemble(_tecde(scale, horizon, seed, outcome_noise=True, **options), members=scale.members)


def _balanced(build: Callable[..., Estimator]) -> Callable[[Scale, float, int], Estimator]:
    return lambda scale, horizon, seed: build(scale, horizon, seed, balancing=BALANCING)


def _inverse_intensity(build: Callable[..., Estimator]) -> Callable[[Scale, float, int], Estimator]:
    return lambda scale, horizon, seed: build(scale, horizon, seed, informative_sampling=True)


def _with_noise(scale: Scale, horizon: float, seed: int, **options: Any) -> Estimator:
    return _tecde(scale, horizon, seed, outcome_noise=True, **options)


def _with_diffusion(diffusion: float) -> Recipe:
    return Recipe(
        f"BNCDE.paper, σ = {diffusion:g}",
        lambda scale, horizon, seed: _paper(scale, horizon, seed, diffusion=diffusion),
        per_horizon=True,
    )


ORACLE = "Oracle"
USUAL = ("BNCDE", "BNCDE.paper", "TECDE", "TECDE.paper", "TECDE with noise", "DeepEnsemble", "LastValue")
WEIGHTED = (
    "BNCDE, weighted",
    "BNCDE.paper, weighted",
    "TESAR-CDE",
    "TESAR-CDE.paper",
    "TESAR-CDE with noise",
    "DeepEnsemble, weighted",
    "LastValue",
)
WEIGHTED_AS_PUBLISHED = ("BNCDE.paper, weighted", "TESAR-CDE.paper")
BALANCED = (
    "BNCDE",
    "BNCDE, balanced",
    "BNCDE.paper, balanced",
    "TECDE, balanced",
    "TECDE.paper, balanced",
    "TECDE with noise, balanced",
    "DeepEnsemble, balanced",
    "LastValue",
)
SPREADING = tuple(_with_diffusion(diffusion).name for diffusion in DIFFUSIONS)

RECIPES = {
    recipe.name: recipe
    for recipe in (
        Recipe("BNCDE", _bncde),
        Recipe("BNCDE.paper", _paper, per_horizon=True),
        Recipe("TECDE", _tecde),
        Recipe("TECDE.paper", _tecde_paper, per_horizon=True),
        Recipe("TECDE with noise", _with_noise),
        Recipe("DeepEnsemble", _ensemble),
        Recipe("LastValue", lambda scale, horizon, seed: LastValue(horizon, seed=seed)),
        Recipe("BNCDE, weighted", _inverse_intensity(_bncde)),
        Recipe("BNCDE.paper, weighted", _inverse_intensity(_paper), per_horizon=True),
        Recipe("TESAR-CDE", _inverse_intensity(_tecde)),
        Recipe("TESAR-CDE.paper", _inverse_intensity(_tecde_paper), per_horizon=True),
        Recipe("TESAR-CDE with noise", _inverse_intensity(_with_noise)),
        Recipe("DeepEnsemble, weighted", _inverse_intensity(_ensemble)),
        Recipe("BNCDE, balanced", _balanced(_bncde)),
        Recipe("BNCDE.paper, balanced", _balanced(_paper), per_horizon=True),
        Recipe("TECDE, balanced", _balanced(_tecde)),
        Recipe("TECDE.paper, balanced", _balanced(_tecde_paper), per_horizon=True),
        Recipe("TECDE with noise, balanced", _balanced(_with_noise)),
        Recipe("DeepEnsemble, balanced", _balanced(_ensemble)),
        *(_with_diffusion(diffusion) for diffusion in DIFFUSIONS),
    )
}
