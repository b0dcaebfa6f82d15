"""Fits of all seeds of a configuration, trained at once and kept, so that a run that ends early can go on."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from counterpath.estimators import DeepEnsemble, Estimator, load
from counterpath.estimators.joint_fit import fit_members
from counterpath.estimators.neural import NeuralEstimator
from counterpath.experiments.provenance import of_fit
from counterpath.experiments.recipes import Recipe
from counterpath.experiments.scales import Scale
from counterpath.experiments.world import World


def fit_seeds(
    recipe: Recipe,
    world: World,
    scale: Scale,
    horizon: float,
    seeds: tuple[int, ...],
    folder: Path,
    *,
    command: str = "",
    progress: bool = True,
) -> dict[int, Estimator]:
    """A fitted model for each seed, each on patients of its own.

    Args:
        recipe: The model.
        world: Where its patients are from.
        scale: How many.
        horizon: The longest that it is asked about.
        seeds: Which are wanted.
        folder: Where fits are kept, each with a record of how it was made; those that are there are not made again.
        command: That asked for it.
        progress: Show it.
    """
    folder.mkdir(parents=True, exist_ok=True)
    files = {seed: _file(folder, recipe, world, horizon, seed) for seed in seeds}
    missing = [seed for seed in seeds if not files[seed].exists()]
    made = {seed: recipe.build(scale, horizon, seed) for seed in missing}
    learners = [world.learners(scale, seed) for seed in missing]
    if recipe.per_horizon:
        learners = [tuple(world.up_to_the_last_cut(part, horizon) for part in parts) for parts in learners]
    trains, validations = [train for train, _ in learners], [validation for _, validation in learners]
    members = {seed: _networks_of(model) for seed, model in made.items()}
    if any(members.values()):
        of_run = _file(folder, recipe, world, horizon, "-".join(map(str, missing))).with_suffix(".checkpoint")
        fit_members(
            [network for own in members.values() for network in own],
            [train for own, train in zip(members.values(), trains, strict=True) for _ in own],
            [held for own, held in zip(members.values(), validations, strict=True) for _ in own],
            progress=progress,
            checkpoint=of_run,
        )
        for seed, model in made.items():
            if isinstance(model, DeepEnsemble):
                model.take(members[seed])
            files[seed].with_suffix(".json").write_text(json.dumps(of_fit(command)) + "\n", encoding="utf-8")
            model.save(files[seed])
        of_run.unlink(missing_ok=True)
    else:
        for model, train, validation in zip(made.values(), trains, validations, strict=True):
            model.fit(train, validation)  # quicker than to read a file
    return made | {seed: load(files[seed]) for seed in seeds if seed not in made}


def record_of_fit(folder: Path, recipe: Recipe, world: World, horizon: float, seed: int) -> dict[str, Any] | None:
    """How a kept fit was made; None where nobody has written it down."""
    path = _file(folder, recipe, world, horizon, seed).with_suffix(".json")
    return json.loads(path.read_text(encoding="utf-8")) if path.exists() else None


def _file(folder: Path, recipe: Recipe, world: World, horizon: float, seed: int | str) -> Path:
    return folder / f"{world.kept_as}.{file_name(recipe.name)}.{horizon:g}.{seed}.safetensors"


def _networks_of(model: Estimator) -> list[NeuralEstimator]:
    """What is trained: the model, or the members of an ensemble."""
    parts = model.new_members() if isinstance(model, DeepEnsemble) else [model]
    return [part for part in parts if isinstance(part, NeuralEstimator)]


def file_name(name: str) -> str:
    """Of a model."""
    return name.replace(", σ = ", "-sigma-").replace(", ", "-").replace(" ", "-")
