"""The training loop: epochs, scores, stopping, and the best state kept."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import polars as pl
from jaxtyping import Array, Bool

from counterpath.models import NeuralCDE
from counterpath.training.checkpoint import Checkpoint
from counterpath.training.divergence import TrainingError, require_finite, require_kept
from counterpath.training.examples import Examples
from counterpath.training.interruption import hearing_interrupts
from counterpath.training.problem import Clock, Problem
from counterpath.training.run_length import enough_epochs, is_scored
from counterpath.training.scored_cuts import spread_cuts
from counterpath.training.scores import noise_and_spread, validation_score
from counterpath.training.settings import TrainingSettings
from counterpath.training.spread import Spread
from counterpath.training.steps import Progress, optimiser_for, train_epoch

AT_MOST_LOST = 30.0  # seconds of training, where a run ends before its time; besides the epoch itself


@dataclass(frozen=True)
class EpochReport:
    """What is known after an epoch; of several members, the mean.

    Attributes:
        epoch: From 1.
        epochs: At most.
        log_likelihood: Mean per training outcome.
        kl: Of the weights, in nats.
        bad_steps: Share of steps that were not finite and were left out.
        validation: Mean log density of validation outcomes, where it was computed.
        may_be_kept: Whether the state could be the best: not while the KL comes in.
        seconds: Since the run began.
        begins_anew: With so many epochs, since patients are too few for so many; None where it goes on.
    """

    epoch: int
    epochs: int
    log_likelihood: float
    kl: float
    bad_steps: float
    validation: float | None
    may_be_kept: bool
    seconds: float
    begins_anew: int | None = None


Report = Callable[[EpochReport], None]


@dataclass
class Run:
    """The whole state of a training run.

    Attributes:
        progress: Parameters and optimiser state, with a leading axis of members.
        best: The parameters with the best score, member by member.
        best_score: That score.
        epoch: Epochs done.
        since_best: Scores since the last improvement, member by member.
        history: A row per epoch and member.
        epochs: Instead of those of the settings, where the run began anew with fewer.
    """

    progress: Progress
    best: NeuralCDE
    best_score: np.ndarray
    since_best: np.ndarray
    epoch: int = 0
    history: list[dict[str, Any]] = field(default_factory=list)
    epochs: int | None = None

    @property
    def scores(self) -> list[tuple[int, float]]:
        """After which epochs validation patients were looked at, and how well they were described: of all members."""
        members = len(self.best_score)
        by_epoch = (self.history[first : first + members] for first in range(0, len(self.history), members))
        return [
            (rows[0]["epoch"], float(np.mean([row["validation"] for row in rows])))
            for rows in by_epoch
            if rows[0]["validation"] is not None
        ]


@dataclass(frozen=True)
class Trained:
    """What training leaves.

    Attributes:
        networks: One per member.
        history: A frame with a row per epoch and member.
        scores: Best validation score of each member.
        scored: The validation patients, with the cuts at which they were scored.
        spread: Of each mixture's means over draws there, in units of the usual change; None where it was not looked at.
    """

    networks: list[NeuralCDE]
    history: pl.DataFrame
    scores: np.ndarray
    scored: Examples
    spread: np.ndarray | None


def train(
    networks: list[NeuralCDE],
    examples: Examples,
    validation: Examples,
    clock: Clock,
    settings: TrainingSettings,
    *,
    seeds: list[int],
    mixed: int = 1,
    report: Report | None = None,
    checkpoint: Checkpoint | None = None,
) -> Trained:
    """Train one or several networks at once.

    Args:
        networks: Members, before training.
        examples: Of the training patients; with a leading axis of members where each has its own.
        validation: Of the validation patients, likewise.
        clock: Of the solver.
        settings: Of the run.
        seeds: One per member: order of patients, cuts and draws.
        mixed: How many members in a row are one mixture, and share the size of their noise.
        report: Called after each epoch.
        checkpoint: Where to keep the run, and to take it up again.
    """
    # In memory of the host: hundreds of small programs, one for each kind of array, would take seconds to compile.
    stacked = jax.tree.map(lambda *leaves: np.stack(leaves) if eqx.is_array(leaves[0]) else leaves[0], *networks)
    parameters, rest = eqx.partition(stacked, eqx.is_inexact_array)
    rest = jax.tree.map(lambda leaf: jnp.asarray(leaf) if isinstance(leaf, np.ndarray) else leaf, rest)
    scored = spread_cuts(validation, settings.validation_cuts)
    if not float(jnp.sum(scored.targets.shares)) > 0:
        raise TrainingError(
            "No outcome of the validation patients can be predicted, so nothing says when to stop. Give patients with "
            "an outcome within max_horizon after an earlier record."
        )
    held = Problem(scored.inputs, scored.targets, clock, scored.outcomes, rest, settings)
    spread = spread_over(networks, settings, examples.patients)
    problem = Problem(examples.inputs, examples.targets, clock, examples.outcomes, rest, settings, spread).on_devices()
    spread_held = replace(held, spread=spread).on_devices()
    member_keys, score_key = jnp.stack([jax.random.key(seed) for seed in seeds]), jax.random.key(0)
    run = _begin(parameters, settings, examples.patients)
    if checkpoint is not None:
        run = checkpoint.resume(run)
    began = time.perf_counter() - (run.history[-1]["seconds"] if run.history else 0.0)
    saved = time.perf_counter()
    with hearing_interrupts() as stop_if_interrupted:
        while True:
            own = settings if run.epochs is None else replace(settings, epochs=run.epochs)
            epochs, every = own.epochs_for(examples.patients), own.validate_every(examples.patients)
            if run.epoch >= epochs or _exhausted(run, own).all():
                break
            keys = jax.vmap(lambda key, number=run.epoch: jax.random.fold_in(key, number))(member_keys)
            keys, run.progress, run.best = spread.place((keys, run.progress, run.best), spread.of_members)
            run.progress, seen = train_epoch((replace(problem, settings=own), keys), run.progress)
            run.epoch += 1
            values = np.asarray(seen, dtype=np.float64)
            scores, kept = None, np.zeros(len(values), dtype=bool)
            is_posterior = run.epoch >= own.kl_ramp * epochs
            if is_scored(run.epoch, epochs, every=every, evenly_from=own.kl_ramp * epochs):
                scores = np.asarray(validation_score(spread_held, score_key, run.progress.parameters), dtype=np.float64)
                if is_posterior:
                    kept = _keep_best(run, scores, own)
            seconds = time.perf_counter() - began
            for member, (log_likelihood, kl, bad) in enumerate(values):
                run.history.append(
                    {
                        "member": member,
                        "epoch": run.epoch,
                        "log_likelihood": float(log_likelihood),
                        "kl": float(kl),
                        "bad_steps": float(bad),
                        "validation": None if scores is None else float(scores[member]),
                        "kept": bool(kept[member]),
                        "seconds": seconds,
                    }
                )
            require_finite(run.history, own, own.steps_per_epoch(examples.patients))
            enough = None
            if scores is not None and own.patience is None:
                enough = enough_epochs(run.scores, epochs, own.steps_per_epoch(examples.patients))
            log_likelihood, kl, bad = (float(mean) for mean in values.mean(axis=0))
            score = None if scores is None else float(scores.mean())
            done = EpochReport(run.epoch, epochs, log_likelihood, kl, bad, score, is_posterior, seconds, enough)
            if enough is not None:
                run, began = _begin(parameters, settings, examples.patients, enough), time.perf_counter()
            if checkpoint is not None and (scores is not None or time.perf_counter() - saved > AT_MOST_LOST):
                checkpoint.save(run)
                saved = time.perf_counter()
            if report is not None:
                report(done)
            stop_if_interrupted()
    require_kept(run.best_score)
    best = jax.tree.map(np.asarray, run.best)
    spread_there = None
    if settings.outcome_noise and settings.fits_noise:
        noise, spread_there = noise_and_spread(held, score_key, jax.tree.map(jnp.asarray, best), mixed)
        of_networks = tuple(np.repeat(part, mixed, axis=0) for part in noise)
        best = eqx.tree_at(lambda n: (n.outcome_head.noise_scale, n.outcome_head.noise_growth), best, of_networks)
    finished = [
        eqx.combine(jax.tree.map(lambda leaf, member=member: jnp.asarray(leaf[member]), best), rest)
        for member in range(len(networks))
    ]
    history = pl.DataFrame(run.history, schema_overrides={"validation": pl.Float64, "kept": pl.Boolean})
    there = None if spread_there is None else np.asarray(spread_there)
    return Trained(finished, history, run.best_score, scored, there)


def spread_over(networks: list[NeuralCDE], settings: TrainingSettings, patients: int) -> Spread:
    """What the devices share; the less they must tell each other, the better."""
    draws = 1 if networks[0].has_fixed_weights else settings.draws
    return Spread.of({"members": len(networks), "draws": draws, "patients": settings.patients_per_step(patients)})


def _begin(parameters: NeuralCDE, settings: TrainingSettings, patients: int, epochs: int | None = None) -> Run:
    """A run before its first epoch. An epoch's buffers are given to the next, so that whatever stays is a copy."""
    own, best = jax.tree.map(jnp.array, parameters), jax.tree.map(jnp.array, parameters)
    members = len(jax.tree.leaves(parameters)[0])
    progress = Progress(own, _begin_optimiser(own, settings, patients), jnp.zeros(members, dtype=jnp.int32))
    return Run(progress, best, np.full(members, -np.inf), np.zeros(members, dtype=int), epochs=epochs)


@partial(jax.jit, static_argnames=("settings", "patients"))
def _begin_optimiser(parameters: Any, settings: TrainingSettings, patients: int) -> Any:
    return jax.vmap(optimiser_for(settings, patients).init)(parameters)


def _keep_best(run: Run, scores: np.ndarray, settings: TrainingSettings) -> np.ndarray:
    """Whose state is kept now. A member whose patience has ended keeps what it has, as if it had been trained alone."""
    better = (scores > run.best_score) & ~_exhausted(run, settings)
    run.best = _choose(jnp.asarray(better), run.progress.parameters, run.best)
    run.best_score = np.where(better, scores, run.best_score)
    run.since_best = np.where(better, 0, run.since_best + 1)
    return better


@jax.jit
def _choose(better: Bool[Array, " members"], new: Any, old: Any) -> Any:
    """Of each member the new or the old."""
    return jax.tree.map(lambda n, o: jnp.where(better.reshape(-1, *(1,) * (n.ndim - 1)), n, o), new, old)


def _exhausted(run: Run, settings: TrainingSettings) -> np.ndarray:
    """Whose patience has ended."""
    return run.since_best >= (np.inf if settings.patience is None else settings.patience)
