"""How long it takes to learn: clock time of training until the CRPS of test patients first falls to a given value.

The paper's hyper-parameters on both sides, on the same patients, and the same score after every epoch. Scoring does not
count. Our time includes compilation.
"""

from __future__ import annotations

import time
from collections.abc import Iterator
from itertools import islice
from pathlib import Path
from typing import Any

import numpy as np

from bench.speed_data import PatientArrays, arrays_of, paper_model, simulated

TRAIN_SEED, TEST_SEED = 201, 202
SCORE_DRAWS = 20
PEER_START = {"fixed": 1.0, "adaptive": 0.03}  # in units of 1/√fan-in; adaptive steps from the usual start take minutes


def prepare_crps(patients: int, test_patients: int, folder: str) -> dict[str, Any]:
    """Write the arrays that the peers read, and score the last value carried forward, in the same units."""
    model, train, test = paper_model(), simulated(patients, TRAIN_SEED), simulated(test_patients, TEST_SEED)
    tabulation = model.new_tabulation(train)
    arrays_of(model, train, tabulation).save(Path(folder, "crps-train.npz"))
    arrays_of(model, test, tabulation).save(Path(folder, "crps-test.npz"))
    outcome = test.records.values[:, 0]
    unit = float(np.diff(tabulation.scaler.variables[0].inverse(np.array([0.0, 1.0])))[0])
    pairs = [own[~np.isnan(own)][-2:] for own in np.split(outcome, test.records.offsets[1:-1])]
    errors = [abs(pair[1] - pair[0]) for pair in pairs if len(pair) == 2]
    return {"last_value_crps": float(np.mean(errors)) / unit}


def crps_of(mean: np.ndarray, std: np.ndarray, targets: np.ndarray) -> float:
    """Mean CRPS of the mixtures over draws."""
    from counterpath.metrics import crps_normal_mixture

    mean, std, targets = (np.asarray(a, dtype=np.float64) for a in (mean, std, targets))
    return float(crps_normal_mixture(targets, mean, std).mean())


def followed(scores: Iterator[tuple[float, float]], target: float, cap_s: float) -> dict[str, Any]:
    """Scores (seconds, CRPS) until one is low enough or the time is over."""
    curve: list[dict[str, float]] = []
    for seconds, crps in scores:
        curve.append({"seconds": seconds, "crps": crps})
        if crps <= target or seconds > cap_s:
            break
    last = curve[-1]
    return {"reached": last["crps"] <= target, "seconds": last["seconds"], "crps": last["crps"], "curve": curve}


def crps_ours(patients: int, test_patients: int, target: float, cap_s: float) -> dict[str, Any]:
    """Our own training, epoch by epoch."""
    model, train, test = paper_model(), simulated(patients, TRAIN_SEED), simulated(test_patients, TEST_SEED)
    return followed(_our_scores(model, train, test), target, cap_s)


def _our_scores(model, train, test) -> Iterator[tuple[float, float]]:
    import equinox as eqx
    import jax
    import jax.numpy as jnp

    from counterpath.models.posterior import Posterior
    from counterpath.training import Clock, tabulate
    from counterpath.training.loop import spread_over
    from counterpath.training.problem import Problem
    from counterpath.training.spread import use_all_cores
    from counterpath.training.steps import Progress, optimiser_for, train_epoch

    use_all_cores()
    tabulation = model.new_tabulation(train)
    examples, held = (tabulate(each, tabulation, cuts="last", rng=np.random.default_rng(0)) for each in (train, test))
    clock, settings, targets = Clock.of(tabulation), model.training, np.asarray(held.targets.changes)[:, 0, 0, 0]
    network = model.new_network(tabulation, model.seed)
    parameters, rest = eqx.partition(network, eqx.is_inexact_array)
    one_member = jax.tree.map(lambda leaf: jnp.asarray(leaf, dtype=leaf.dtype)[None], parameters)
    optimiser = optimiser_for(settings, examples.patients)
    progress = Progress(one_member, jax.vmap(optimiser.init)(one_member), jnp.zeros(1, dtype=jnp.int32))
    spread = spread_over([network], settings, examples.patients)
    problem = Problem(examples.inputs, examples.targets, clock, examples.outcomes, rest, settings, spread).on_devices()
    progress = spread.place(progress, spread.of_members)
    seconds = 0.0
    for key in jax.random.split(jax.random.key(0), settings.epochs_for(examples.patients)):
        began = time.perf_counter()
        progress, _ = jax.block_until_ready(
            train_epoch((problem, spread.place(key[None], spread.of_members)), progress)
        )
        seconds += time.perf_counter() - began
        network = eqx.combine(jax.tree.map(lambda leaf: jnp.asarray(np.asarray(leaf)[0]), progress.parameters), rest)
        posterior = Posterior(
            network, clock.history, clock.plan, draws=SCORE_DRAWS, seed=0, increments=settings.increments
        )
        mean, std = posterior.outcomes(held.inputs)  # the paper's noise is alike on both sides of its centre
        yield seconds, crps_of(mean[:, :, 0, 0, 0], std[:, :, 0, 0, 0, 0], targets)


def crps_peer(solver: str, folder: str, target: float, cap_s: float, threads: int) -> dict[str, Any]:
    """A peer's training, epoch by epoch."""
    import torch

    torch.set_num_threads(threads)
    return followed(_peer_scores(solver, folder), target, cap_s)


def _peer_scores(solver, folder: str) -> Iterator[tuple[float, float]]:
    import torch

    from bench.peers import BATCH_SIZE, PeerBNCDE, PeerPatients, predict, train

    torch.manual_seed(0)
    arrays, test = (PatientArrays.load(Path(folder, f"crps-{name}.npz")) for name in ("train", "test"))
    patients, held = (PeerPatients.prepare(each, solver) for each in (arrays, test))
    model = PeerBNCDE.sized_for(arrays, PEER_START[solver])
    per_epoch = len(arrays) // BATCH_SIZE
    steps = train(model, patients, 1_000 * per_epoch)
    seconds = 0.0
    while epoch := list(islice(steps, per_epoch)):
        seconds += sum(step.seconds for step in epoch)
        yield seconds, crps_of(*predict(model, held, SCORE_DRAWS), test.targets)
