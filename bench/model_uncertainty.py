"""Does the model know what it does not know? Its spread beside its true error, as the oracle tells it.

    python -m bench.model_uncertainty fit PATIENTS          one fit of BNCDE(), and its errors (or with --seed)
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
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import numpy as np
import typer
from scipy.stats import spearmanr

import counterpath as cp
from bench.provenance import last_result, provenance, write_result
from counterpath.experiments import tumor_worlds
from counterpath.experiments.answers import made_once
from counterpath.experiments.expected_effects import OfDraws, oracle_draws, rms
from counterpath.experiments.tumor_worlds import CUT_DAYS, RANDOMISED

HORIZONS = np.arange(1.0, 6.0)
TRAIN_SEED, VALIDATION_SEED, TEST_SEED = 40_000, 45_000, 52_000  # 50,000 and 51,000 have judged earlier states
TEST = 500
UNSEEN_GAMMA = 8.0
DRAWS, ORACLE_DRAWS = 100, 1_000
UNTRAINED, LINEAR = "untrained", "linear response of"
SITUATIONS = ("as in training", "unseen plan", "unseen histories")
FIGURES = ("error", "spread", "error_over_spread")

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
def fit(patients: int, seed: int = 0, folder: Path = Folder) -> None:
    """Train on so many patients, others for each seed, and measure."""
    record = provenance(f"python -m bench.model_uncertainty fit {patients} --seed {seed}")
    train = RANDOMISED.simulate(patients, TRAIN_SEED + seed).cohort
    validation = RANDOMISED.simulate(max(patients // 10, 50), VALIDATION_SEED + seed).cohort
    model = cp.BNCDE(5.0, seed=seed).fit(train, validation)
    write_cell(record | {"patients": patients, "model": "BNCDE", "seed": seed} | measure(model, folder), folder)


@app.command()
def judge(model: Path, patients: int, folder: Path = Folder) -> None:
    """Measure a large model that was trained on so many patients."""
    record = provenance(f"python -m bench.model_uncertainty judge {model.name} {patients}")
    write_cell(record | {"patients": patients, "model": "BNCDE.large"} | measure(cp.load(model), folder), folder)


def measure(model: Any, folder: Path) -> dict[str, Any]:
    """Errors and spreads in every situation; what the oracle drew is kept in the folder."""
    variable = model.tabulation_.scaler.variables[0]
    rows, errors, spreads = {}, [], []
    for name, (today, plan, settings) in situations().items():
        kept = folder / f"oracle.{name.replace(' ', '-')}.{TEST_SEED}.npz"
        best = variable.forward(of_oracle(today, plan, settings, kept)).mean(axis=0)
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
    return {"situations": rows, "rank_correlation_of_error_and_spread": float(ranks), "test_seed": TEST_SEED}


def of_oracle(today: cp.Cohort, plan: cp.Plan, settings: Any, kept: Path) -> OfDraws:
    """Its draws, the same for all models."""

    def make() -> dict[str, Any]:
        oracle = cp.Oracle(settings, workers=os.cpu_count() or 1).fit(today)
        return {"drawn": oracle_draws(oracle, today, plan, HORIZONS, ORACLE_DRAWS)}

    return made_once(kept, make)["drawn"]


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
        write_cell(record | named | measure(model, folder), folder)


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
    name = f"{content['model']}.{content['patients']}.{content.get('seed', 0)}.json"
    (folder / name).write_text(json.dumps(content, indent=2) + "\n", encoding="utf-8")
    print(json.dumps(content, indent=2))


def page_of(cells: list[dict[str, Any]]) -> str:
    parts = [
        "# Does the model know what it does not know?\n\n"
        "Error is that of the model's mean against the oracle's, spread that of the mean over draws of the model, "
        "both as root mean squares on the model's scale over Δ = 1…5. Their ratio is 1 for a model that knows itself. "
        "Unseen plan: both treatments every day. Unseen histories: visits that almost only large tumours get. The "
        "columns with × are relative to patients and plans as in training. Where there are several fits, each on "
        "patients of its own, figures are means over them, and the ratio has its lowest and highest beside it.\n\n"
        "An untrained network shows how much of the growth is mere distance from the data. It has no linear response, "
        "since that learns from the patients before training begins; the linear response alone, which is the network "
        "before training with it, has lines of its own, so that one sees what training adds.\n\n"
        "The last column is the rank correlation of error and spread over all three situations: whether the spread "
        "grows where the true error does.\n\n"
        "| model | fits | patients | situation | error | spread | error ÷ spread | error × | spread × "
        "| rank correlation |\n"
        "|---|---|---|---|---|---|---|---|---|---|\n"
    ]
    for (model, patients), fits in _by_kind(cells).items():
        for name in SITUATIONS:
            rows = [fit["situations"][name] for fit in fits]
            usual = [fit["situations"][SITUATIONS[0]] for fit in fits]
            error, spread, ratio = (_mean(row[figure] for row in rows) for figure in FIGURES)
            times = [
                _mean(row[figure] / own[figure] for row, own in zip(rows, usual, strict=True)) for figure in FIGURES[:2]
            ]
            ratios = [row["error_over_spread"] for row in rows]
            about = f" ({min(ratios):.2f} to {max(ratios):.2f})" if len(ratios) > 1 else ""
            last = name == SITUATIONS[-1]
            rank = f"{_mean(fit['rank_correlation_of_error_and_spread'] for fit in fits):.2f}" if last else ""
            parts.append(
                f"| {model} | {len(fits)} | {patients:,} | {name} | {error:.4f} | {spread:.4f} "
                f"| {ratio:.2f}{about} | {times[0]:.1f} | {times[1]:.1f} | {rank} |\n"
            )
    return "".join(parts) + f"\n{_origins(cells)}"


def _by_kind(cells: list[dict[str, Any]]) -> dict[tuple[str, int], list[dict[str, Any]]]:
    """Fits of the same model on as many patients."""
    found: dict[tuple[str, int], list[dict[str, Any]]] = {}
    for cell in cells:
        found.setdefault((cell["model"], cell["patients"]), []).append(cell)
    return found


def _mean(values: Iterable[float]) -> float:
    return float(np.mean(list(values)))


def _origins(cells: list[dict[str, Any]]) -> str:
    """Which rows were measured by which commit, on whom."""
    rows: dict[tuple[str, int], list[str]] = {}
    for (model, patients), fits in _by_kind(cells).items():
        for fit in fits:
            made = rows.setdefault((fit["commit"][:10], fit["test_seed"]), [])
            if (named := f"{model} ({patients:,})") not in made:
                made.append(named)
    return "".join(
        f"- Measured by commit `{commit}`, test patients of seed {seed:,}: {', '.join(made)}.\n"
        for (commit, seed), made in rows.items()
    )


@app.command()
def page(folder: Path = Folder) -> None:
    """The page, from the cells that are there and those of the last page that were not made anew.

    Fits on other test patients than today's stay only as long as there is none on today's.
    """
    found = [json.loads(path.read_text(encoding="utf-8")) for path in folder.glob("*.json")]
    there = {(cell["model"], cell["patients"], cell.get("seed", 0)) for cell in found}
    new = {(cell["model"], cell["patients"]) for cell in found}
    kept = [
        cell
        for cell in last_result("model-uncertainty")["cells"]
        if (cell["model"], cell["patients"], cell.get("seed", 0)) not in there
        and (cell["test_seed"] == TEST_SEED or (cell["model"], cell["patients"]) not in new)
    ]
    cells = sorted(kept + found, key=_order)
    write_result("model-uncertainty", {"cells": cells}, page_of(cells))


def _order(cell: dict[str, Any]) -> tuple[str, int, int, int]:
    """Beside each model what it was before training."""
    kind, _, model = cell["model"].rpartition(" ")
    return model, cell["patients"], ("", LINEAR, UNTRAINED).index(kind), cell.get("seed", 0)


if __name__ == "__main__":
    app()
