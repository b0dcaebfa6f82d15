"""An epoch at the paper's sizes on an accelerator, ours beside the peers.

python -m bench.device_epoch     docs/results/speed-device.json and its page; needs a GPU that jax and torch both see
"""

from __future__ import annotations

import os
import tempfile
from importlib.metadata import version
from pathlib import Path
from typing import Any

import jax
import typer

from bench.competitors import BATCH_SIZE, EPOCH_PATIENTS, GAUSSIAN, OURS, OWN, PEERS
from bench.engine_speed import run_job
from bench.provenance import RESULTS, provenance, write_result
from bench.tables import markdown

PEER_PATIENTS, EPOCHS = 640, 5
PEER_STEPS = {"fixed": 10, "adaptive": 3}
HEADINGS = ["", "step (ms)", "epoch (s)", "÷ ours"]

app = typer.Typer(add_completion=False, pretty_exceptions_enable=False)


@app.command()
def main(device: str = "cuda", patients: int = EPOCH_PATIENTS, epochs: int = EPOCHS, to: Path = RESULTS) -> None:
    """Measure and write the page."""
    record = provenance("python -m bench.device_epoch")
    record["versions"] |= {name: version(name) for name in ("torch", "torchsde", "torchcde")}
    cores = len(os.sched_getaffinity(0))
    runs: dict[str, Any] = {}
    for name, options in OWN.items():
        runs[name] = run_job("train_ours", cores, patients=patients, epochs=epochs, **options)
    with tempfile.TemporaryDirectory() as folder:
        run_job("prepare", cores, patients=min(patients, PEER_PATIENTS), history_patients=1, folder=folder)
        for name, solver in PEERS.items():
            runs[name] = run_job(
                "train_peer",
                cores,
                solver=solver,
                steps=PEER_STEPS[solver],
                folder=folder,
                threads=cores,
                device=device,
            )
    content = record | {"device": jax.devices()[0].device_kind, "epochs": epochs, "runs": runs}
    page = page_of(content)
    write_result("speed-device", content, page, to)
    print(page)


def page_of(content: dict[str, Any]) -> str:
    runs, steps = content["runs"], EPOCH_PATIENTS // BATCH_SIZE
    rows = [
        [
            name,
            f"{1e3 * run['step_s']:.1f}",
            f"{steps * run['step_s']:.2f}",
            f"{run['step_s'] / runs[OURS]['step_s']:.1f}",
        ]
        for name, run in runs.items()
    ]
    versions = content["versions"]
    return (
        "# The engine's speed on an accelerator\n\n"
        f"Written by `{content['command']}` on one {content['device']}, Python {content['python']}, jax "
        f"{versions['jax']}, torch {versions['torch']}, torchsde {versions['torchsde']}, commit "
        f"`{content['commit'][:10]}`. Figures: `speed-device.json`.\n\n"
        "The same peers and paper's sizes as in [the engine's speed](speed.md), one training at a time. A step "
        f"is the median of {content['epochs']} epochs of ours, after compilation, and of {PEER_STEPS['fixed']} (fixed) "
        f"or {PEER_STEPS['adaptive']} (adaptive) steps of a peer; an epoch is {steps} steps, {EPOCH_PATIENTS:,} "
        "patients. "
        f"Our first epoch, with compilation, took {runs[OURS]['first_epoch_s']:.0f} s "
        f"({runs[GAUSSIAN]['first_epoch_s']:.0f} s with Gaussian increments).\n\n"
        f"{markdown(HEADINGS, rows)}\n"
    )


if __name__ == "__main__":
    app()
