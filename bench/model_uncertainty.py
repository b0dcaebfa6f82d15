"""Does the model know what it does not know? Its spread beside its true error, as the oracle tells it.

    python -m bench.model_uncertainty fit PATIENTS          one fit of BNCDE(), and its errors
    python -m bench.model_uncertainty judge MODEL PATIENTS  the errors of a BNCDE.large() that bench.engine_table keeps
    python -m bench.model_uncertainty untrained PATIENTS    the same before training (or with --large)
    python -m bench.model_uncertainty page                  docs/results/model-uncertainty.json and its page

Error and spread are of the mean on the model's scale: error against the oracle's mean, spread over draws of the
model. They are measured where the model has learned (other patients, plans as given), for a plan that nobody got
(both treatments every day), and for histories that nobody had (visits that almost only large tumours get).
"""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Any

import numpy as np
import typer
from scipy.stats import spearmanr

import counterpath as cp
from bench.provenance import last_result, provenance, write_result
from counterpath.experiments import tumor_worlds
from counterpath.experiments.expected_effects import rms
from counterpath.experiments.tumor_worlds import CUT_DAYS, RANDOMISED

HORIZONS = np.arange(1.0, 6.0)
TRAIN_SEED, VALIDATION_SEED, TEST_SEED = 40_000, 45_000, 51_000  # 50,000 has judged earlier states
TEST = 500
UNSEEN_GAMMA = 8.0
DRAWS, ORACLE_DRAWS = 100, 1_000
UNTRAINED, LINEAR = "untrained", "linear response of"
SITUATIONS = ("as in training", "unseen plan", "unseen histories")

app = typer.Typer(add_completion=False, pretty_exceptions_enable=False)
Folder = typer.Option(Path("model-uncertainty"), "--to")


def situations() -> dict[str, tuple[Any, cp.Plan, Any]]:
    """Histories, plan and world of each."""
    usual = RANDOMISED.simulate(TEST, TEST_SEED)
    rare = cp.simulate_tumor_growth(TEST, seed=TEST_SEED, observation_gamma=UNSEEN_GAMMA)
    both = cp.Plan.repeat("chemotherapy", every=1.0, times=5) + cp.Plan.repeat("radiotherapy", every=1.0, times=5)
    today = usual.cohort.until(CUT_DAYS)
    found = (
        (today, cp.Plan.observed(usual.cohort), usual.truth.settings),
        (today, both, usual.truth.settings),
        (rare.cohort.until(CUT_DAYS), cp.Plan.observed(rare.cohort), rare.truth.settings),
    )
    return dict(zip(SITUATIONS, found, strict=True))


@app.command()
def fit(patients: int, folder: Path = Folder) -> None:
    """Train on so many patients and measure."""
    record = provenance(f"python -m bench.model_uncertainty fit {patients}")
    train = RANDOMISED.simulate(patients, TRAIN_SEED).cohort
    validation = RANDOMISED.simulate(max(patients // 10, 50), VALIDATION_SEED).cohort
    model = cp.BNCDE(5.0).fit(train, validation)
    write_cell(record | {"patients": patients, "model": "BNCDE"} | measure(model), folder)


@app.command()
def judge(model: Path, patients: int, folder: Path = Folder) -> None:
    """Measure a large model that was trained on so many patients."""
    record = provenance(f"python -m bench.model_uncertainty judge {model.name} {patients}")
    write_cell(record | {"patients": patients, "model": "BNCDE.large"} | measure(cp.load(model)), folder)


def measure(model: Any) -> dict[str, Any]:
    """Errors and spreads in every situation."""
    variable = model.tabulation_.scaler.variables[0]
    rows, errors, spreads = {}, [], []
    for name, (today, plan, settings) in situations().items():
        oracle = cp.Oracle(settings, workers=os.cpu_count()).fit(today)
        drawn = oracle.predict(today, plan, horizons=HORIZONS.tolist(), draws=ORACLE_DRAWS).sample(ORACLE_DRAWS)
        best = variable.forward(drawn).mean(axis=0)
        means, _ = model.components(today, plan, HORIZONS, DRAWS, 0)
        error, spread = means.mean(axis=0) - best, means.std(axis=0, ddof=1)
        rows[name] = {
            "error": rms(error),
            "spread": rms(spread),
            "error_over_spread": rms(error) / rms(spread),
            "error_over_spread_by_horizon": [rms(error[:, i]) / rms(spread[:, i]) for i in range(len(HORIZONS))],
        }
        errors.append(np.abs(error).ravel())
        spreads.append(spread.ravel())
    ranks = spearmanr(np.concatenate(errors), np.concatenate(spreads)).statistic
    return {"situations": rows, "rank_correlation_of_error_and_spread": float(ranks)}


@app.command()
def untrained(patients: int, large: bool = False, folder: Path = Folder) -> None:
    """A network before training, alone and with the linear response, which has learned from the patients."""
    asked = f"untrained {patients}{' --large' if large else ''}"
    record = provenance(f"python -m bench.model_uncertainty {asked}")
    made = cp.BNCDE.large if large else cp.BNCDE
    train = learners(patients, large=large)
    for kind, linear_response in ((UNTRAINED, False), (LINEAR, True)):
        model = before_training(made(5.0, linear_response=linear_response), train)
        named = {"patients": len(train), "model": f"{kind} {made.__qualname__}"}
        write_cell(record | named | measure(model), folder)


def learners(patients: int, *, large: bool) -> cp.Cohort:
    """Those of `fit`, or of the models that `judge` measures."""
    return RANDOMISED.simulate(patients, tumor_worlds.TRAIN_SEED if large else TRAIN_SEED).cohort


def before_training(model: Any, train: cp.Cohort) -> Any:
    """Scales of these patients, and weights as they begin."""
    model.tabulation_ = model.new_tabulation(train)
    model.networks_ = tuple(model.new_network(model.tabulation_, seed) for seed in model.network_seeds)
    return model


def write_cell(content: dict[str, Any], folder: Path) -> None:
    folder.mkdir(parents=True, exist_ok=True)
    name = f"{content['model']}.{content['patients']}.json"
    (folder / name).write_text(json.dumps(content, indent=2) + "\n", encoding="utf-8")
    print(json.dumps(content, indent=2))


def page_of(cells: list[dict[str, Any]]) -> str:
    parts = [
        "# Does the model know what it does not know?\n\n"
        "Error is that of the model's mean against the oracle's, spread that of the mean over draws of the model, "
        "both as root mean squares on the model's scale over Δ = 1…5. Their ratio is 1 for a model that knows itself. "
        "Unseen plan: both treatments every day. Unseen histories: visits that almost only large tumours get. The "
        "columns with × are relative to patients and plans as in training.\n\n"
        "An untrained network shows how much of the growth is mere distance from the data. It has no linear response, "
        "since that learns from the patients before training begins; the linear response alone, which is the network "
        "before training with it, has lines of its own, so that one sees what training adds.\n\n"
        "The last column is the rank correlation of error and spread over all three situations: whether the spread "
        "grows where the true error does.\n\n"
        "| model | patients | situation | error | spread | error ÷ spread | error × | spread × | rank correlation |\n"
        "|---|---|---|---|---|---|---|---|---|\n"
    ]
    for cell in cells:
        usual = cell["situations"][SITUATIONS[0]]
        for name, row in cell["situations"].items():
            rank = f"{cell['rank_correlation_of_error_and_spread']:.2f}" if name == SITUATIONS[-1] else ""
            parts.append(
                f"| {cell['model']} | {cell['patients']:,} | {name} | {row['error']:.4f} | {row['spread']:.4f} "
                f"| {row['error_over_spread']:.2f} | {row['error'] / usual['error']:.1f} "
                f"| {row['spread'] / usual['spread']:.1f} | {rank} |\n"
            )
    return "".join(parts)


@app.command()
def page(folder: Path = Folder) -> None:
    """The page, from the cells that are there and those of the last page that were not made anew."""
    found = [json.loads(path.read_text(encoding="utf-8")) for path in folder.glob("*.json")]
    by_name = {(cell["model"], cell["patients"]): cell for cell in last_result("model-uncertainty")["cells"] + found}
    cells = [by_name[name] for name in sorted(by_name, key=_order)]
    write_result("model-uncertainty", {"cells": cells}, page_of(cells))


def _order(name: tuple[str, int]) -> tuple[str, int, int]:
    """Beside each model what it was before training."""
    kind, _, model = name[0].rpartition(" ")
    return model, name[1], ("", LINEAR, UNTRAINED).index(kind)


if __name__ == "__main__":
    app()
