"""Adam with a learning rate of its own for each part of the network."""

from __future__ import annotations

from typing import Any

import jax
import optax

from counterpath.training.settings import TrainingSettings

PARTS = ("law", "drift", "readout")


def make_optimiser(settings: TrainingSettings, steps: int) -> optax.GradientTransformation:
    """Clipping, then Adam, then the schedule of each part.

    Args:
        settings: Of the run.
        steps: In all epochs.
    """
    rates = {
        "law": settings.learning_rate,
        "drift": settings.drift_learning_rate,
        "readout": settings.readout_learning_rate,
    }
    return optax.chain(
        optax.clip_by_global_norm(settings.clip),
        optax.multi_transform({part: optax.adam(_schedule(rates[part], settings, steps)) for part in PARTS}, label),
    )


def _schedule(rate: float, settings: TrainingSettings, steps: int) -> optax.Schedule:
    if settings.schedule == "constant":
        return optax.constant_schedule(rate)
    warmup = max(int(settings.warmup * steps), 1)
    return optax.warmup_cosine_decay_schedule(0.0, rate, warmup, max(steps, warmup + 1))


def label(parameters: Any) -> Any:
    """The part that each parameter belongs to."""

    def part_of(path, _) -> str:
        names = [getattr(entry, "name", "") for entry in path]
        if "drift" in names:
            return "drift"
        return "law" if {"encoder_law", "decoder_law"} & set(names) else "readout"

    return jax.tree_util.tree_map_with_path(part_of, parameters)
