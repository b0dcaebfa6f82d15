"""Adam with a learning rate of its own for each part of the network, and for each layer of a vector field."""

from __future__ import annotations

import math
from functools import partial
from typing import Any

import equinox as eqx
import jax
import optax

from counterpath.dynamics import FixedWeights
from counterpath.models import NeuralCDE
from counterpath.training.settings import TrainingSettings

PARTS = ("law", "drift", "readout")
MEMORY = {"layered": 0.99, "plain": 0.999}  # of squared gradients
USUAL_INPUTS = 64  # of a layer for which a learning rate holds as it is


def make_optimiser(settings: TrainingSettings, steps: int) -> optax.GradientTransformation:
    """Clipping, then Adam, then the schedule of each part, then the size of each layer.

    Args:
        settings: Of the run.
        steps: In all epochs.
    """
    rates = {
        "law": settings.learning_rate,
        "drift": settings.drift_learning_rate,
        "readout": settings.readout_learning_rate,
    }
    adam = partial(optax.adam, b2=MEMORY[settings.optimiser])
    return optax.chain(
        optax.clip_by_global_norm(settings.clip),
        optax.multi_transform({part: adam(_schedule(rates[part], settings, steps)) for part in PARTS}, label),
        _by_layer() if settings.optimiser == "layered" else optax.identity(),
    )


def _by_layer() -> optax.GradientTransformation:
    """Weights of a vector field move in proportion to their size, which is 1/√fan-in."""

    def update(updates: NeuralCDE, state: optax.EmptyState, network: NeuralCDE) -> tuple[NeuralCDE, optax.EmptyState]:
        def weights(of: NeuralCDE) -> list[Any]:
            laws = (of.encoder_law, of.decoder_law)
            return [law.weights if isinstance(law, FixedWeights) else law.initial_mean for law in laws]

        fields = (network.encoder_field, network.decoder_field)
        scaled = [
            math.sqrt(USUAL_INPUTS) * field.fan_in_std() * step
            for field, step in zip(fields, weights(updates), strict=True)
        ]
        return eqx.tree_at(weights, updates, scaled), state

    nothing = optax.EmptyState()
    return optax.GradientTransformation(lambda _: nothing, update)  # type: ignore[arg-type]  # parameters: a network


def _schedule(rate: float, settings: TrainingSettings, steps: int) -> optax.Schedule:
    if settings.schedule == "constant":
        return optax.constant_schedule(rate)
    warmup = max(int(settings.warmup * steps), 1)
    rest = max(steps - warmup, 1)
    falls = (
        optax.linear_schedule(rate, 0.0, rest)
        if settings.schedule == "linear"
        else optax.cosine_decay_schedule(rate, rest)
    )
    return optax.join_schedules([optax.linear_schedule(0.0, rate, warmup), falls], [warmup])


def label(parameters: Any) -> Any:
    """The part that each parameter belongs to."""

    def part_of(path, _) -> str:
        names = [getattr(entry, "name", "") for entry in path]
        if "drift" in names:
            return "drift"
        return "law" if {"encoder_law", "decoder_law"} & set(names) else "readout"

    return jax.tree_util.tree_map_with_path(part_of, parameters)
