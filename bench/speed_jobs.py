"""One measurement of `engine_speed`, in a process of its own: `python -m bench.speed_jobs JOB.json` prints its figures.

A process per competitor keeps memory and threads apart. What is slow to import is imported after the process has been
bound to its cores, so that no library starts more threads than these.
"""

from __future__ import annotations

import json
import os
import resource
import sys
import time
from contextlib import suppress
from dataclasses import replace
from itertools import islice
from pathlib import Path
from typing import Any

import numpy as np

from bench.speed_crps import crps_ours, crps_peer, prepare_crps
from bench.speed_data import HORIZON_DAYS, PatientArrays, arrays_of, paper_model, simulated

TRAIN_SEED, TEST_SEED = 101, 102
HISTORY_DAYS = 54.0
PEER_START = 0.03  # in units of 1/√fan-in: about ±0.003, as published; adaptive steps are then few


class EnoughEpochs(Exception):  # noqa: N818  # ends a training that is only timed
    """All epochs that were to be timed are over."""


def prepare(patients: int, history_patients: int, folder: str) -> dict[str, Any]:
    """Write the arrays that the peers read, so that they need not load jax."""
    model = paper_model()
    arrays_of(model, simulated(patients, TRAIN_SEED)).save(Path(folder, "train.npz"))
    arrays_of(model, simulated(history_patients, TEST_SEED)).save(Path(folder, "test.npz"))
    return {}


def train_ours(
    patients: int,
    epochs: int,
    increments: str,
    *,
    cells_per_move: int = 4,
    cells: int | None = None,
    depth: int = 2,
    draws: int = 10,
) -> dict[str, Any]:
    """Time per step of the epochs after the first, which compiles."""
    from counterpath.training import Clock, tabulate, train
    from counterpath.training.spread import use_all_cores

    use_all_cores()
    model, cohort = paper_model(cells_per_move), simulated(patients, TRAIN_SEED)
    shape = model.architecture
    model.architecture = replace(shape, cells=cells or shape.cells, field_widths=shape.field_widths[:1] * depth)
    # So many epochs that none of those that are timed has a validation score.
    settings = replace(model.training, epochs=10_000, patience=None, draws=draws, increments=increments, bad_steps=1.0)
    tabulation = model.new_tabulation(cohort)
    examples = tabulate(cohort, tabulation, cuts=shape.cuts, rng=np.random.default_rng(0))
    network = model.new_network(tabulation, model.seed)
    wall, cpu = [time.perf_counter()], [time.process_time()]

    def report(_) -> None:
        wall.append(time.perf_counter())
        cpu.append(time.process_time())
        if len(wall) > epochs + 1:
            raise EnoughEpochs

    with suppress(EnoughEpochs):
        train([network], examples, examples, Clock.of(tabulation), settings, seeds=[0], report=report)
    steps = settings.steps_per_epoch(patients)
    return {
        "steps_timed": epochs * steps,
        "steps_per_epoch": steps,
        "step_s": float(np.median(np.diff(wall)[1:]) / steps) if epochs else None,
        "step_cpu_s": float(np.median(np.diff(cpu)[1:]) / steps) if epochs else None,
        "first_epoch_s": wall[1] - wall[0],
        "first_epoch_cpu_s": cpu[1] - cpu[0],
        "cells": tabulation.grid.cells,
        "plan_cells": tabulation.plan_grid.cells,
        "step_gflop": operations(network, tabulation.grid.cells, tabulation.plan_grid.cells, settings),
    }


def compile_ours(cache: str) -> dict[str, Any]:
    """Until the first step of a fit is over, with programs kept in a folder."""
    os.environ["COUNTERPATH_CACHE"] = cache
    from counterpath.training.compiled import keep_compiled

    keep_compiled()
    return train_ours(patients=64, epochs=0, increments="two-point")


def operations(network, cells: int, plan_cells: int, settings) -> dict[str, float]:
    """Billions of floating point operations of a training step by hand: forward, and twice that backward."""
    passes = 3 * settings.draws / 1e9
    sides = [
        (network.encoder_field, network.encoder_law, cells),
        (network.decoder_field, network.decoder_law, plan_cells),
    ]
    fields = drifts = 0.0
    for field, law, steps in sides:
        products = sum(out * into for out, into in field.shapes) + field.hidden * field.channels
        fields += passes * settings.batch_size * steps * 2 * products
        moves = -(-steps // network.cells_per_move) if field is network.encoder_field else steps
        drifts += passes * moves * 2 * sum(matrix.size for matrix, _ in law.drift.layers)
    return {"fields": fields, "drifts": drifts}


def train_peer(solver: str, steps: int, folder: str, threads: int, device: str = "cpu") -> dict[str, Any]:
    """Time per step after the first, on the processor or on an accelerator."""
    import torch

    from bench.peers import PeerBNCDE, PeerPatients, train

    torch.set_num_threads(threads)
    torch.set_default_device(device)
    torch.manual_seed(0)
    arrays = PatientArrays.load(Path(folder, "train.npz"))
    patients = PeerPatients.prepare(arrays, solver)
    model = PeerBNCDE.sized_for(arrays, PEER_START)
    walk = train(model, patients, steps + 1)
    first = next(walk)
    began = time.process_time()
    timed = list(islice(walk, steps))
    return {
        "steps_timed": steps,
        "step_s": float(np.median([step.seconds for step in timed])),
        "step_cpu_s": (time.process_time() - began) / steps,
        "first_step_s": first.seconds,
        "drift_evaluations": float(np.mean([step.evaluations for step in timed])),
    }


def predict_ours(patients: int, draws: int, increments: str, cells_per_move: int = 4) -> dict[str, Any]:
    """From records to mean and std under every draw, with new weights; compiled before."""
    import counterpath as cp

    model, cohort = paper_model(cells_per_move), simulated(patients, TEST_SEED)
    model.training = replace(model.training, increments=increments)
    # An untrained network takes as long as a trained one.
    model.tabulation_, model.schema = model.new_tabulation(cohort), cohort.schema
    model.networks_ = (model.new_network(model.tabulation_, model.seed),)
    history, plan, horizon = cohort.until(HISTORY_DAYS), cp.Plan.observed(cohort), np.array([HORIZON_DAYS])
    wall, cpu = [time.perf_counter()], [time.process_time()]
    for seed in (0, 1):
        mean, std = model.components(history, plan, horizon, draws, seed)
        wall.append(time.perf_counter())
        cpu.append(time.process_time())
    return {
        "seconds": wall[2] - wall[1],
        "cpu_s": cpu[2] - cpu[1],
        "first_call_s": wall[1] - wall[0],
        "finite": bool(np.isfinite([mean, std]).all()),
    }


def predict_default(patients: int, draws: int, horizons: list[float], repeats: int) -> dict[str, Any]:
    """`BNCDE()` as a user asks it: from a cohort and a plan to means and 95% intervals; the first call compiles."""
    import counterpath as cp

    cohort = simulated(patients, TEST_SEED)
    model = cp.BNCDE(max(horizons))
    model.tabulation_, model.schema = model.new_tabulation(cohort[:200]), cohort.schema
    model.networks_ = tuple(model.new_network(model.tabulation_, seed) for seed in model.network_seeds)
    today, plan = cohort.until(HISTORY_DAYS), cp.Plan.repeat("chemotherapy", every=2.0, times=2)
    wall = [time.perf_counter()]
    for _ in range(repeats + 1):
        prediction = model.predict(today, plan, horizons=horizons, draws=draws, progress=False)
        known = prediction.mean, *prediction.interval(0.95)
        wall.append(time.perf_counter())
    return {
        "seconds": float(np.median(np.diff(wall)[1:])),
        "first_call_s": wall[1] - wall[0],
        "finite": bool(np.isfinite(known).all()),
    }


def predict_peer(solver: str, draws: int, folder: str, threads: int) -> dict[str, Any]:
    """From arrays to mean and std under every draw, all patients at once, which is its fastest way."""
    import torch

    from bench.peers import PeerBNCDE, PeerPatients, predict

    torch.set_num_threads(threads)
    torch.manual_seed(0)
    arrays = PatientArrays.load(Path(folder, "test.npz"))
    patients = PeerPatients.prepare(arrays, solver)
    model = PeerBNCDE.sized_for(arrays, PEER_START)
    began, began_cpu = time.perf_counter(), time.process_time()
    mean, std = predict(model, patients, draws)
    return {
        "seconds": time.perf_counter() - began,
        "cpu_s": time.process_time() - began_cpu,
        "finite": bool(np.isfinite([mean, std]).all()),
        "drift_evaluations": model.evaluations,
    }


def count_evaluations(start_scale: float, folder: str) -> dict[str, Any]:
    """How often the adaptive peer evaluates its drift in one forward pass of a training step, by the weights' start."""
    import torch

    from bench.peers import BATCH_SIZE, TRAIN_DRAWS, PeerBNCDE, PeerPatients

    torch.manual_seed(0)
    arrays = PatientArrays.load(Path(folder, "train.npz"))
    model = PeerBNCDE.sized_for(arrays, start_scale)
    with torch.no_grad():
        model(PeerPatients.prepare(arrays, "adaptive").of(torch.arange(BATCH_SIZE)), TRAIN_DRAWS)
    return {"start_scale": start_scale, "drift_evaluations": model.evaluations}


def matrix_rate(size: int) -> dict[str, Any]:
    """Billions of float32 operations per second in a large matrix product: the best of several."""
    import jax
    import jax.numpy as jnp

    square = jnp.ones((size, size))
    product = jax.jit(lambda a: a @ a)
    product(square).block_until_ready()
    best = np.inf
    for _ in range(10):
        began = time.perf_counter()
        product(square).block_until_ready()
        best = min(best, time.perf_counter() - began)
    return {"gflop_per_s": 2 * size**3 / best / 1e9}


JOBS = {
    job.__name__: job
    for job in (
        prepare,
        train_ours,
        compile_ours,
        train_peer,
        predict_ours,
        predict_default,
        predict_peer,
        prepare_crps,
        crps_ours,
        crps_peer,
        count_evaluations,
        matrix_rate,
    )
}


def main() -> None:
    job = json.loads(sys.argv[1])
    os.sched_setaffinity(0, sorted(os.sched_getaffinity(0))[: job["cores"]])
    figures = JOBS[job["name"]](**job["arguments"])
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 2**20
    print(json.dumps(figures | {"peak_gb": peak}))


if __name__ == "__main__":
    main()
