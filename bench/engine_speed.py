"""Our engine beside the same BNCDE in PyTorch, torchsde and torchcde: time, memory, share of the machine, growth.

`python -m bench.engine_speed` takes about half an hour on two cores; `--quick` is a smoke run that writes nothing.
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
from rich.console import Console
from rich.table import Table

from bench.provenance import RESULTS, provenance, write_result

EPOCH_PATIENTS, BATCH_SIZE = 10_000, 64
OURS, TWO_POINT, FIXED, ADAPTIVE = (
    "counterpath",
    "counterpath, two-point increments",
    "torchsde fixed",
    "torchsde adaptive",
)
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
    growth_depth: tuple[int, ...] = (1, 2, 3, 4)
    growth_draws: tuple[int, ...] = (1, 10, 100)
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


def train_all(effort: Effort, folder: str, cores: int) -> dict[str, dict]:
    ours = {"patients": effort.patients, "epochs": effort.epochs}
    return {
        OURS: run_job("train_ours", cores, **ours, increments="gaussian"),
        FIXED: run_job("train_peer", cores, solver="fixed", steps=effort.peer_steps, folder=folder),
        ADAPTIVE: run_job("train_peer", cores, solver="adaptive", steps=effort.adaptive_steps, folder=folder),
        TWO_POINT: run_job("train_ours", cores, **ours, increments="two-point"),
    }


def predict_all(effort: Effort, folder: str, cores: int) -> dict[str, dict]:
    draws = effort.predict_draws
    return {
        OURS: run_job("predict_ours", cores, patients=effort.predict_patients, draws=draws),
        FIXED: run_job("predict_peer", cores, solver="fixed", draws=draws, folder=folder),
        ADAPTIVE: run_job("predict_peer", cores, solver="adaptive", draws=draws, folder=folder),
    }


def growth(effort: Effort) -> dict[str, dict]:
    """Processor time of an epoch by patients, and of a step by cells, layers and draws; one thing changed at a time."""
    grown = {}
    for axis in AXES:
        points = []
        for value in getattr(effort, f"growth_{axis}"):
            arguments = {"patients": 128, "epochs": effort.epochs, "increments": "gaussian"} | {axis: value}
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
                "share": {name: share_of_machine(trained[name], rate) for name in (OURS, TWO_POINT)},
            }
            content["by_cores"][str(cores)] = measured
            Console().print(table(content, cores))
        if effort.usual_start:
            content["adaptive_at_usual_start"] = run_job("count_evaluations", 1, start_scale=1.0, folder=folder)
    content["growth"] = growth(effort)
    return content | {"load_after": os.getloadavg()}


def rows(content: dict, cores: int) -> list[list[str]]:
    """Competitor; step by the clock and by the processor, epoch, ratio, peak; prediction, ratio, peak."""
    measured = content["by_cores"][str(cores)]
    train, predict = measured["train"], measured["predict"]
    lines = []
    for name, run in train.items():
        line = [
            name,
            f"{run['step_s']:.3f}",
            f"{run['step_cpu_s']:.3f}",
            f"{run['step_s'] * content['steps_per_epoch']:.0f}",
            f"{run['step_s'] / train[OURS]['step_s']:.2f}",
            f"{run['peak_gb']:.2f}",
        ]
        told = predict.get(name)
        ratio = told and told["seconds"] / predict[OURS]["seconds"]
        line += [f"{told['seconds']:.1f}", f"{ratio:.2f}", f"{told['peak_gb']:.2f}"] if told else ["", "", ""]
        lines.append(line)
    return lines


HEADINGS = ["", "step (s)", "processor (s)", "epoch (s)", "÷ ours", "peak (GB)", "predict (s)", "÷ ours", "peak (GB)"]


def table(content: dict, cores: int) -> Table:
    shown = Table(title=f"{cores} core{'s' * (cores > 1)}, load {content['load_before'][0]:.1f} before")
    for heading in HEADINGS:
        shown.add_column(heading, justify="right" if heading else "left")
    for line in rows(content, cores):
        shown.add_row(*line)
    return shown


def markdown(heading: list[str], lines: list[list[str]]) -> str:
    return "\n".join(f"| {' | '.join(line)} |" for line in [heading, ["---"] * len(heading), *lines])


def page(content: dict) -> str:
    effort, versions = content["effort"], content["versions"]
    evaluations = {
        cores: measured["train"][ADAPTIVE]["drift_evaluations"] for cores, measured in content["by_cores"].items()
    }
    usual = content.get("adaptive_at_usual_start")
    parts = [
        f"""# The engine's speed

Written by `{content["command"]}` on {content["processor"]} ({content["cores"]} cores), Python {content["python"]}, jax
{versions["jax"]}, torch {versions["torch"]}, torchsde {versions["torchsde"]}, torchcde {versions["torchcde"]}, commit
`{content["commit"][:10]}`. Load average {content["load_before"][0]:.1f} before, {content["load_after"][0]:.1f} after.
Figures: `engine-speed.json`.

The paper's hyper-parameters (8 hidden units, fields (128, 128), drift (16, 64, 64, 64, 16), batch 64, 10 draws to
train, 100 to predict) on the same simulated patients, channels and grid. The peers are `bench/peers.py`: one Euler step
per cell of our grid (fixed), and the adaptive Euler steps of the published code. Each line is a process of its own,
bound to its cores. A step is the median of {effort["epochs"]} epochs of {effort["patients"] // BATCH_SIZE} steps
(ours, after compilation), of {effort["peer_steps"]} steps (fixed) or {effort["adaptive_steps"]} (adaptive); an epoch is
{content["steps_per_epoch"]} steps, {EPOCH_PATIENTS:,} patients, by multiplication. Prediction is of
{effort["predict_patients"]:,} patients with {effort["predict_draws"]} draws, untrained. Peaks count everything in the
process, libraries and compilation too. Processor time is what a step costs where other work shares the cores.
"""
    ]
    for cores, measured in content["by_cores"].items():
        ours, share = measured["train"][OURS], measured["share"][OURS]
        parts.append(f"\n## {cores} core{'s' * (int(cores) > 1)}\n\n{markdown(HEADINGS, rows(content, int(cores)))}\n")
        parts.append(
            f"\nOur step has {ours['step_gflop']['fields']:.1f} billion floating point operations in its vector fields "
            f"and {ours['step_gflop']['drifts']:.1f} in its drift networks, forward and twice that backward: "
            f"{share['fields']:.0%} and, together, {share['fields_and_drifts']:.0%} of the "
            f"{share['matrix_gflop_per_s']:.0f} billion a second of a large float32 matrix product here. The first "
            f"epoch, with compilation, takes {ours['first_epoch_s']:.0f} s. The adaptive peer evaluates its drift "
            f"{evaluations[cores]:.0f} times a step.\n"
        )
    parts.append(
        "\n## How our cost grows\n\n"
        "Processor time on one core. One thing is changed at a time; time goes with its power p.\n\n"
    )
    for axis, grown in content["growth"].items():
        times = ", ".join(f"{point[axis]}: {point['cpu_s']:.2f} s" for point in grown["points"])
        power = "" if grown["exponent"] is None else f" p = {grown['exponent']:.2f}."
        what = {"patients": "an epoch", "depth": "a step, by layers of 128 units"}.get(axis, "a step")
        parts.append(f"- {axis} ({what}): {times}.{power}\n")
    parts.append(
        "\nThe adaptive peer starts from weights of about ±0.003, as the published code does, which needs the fewest "
        "steps; predictions of a trained model take more."
    )
    if usual:
        parts.append(
            f" From weights at the usual scale of 1/√fan-in it evaluates its drift {usual['drift_evaluations']:,} "
            "times in one forward pass."
        )
    return "".join([*parts, "\n"])


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
        write_result("engine-speed", content, page(content), options.to or RESULTS)


if __name__ == "__main__":
    main()
