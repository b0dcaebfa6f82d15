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
from rich.console import Console
from rich.table import Table

from bench.provenance import RESULTS, provenance, write_result

EPOCH_PATIENTS, BATCH_SIZE = 10_000, 64
OURS, GAUSSIAN, MOVING, BOTH, FIXED, ADAPTIVE = (
    "counterpath",
    "counterpath, Gaussian increments",
    "counterpath, weights move every cell",
    "counterpath, both",
    "torchsde fixed",
    "torchsde adaptive",
)
OWN: dict[str, dict[str, Any]] = {
    OURS: {"increments": "two-point"},
    GAUSSIAN: {"increments": "gaussian"},
    MOVING: {"increments": "two-point", "cells_per_move": 1},
    BOTH: {"increments": "gaussian", "cells_per_move": 1},  # as the peers do
}
PEERS = {FIXED: "fixed", ADAPTIVE: "adaptive"}
CRPS_MULTIPLE = 5  # of the CRPS of the last value carried forward: where the paper's small steps lead within minutes
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
            Console().print(table(content, cores))
        content["compilation"] = compilation(effort.cores[-1])
        content["learning"] = learn_all(effort, folder, effort.cores[-1], trained)
        Console().print(learning_table(content))
        if effort.usual_start:
            content["adaptive_at_usual_start"] = run_job("count_evaluations", 1, start_scale=1.0, folder=folder)
    content["growth"] = growth(effort)
    return content | {"load_after": os.getloadavg()}


def rows(content: dict, cores: int) -> list[list[str]]:
    """Competitor; step by the clock and by the processor, epoch, ratio, peak; prediction, ratio, peak."""
    measured = content["by_cores"][str(cores)]
    train, predict = measured["train"], measured["predict"]
    return [
        [
            name + (f", {run['threads']} and {told['threads']} threads" if name in PEERS and cores > 1 else ""),
            f"{run['step_s']:.3f}",
            f"{run['step_cpu_s']:.3f}",
            f"{run['step_s'] * content['steps_per_epoch']:.0f}",
            f"{run['step_s'] / train[OURS]['step_s']:.2f}",
            f"{run['peak_gb']:.2f}",
            f"{told['seconds']:.1f}",
            f"{told['seconds'] / predict[OURS]['seconds']:.2f}",
            f"{told['peak_gb']:.2f}",
        ]
        for (name, run), told in zip(train.items(), predict.values(), strict=True)
    ]


def learning_rows(content: dict) -> list[list[str]]:
    """Competitor; time, ratio, epochs, CRPS, peak."""
    learning = content["learning"]
    ours = learning["runs"][OURS]["seconds"]
    return [
        [
            name,
            f"{run['seconds']:.0f}" if run["reached"] else f"not within {run['seconds']:.0f}",
            f"{'' if run['reached'] else 'more than '}{run['seconds'] / ours:.2f}",
            str(len(run["curve"])),
            f"{run['crps']:.3f}",
            f"{run['peak_gb']:.2f}",
        ]
        for name, run in learning["runs"].items()
    ]


HEADINGS = ["", "step (s)", "processor (s)", "epoch (s)", "÷ ours", "peak (GB)", "predict (s)", "÷ ours", "peak (GB)"]


LEARNING_HEADINGS = ["", "training (s)", "÷ ours", "epochs", "CRPS", "peak (GB)"]


def table(content: dict, cores: int) -> Table:
    title = f"{cores} core{'s' * (cores > 1)}, load {content['load_before'][0]:.1f} before"
    return _table(title, HEADINGS, rows(content, cores))


def learning_table(content: dict) -> Table:
    return _table(f"To a CRPS of {content['learning']['target']:.3f}", LEARNING_HEADINGS, learning_rows(content))


def _table(title: str, headings: list[str], lines: list[list[str]]) -> Table:
    shown = Table(title=title)
    for heading in headings:
        shown.add_column(heading, justify="right" if heading else "left")
    for line in lines:
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
Figures: `speed.json`.

The paper's hyper-parameters (8 hidden units, fields (128, 128), drift (16, 64, 64, 64, 16), batch 64, 10 draws to
train, 100 to predict) on the same simulated patients, channels and grid. The peers are `bench/peers.py`: one Euler step
per cell of our grid (fixed), and the adaptive Euler steps of the published code. Each line is a process of its own,
bound to its cores. A step is the median of {effort["epochs"]} epochs of {effort["patients"] // BATCH_SIZE} steps
(ours, after compilation), of {effort["peer_steps"]} steps (fixed) or {effort["adaptive_steps"]} (adaptive); an epoch is
{content["steps_per_epoch"]} steps, {EPOCH_PATIENTS:,} patients, by multiplication. Prediction is of
{effort["predict_patients"]:,} patients with {effort["predict_draws"]} draws, untrained. Peaks count everything in the
process, libraries and compilation too. Processor time is what a step costs where other work shares the cores. Ours
draws Brownian increments of ±√Δt and lets the encoder's weights move every fourth cell, which is what `BNCDE.paper()`
does ([why](../explanation/deviations.md#brownian-increments)); moving with every cell as the peers do, and with their
Gaussian increments too, have lines of their own. Each peer runs with
one thread and with one per core, to train and to predict, and the faster counts.
"""
    ]
    for cores, measured in content["by_cores"].items():
        ours, share = measured["train"][OURS], measured["share"][OURS]
        parts.append(f"\n## {cores} core{'s' * (int(cores) > 1)}\n\n{markdown(HEADINGS, rows(content, int(cores)))}\n")
        parts.append(
            f"\nOur step has {ours['step_gflop']['fields']:.1f} billion floating point operations in its vector fields "
            f"and {ours['step_gflop']['drifts']:.1f} in its drift networks, forward and twice that backward: "
            f"{share['fields']:.0%} and, together, {share['fields_and_drifts']:.0%} of the "
            f"{share['matrix_gflop_per_s']:.0f} billion a second of a large float32 matrix product here. The adaptive "
            f"peer evaluates its drift {evaluations[cores]:.0f} times a step.\n"
        )
    first, again = (content["compilation"][name] for name in ("first", "again"))
    parts.append(
        f"\n## Compilation\n\nThe first training step is over after {first['first_epoch_s']:.0f} s "
        f"({first['first_epoch_cpu_s']:.0f} s of processor time). Programs are kept on disk: in the next process it is "
        f"over after {again['first_epoch_s']:.0f} s ({again['first_epoch_cpu_s']:.0f} s).\n"
    )
    learning = content["learning"]
    parts.append(
        f"\n## Time to learn\n\nTraining time until the CRPS of {effort['crps_test_patients']} other patients first "
        f"falls to {learning['target']:.3f}, {CRPS_MULTIPLE} times that of the last value carried forward "
        f"({learning['last_value_crps']:.3f}, in standard deviations of the outcome), looked at after every epoch of "
        f"{effort['crps_patients']} patients, at most {learning['cap_s']:.0f} s. Ours with compilation; "
        f"{effort['cores'][-1]} cores; scoring does not count. The adaptive peer starts from small weights, the "
        f"others at the usual scale.\n\n{markdown(LEARNING_HEADINGS, learning_rows(content))}\n"
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
        write_result("speed", content, page(content), options.to or RESULTS)


if __name__ == "__main__":
    main()
