"""What does not change in training: patients, clocks and settings, mapped over members and spread over devices."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
from jax.sharding import PartitionSpec
from jaxtyping import Array, Float

from counterpath.models import Inputs, Targets
from counterpath.paths.tabulation import Tabulation
from counterpath.training.settings import TrainingSettings
from counterpath.training.spread import EVERYWHERE, Spread


class Clock(eqx.Module):
    """Durations of the steps of encoder and decoder, on their clocks."""

    history: Float[Array, "*members steps"]
    plan: Float[Array, "*members plan_steps"]

    @classmethod
    def of(cls, tabulation: Tabulation) -> Clock:
        """The clock of a model's grids."""
        return cls(*(jnp.asarray(d, dtype=jnp.float32) for d in (tabulation.durations, tabulation.plan_durations)))


class Problem(eqx.Module):
    """What does not change in training.

    Attributes:
        inputs: Of all patients; with a leading axis of members where each has its own.
        targets: Likewise.
        clock: Of the solver, likewise.
        outcomes: Number of outcomes in the data set, likewise.
        rest: The network without its parameters.
        settings: Of the run.
        spread: Over devices.
    """

    inputs: Inputs
    targets: Targets
    clock: Clock
    outcomes: Float[Array, "*members"]
    rest: Any
    settings: TrainingSettings = eqx.field(static=True)
    spread: Spread = eqx.field(static=True, default=Spread())

    @property
    def has_own_patients(self) -> bool:
        """Whether each member has patients of its own."""
        return self.targets.cuts.ndim == 2

    @property
    def data(self) -> tuple[Any, ...]:
        """What all members share, or each has of its own."""
        return self.clock, self.outcomes, self.inputs, self.targets

    def on_devices(self) -> Problem:
        """With its arrays where they are needed."""
        clock, outcomes, inputs, targets = self.spread.place(self.data, self._data_spec)
        return replace(
            self,
            clock=clock,
            outcomes=outcomes,
            inputs=inputs,
            targets=targets,
            rest=self.spread.place(self.rest, EVERYWHERE),
        )

    @property
    def _data_spec(self) -> PartitionSpec:
        return self.spread.of_members if self.has_own_patients else EVERYWHERE

    def of_members(self, function: Callable) -> Callable:
        """The function of (clock, outcomes, inputs, targets, own key or parameters, …), mapped over members."""
        axis = 0 if self.has_own_patients else None

        def mapped(shared: Any, own: Any) -> Any:
            if axis is None and len(jax.tree.leaves(own)[0]) == 1:  # a single member compiles and runs faster unmapped
                alone = function(*shared, *jax.tree.map(lambda leaf: leaf[0], own))
                return jax.tree.map(lambda leaf: leaf[None], alone)
            return jax.vmap(function, in_axes=(*(axis for _ in shared), *(0 for _ in own)))(*shared, *own)

        on_devices = self.spread.run(mapped, (self._data_spec, self.spread.of_members))
        return lambda *own: on_devices(self.data, own)
