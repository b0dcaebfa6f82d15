"""One training run on several devices: each has members, draws or patients of its own."""

from __future__ import annotations

import os
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass
from typing import Any, Literal

import equinox as eqx
import jax
import numpy as np
from jax.sharding import Mesh, NamedSharding, PartitionSpec
from jaxtyping import Array, Shaped

AXIS = "devices"
EVERYWHERE, IN_PARTS = PartitionSpec(), PartitionSpec(AXIS)


def use_all_cores() -> None:
    """Let jax see a CPU's cores as devices: a program of small products would leave all but one of them idle.

    Only possible before jax is first used; after that, or where the user has chosen a number, all stays as it is.
    """
    if jax.config.values.get("jax_num_cpu_devices") == -1:
        # Not every system says which cores a process may use.
        cores = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
        with suppress(RuntimeError):
            jax.config.update("jax_num_cpu_devices", cores)


Over = Literal["members", "draws", "patients"]


@dataclass(frozen=True)
class Spread:
    """Who does what.

    Attributes:
        mesh: Of the devices that take part; None for a single one.
        over: Whether each has some of the members; or, of every member, some draws of the weights in each step, or some
            patients of each batch.
    """

    mesh: Mesh | None = None
    over: Over = "members"

    @classmethod
    def of(cls, shares: dict[Over, int]) -> Spread:
        """Over as many devices as possible, of which all have equal shares.

        Args:
            shares: How many there are of each; what comes first is preferred.
        """
        devices = jax.local_devices()

        def parts(over: Over) -> int:
            return max(number for number in range(1, len(devices) + 1) if shares[over] % number == 0)

        over = max(shares, key=parts)
        return cls(Mesh(np.array(devices[: parts(over)]), (AXIS,)), over) if parts(over) > 1 else cls()

    @property
    def parts(self) -> int:
        """How many devices share a member."""
        return self.mesh.size if self.mesh is not None and self.over != "members" else 1

    def axis(self, over: Over) -> tuple[str, ...]:
        """Its name where devices have different ones of these."""
        return (AXIS,) if self.parts > 1 and self.over == over else ()

    @property
    def of_members(self) -> PartitionSpec:
        """Where arrays with a leading axis of members are."""
        return IN_PARTS if self.over == "members" else EVERYWHERE

    def place(self, tree: Any, spec: PartitionSpec) -> Any:
        """The arrays on the devices that need them."""
        if self.mesh is None:
            return tree
        there = NamedSharding(self.mesh, spec)
        arrays, rest = eqx.partition(tree, eqx.is_array)
        return eqx.combine(jax.device_put(arrays, there), rest)

    def run(self, function: Callable, in_specs: tuple[PartitionSpec, ...]) -> Callable:
        """The function on every device, with its share of the arguments."""
        if self.mesh is None:
            return function
        return jax.shard_map(function, mesh=self.mesh, in_specs=in_specs, out_specs=self.of_members, check_vma=False)

    def own_part(self, rows: Shaped[Array, "..."], axis: int = 0) -> Shaped[Array, "..."]:
        """This device's share."""
        if self.parts == 1:
            return rows
        own = rows.shape[axis] // self.parts
        return jax.lax.dynamic_slice_in_dim(rows, jax.lax.axis_index(AXIS) * own, own, axis)

    def total(self, tree: Any) -> Any:
        """Sums over the devices that share a member."""
        return tree if self.parts == 1 else jax.lax.psum(tree, AXIS)
