"""A training run on disk: written whole or not at all, and taken up again to the bit."""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import TYPE_CHECKING, Any

import jax
import jax.numpy as jnp
import numpy as np
from safetensors import safe_open
from safetensors.numpy import save_file

if TYPE_CHECKING:
    from counterpath.training.loop import Run


class CheckpointError(RuntimeError):
    """A checkpoint that does not belong to this run, or cannot be read."""


class Checkpoint:
    """One file that holds a run.

    Attributes:
        path: Of the file.
        fingerprint: Of data, network, settings and seeds: a run is only taken up by one that is the same.
    """

    def __init__(self, path: str | os.PathLike[str], fingerprint: str):
        self.path = Path(path)
        self.fingerprint = fingerprint

    def save(self, run: Run) -> None:
        """Write beside the old file, then put it in its place."""
        leaves = jax.tree.leaves((run.progress, run.best))
        arrays = {f"{i:05d}": np.asarray(leaf) for i, leaf in enumerate(leaves)}
        arrays |= {"best_score": run.best_score, "since_best": run.since_best}
        state = {
            "fingerprint": self.fingerprint,
            "epoch": run.epoch,
            "history": run.history,
            "epochs": run.epochs,
        }
        self.path.parent.mkdir(parents=True, exist_ok=True)
        new = self.path.with_name(f".{self.path.name}.new")  # one name, so that a killed write leaves nothing for good
        try:
            save_file(arrays, new, metadata={"run": json.dumps(state)})
            with new.open("rb") as written:
                os.fsync(written.fileno())
            new.replace(self.path)
        finally:
            new.unlink(missing_ok=True)

    def resume(self, run: Run) -> Run:
        """The run as it was when it was last saved; the same run where there is no file."""
        if not self.path.exists():
            return run
        shapes: Any = (run.progress, run.best)
        leaves: list[Any] = []
        try:
            with safe_open(self.path, framework="numpy") as file:
                state = json.loads((file.metadata() or {})["run"])
                fingerprint = state["fingerprint"]
                if fingerprint == self.fingerprint:
                    names = [f"{i:05d}" for i in range(len(jax.tree.leaves(shapes)))]
                    leaves = [jnp.asarray(file.get_tensor(name)) for name in names]
                    run.best_score, run.since_best = (file.get_tensor(name) for name in ("best_score", "since_best"))
                    run.epoch, run.history, run.epochs = state["epoch"], state["history"], state["epochs"]
        except Exception as error:
            raise CheckpointError(f"{self.path} is not a checkpoint of counterpath: {error}") from error
        if fingerprint != self.fingerprint:
            raise CheckpointError(
                f"{self.path} belongs to a run with other patients, settings or seeds. Choose another file, or delete "
                "this one."
            )
        run.progress, run.best = jax.tree.unflatten(jax.tree.structure(shapes), leaves)
        return run
