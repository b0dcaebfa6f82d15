"""Our engine beside the same BNCDE in PyTorch, torchsde and torchcde: time, memory, share of the machine, growth.

`python -m bench.engine_speed` takes about twenty minutes on two cores; `--quick` is a smoke run that writes nothing.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import tempfile
from dataclasses import asdict, dataclass
from importlib.metadata import version
from pathlib import Path
from typing import Any

import numpy as np

from bench.competitors import ADAPTIVE, BATCH_SIZE, CRPS_MULTIPLE, EPOCH_PATIENTS, FIXED, OURS, OWN, PEERS
from bench.provenance import RESULTS, provenance, write_result
from bench.speed_page import learning_table, page, table
from bench.tables import show

AXES = ("patients", "cells", "depth", "draws")


@dataclass(frozen=True)
class Effort:
    """How much is measured."""

    cores: tuple[int, ...]
    patients: int = 640
    epochs: int = 3
    peer_steps: int = 10
    adaptive_steps: int = 5
    predict_patients: int = 1_000
    predict_draws: int = 100
    matrix_size: int = 2_048
    growth_patients: tuple[int, ...] = (128, 256, 512)
    growth_cells: tuple[int, ...] = (15, 30, 59)
    growth_depth: tuple[int, ...] = (1, 2, 3)
    growth_draws: tuple[int, ...] = (1, 10, 100)
    crps_patients: int = 640
    crps_test_patients: int = 500
    crps_cap_s: float = 180.0
    usual_start: bool = True


QUICK = {
    "patients": 128,
    "epochs": 1,
    "peer_steps": 2,
    "adaptive_steps": 1,
    "predict_patients": 64,
    "predict_draws": 4,
    "matrix_size": 512,
    "growth_patients": (64,),
    "growth_cells": (4, 8),
    "growth_depth": (1,),
    "growth_draws": (1,),
    "crps_patients": 64,
    "crps_test_patients": 20,
    "crps_cap_s": 1.0,
    "usual_start": False,
}


def run_job(name: str, cores: int, **arguments) -> dict[str, Any]:
    """One job in a process that is bound to so many cores."""
    job = json.dumps({"name": name, "cores": cores, "arguments": arguments})
    done = subprocess.run(
        [sys.executable, "-m", "bench.speed_jobs", job],
        capture_output=True,
        text=True,
        cwd=Path(__file__).parent.parent,
        env=os.environ | {"OMP_NUM_THREADS": str(cores)},
    )
    if done.returncode:
        raise RuntimeError(f"{name} with {arguments} failed:\n{done.stderr}")
    return json.loads(done.stdout.splitlines()[-1])


def best_of_threads(name: str, cores: int, by: str, **arguments) -> dict[str, Any]:
    """A peer's job with one thread and with one per core: the faster."""
    runs = [run_job(name, cores, threads=threads, **arguments) | {"threads": threads} for threads in sorted({1, cores})]
    return min(runs, key=lambda run: run[by])


def train_all(effort: Effort, folder: str, cores: int) -> dict[str, dict]:
    steps = {FIXED: effort.peer_steps, ADAPTIVE: effort.adaptive_steps}
    trained = {
        name: run_job("train_ours", cores, patients=effort.patients, epochs=effort.epochs, **options)
        for name, options in OWN.items()
    }
    for name, solver in PEERS.items():
        trained[name] = best_of_threads("train_peer", cores, "step_s", solver=solver, steps=steps[name], folder=folder)
    return trained


def compilation(cores: int) -> dict[str, dict[str, float]]:
    """Until the first training step is over: where nothing is kept, and again."""
    with tempfile.TemporaryDirectory() as cache:
        runs = {name: run_job("compile_ours", cores, cache=cache) for name in ("first", "again")}
    return {name: {what: run[what] for what in ("first_epoch_s", "first_epoch_cpu_s")} for name, run in runs.items()}


def predict_all(effort: Effort, folder: str, cores: int) -> dict[str, dict]:
    draws = effort.predict_draws
    predicted = {
        name: run_job("predict_ours", cores, patients=effort.predict_patients, draws=draws, **options)
        for name, options in OWN.items()
    }
    for name, solver in PEERS.items():
        predicted[name] = best_of_threads("predict_peer", cores, "seconds", solver=solver, draws=draws, folder=folder)
    return predicted


def learn_all(effort: Effort, folder: str, cores: int, trained: dict[str, dict]) -> dict[str, Any]:
    """Time to a given CRPS; peers with the number of threads that made their steps fastest."""
    numbers = {"patients": effort.crps_patients, "test_patients": effort.crps_test_patients}
    last_value = run_job("prepare_crps", cores, **numbers, folder=folder)["last_value_crps"]
    goal = {"target": CRPS_MULTIPLE * last_value, "cap_s": effort.crps_cap_s}
    learnt = {OURS: run_job("crps_ours", cores, **numbers, **goal)}
    for name, solver in PEERS.items():
        threads = trained[name]["threads"]
        learnt[name] = run_job("crps_peer", cores, solver=solver, folder=folder, threads=threads, **goal)
    return {"last_value_crps": last_value, **goal, "runs": learnt}


def growth(effort: Effort) -> dict[str, dict]:
    """Processor time of an epoch by patients, and of a step by cells, layers and draws; one thing changed at a time."""
    grown = {}
    for axis in AXES:
        points = []
        for value in getattr(effort, f"growth_{axis}"):
            arguments = {"patients": 128, "epochs": effort.epochs, axis: value} | OWN[OURS]
            run = run_job("train_ours", 1, **arguments)
            steps = run["steps_per_epoch"] if axis == "patients" else 1
            seconds, clock_s = steps * run["step_cpu_s"], steps * run["step_s"]
            points.append({axis: value, "cpu_s": seconds, "clock_s": clock_s, "peak_gb": run["peak_gb"]})
            print(f"  {axis} {value}: {seconds:.3f} s", flush=True)
        logs = np.log([[point[axis], point["cpu_s"]] for point in points])
        exponent = float(np.polyfit(*logs.T, 1)[0]) if len(points) > 1 else None
        grown[axis] = {"points": points, "exponent": exponent}
    return grown


def share_of_machine(run: dict, rate: float) -> dict[str, float]:
    """Of the rate of a large matrix product, by the vector fields alone and with the drift networks."""
    work = run["step_gflop"]
    return {
        "matrix_gflop_per_s": rate,
        "fields": work["fields"] / run["step_s"] / rate,
        "fields_and_drifts": sum(work.values()) / run["step_s"] / rate,
    }


def measure(effort: Effort) -> dict[str, Any]:
    content: dict[str, Any] = {"effort": asdict(effort), "load_before": os.getloadavg(), "by_cores": {}}
    content["steps_per_epoch"] = EPOCH_PATIENTS // BATCH_SIZE
    with tempfile.TemporaryDirectory() as folder:
        run_job("prepare", 1, patients=effort.patients, history_patients=effort.predict_patients, folder=folder)
        for cores in effort.cores:
            rate = run_job("matrix_rate", cores, size=effort.matrix_size)["gflop_per_s"]
            trained = train_all(effort, folder, cores)
            measured = {
                "train": trained,
                "predict": predict_all(effort, folder, cores),
                "share": {name: share_of_machine(trained[name], rate) for name in OWN},
            }
            content["by_cores"][str(cores)] = measured
            show(table(content, cores))
        content["compilation"] = compilation(effort.cores[-1])
        content["learning"] = learn_all(effort, folder, effort.cores[-1], trained)
        show(learning_table(content))
        if effort.usual_start:
            content["adaptive_at_usual_start"] = run_job("count_evaluations", 1, start_scale=1.0, folder=folder)
    content["growth"] = growth(effort)
    return content | {"load_after": os.getloadavg()}


def main(arguments: list[str] | None = None) -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--quick", action="store_true", help="a smoke run; writes nothing unless --to is given")
    parser.add_argument("--to", type=Path, help="folder of the results; default: docs/results")
    options = parser.parse_args(arguments)
    cores = sorted({1, len(os.sched_getaffinity(0))})
    effort = Effort(tuple(cores[:1]), **QUICK) if options.quick else Effort(tuple(cores))
    record = provenance("python -m bench.engine_speed" + " --quick" * options.quick)
    names = ("jax", "torch", "torchsde", "torchcde")
    record["versions"] |= {name: version(name) for name in names}
    content = record | measure(effort)
    if options.to or not options.quick:
        write_result("speed", content, page(content), options.to or RESULTS)


if __name__ == "__main__":
    main()
