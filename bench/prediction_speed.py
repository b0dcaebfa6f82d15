"""How long an answer takes: one patient, beside the peers, and ten thousand.

`python -m bench.prediction_speed` takes a few minutes on two cores and writes docs/results/prediction-speed.*.
"""

from __future__ import annotations

import os
import tempfile
from pathlib import Path
from typing import Any

from bench.competitors import OURS, OWN, PEERS
from bench.engine_speed import best_of_threads, run_job
from bench.provenance import RESULTS, provenance, write_result
from bench.tables import markdown

DRAWS, HORIZONS = 100, [1.0, 2.0, 3.0, 4.0, 5.0]
MANY = 10_000


def measure(many: int = MANY, repeats: int = 20) -> dict[str, Any]:
    cores = len(os.sched_getaffinity(0))
    asked = {"draws": DRAWS, "horizons": HORIZONS}
    content: dict[str, Any] = {"load_before": os.getloadavg(), "patients": many}
    content["one"] = run_job("predict_default", cores, patients=1, repeats=repeats, **asked)
    with tempfile.TemporaryDirectory() as folder:
        run_job("prepare", cores, patients=64, history_patients=1, folder=folder)
        content["one_at_paper_sizes"] = {
            OURS: run_job("predict_ours", cores, patients=1, draws=DRAWS, **OWN[OURS]),
            **{
                name: best_of_threads("predict_peer", cores, "seconds", solver=solver, draws=DRAWS, folder=folder)
                for name, solver in PEERS.items()
            },
        }
    content["many"] = run_job("predict_default", cores, patients=many, repeats=1, **asked)
    return content | {"load_after": os.getloadavg()}


def page_of(content: dict[str, Any]) -> str:
    one, many, sized = content["one"], content["many"], content["one_at_paper_sizes"]
    rows = [
        [name, f"{1e3 * run['seconds']:.0f}", f"{run['seconds'] / sized[OURS]['seconds']:.1f}"]
        for name, run in sized.items()
    ]
    return f"""# How long an answer takes

Written by `{content["command"]}` on {content["processor"]} ({content["cores"]} cores), Python {content["python"]}, jax
{content["versions"]["jax"]}, commit `{content["commit"][:10]}`. Load average {content["load_before"][0]:.1f} before,
{content["load_after"][0]:.1f} after. Figures: `prediction-speed.json`. Untrained networks, which take as long as
trained ones; weights are drawn once, in the first call.

**One patient**, one plan, {DRAWS} draws of the weights, {len(HORIZONS)} horizons, `BNCDE()`, from the record to means
and 95% intervals: **{1e3 * one["seconds"]:.0f} ms** when warm; {one["first_call_s"]:.1f} s the first time, which
compiles.

**{content["patients"]:,} patients**, the same: {many["seconds"]:.0f} s,
{content["patients"] / many["seconds"]:,.0f} patients a second, peak memory {many["peak_gb"]:.1f} GB of the whole
process, simulation and compilation included.

**One patient at the paper's sizes**, {DRAWS} draws, one horizon, to mean and std of each draw, with new weights, beside
the same model in PyTorch and torchsde ([details](speed.md)):

{markdown(["", "ms", "÷ ours"], rows)}
"""


def main(to: Path = RESULTS) -> None:
    content = provenance("python -m bench.prediction_speed") | measure()
    page = page_of(content)
    write_result("prediction-speed", content, page, to)
    print(page)


if __name__ == "__main__":
    main()
