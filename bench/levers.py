"""What each setting does to `BNCDE`, one at a time, on development patients: beside the oracle.

    python -m bench.levers                    all that are not in docs/results/levers.json yet, then the page
    python -m bench.levers "temperature 4"    one

Each lever is a fit on 1,000 patients, in the daily world with random treatment days and in continuous time. Nobody of
these is in a test set. Defaults were chosen on such patients; see docs/explanation/design-decisions.md.
"""

from __future__ import annotations

import os
import time
import warnings
from pathlib import Path
from typing import Any

import jax
import numpy as np
import typer

import counterpath as cp
from bench.engine_speed import markdown
from bench.provenance import RESULTS, last_result, provenance, write_result
from counterpath.experiments.answers import made_once
from counterpath.experiments.expected_effects import COMPARED, oracle_draws
from counterpath.experiments.worlds import CONTINUOUS, CUT_DAYS, HORIZONS, RANDOMISED, World
from counterpath.metrics import covered, crps_draws, paired_ratio
from counterpath.predictive import UnsupportedPlanWarning

TRAIN, VALIDATION, TEST, EFFECTS = 1_000, 100, 1_500, 300
TRAIN_SEED, VALIDATION_SEED, TEST_SEED = 2_901, 2_902, 3_500
DRAWS, EFFECT_DRAWS, ORACLE_DRAWS = 1_000, 200, 2_000
WORLDS = (RANDOMISED, CONTINUOUS)
LEVERS: dict[str, dict[str, Any]] = {
    "default": {},
    "without linear response": {"linear_response": False},
    "without the last outcome": {"corrects_last": False, "linear_response": False},
    "one posterior": {"posteriors": 1},
    "8 posteriors": {"posteriors": 8},
    "temperature 1": {"temperature": 1.0},
    "temperature 4": {"temperature": 4.0},
    "prior half as wide": {"prior_std": 0.5},
    "prior returns ten times as fast": {"prior_rate": 1.0},
    "diffusion ten times as large": {"diffusion": 0.03},
    "4 cuts per step": {"cuts_per_step": 4},
    "32 patients per step": {"batch_size": 32},
    "4,000 steps": {"steps": 4_000},
    "128 cells": {"cells": 128},
    "10 cells of a plan": {"plan_cells": 10},
    "fields of 128": {"field_widths": (128, 128)},
    "hidden state of 32": {"hidden": 32},
    "Student's t": {"likelihood": "student_t"},
    "one width of the noise": {"skewed": False},
    "noise as learned": {"fits_noise": False},
    "outcome only standardised": {"transform": "standard"},
}
KEPT = Path(".levers")


def main(levers: list[str] = typer.Argument(None), to: Path = RESULTS) -> None:  # noqa: B008 typer's way
    """Try what is missing, or what is named, and write the page."""
    path = to / "levers.json"
    tried = last_result("levers", to)["tried"] if path.exists() else []
    for name in levers or [name for name in LEVERS if name not in {row["lever"] for row in tried}]:
        device = jax.devices()[0]
        machine = {"device": None if device.platform == "cpu" else device.device_kind}
        record = provenance(f"python -m bench.levers {name!r}") | machine
        found = [attempt(name, world) | {"record": record} for world in WORLDS]
        tried = [row for row in tried if row["lever"] != name] + found
        write_result("levers", {"tried": tried}, page_of(tried), to)
        for row in found:
            print(name, row["world"], *(row[figure] for figure in ("crps", "coverage", "width")), flush=True)


def attempt(name: str, world: World) -> dict[str, Any]:
    """A fit, judged on others."""
    train, validation, test = (
        world.simulate(patients, seed)
        for patients, seed in ((TRAIN, TRAIN_SEED), (VALIDATION, VALIDATION_SEED), (TEST, TEST_SEED))
    )
    today, plan = test.cohort.until(CUT_DAYS), cp.Plan.observed(test.cohort)
    outcome = test.truth.volumes_cm3[:, test.truth.settings.step_of(CUT_DAYS + np.array(HORIZONS))]
    best = made_once(KEPT / f"{world.name}.npz", lambda: limit(test, today, plan))
    began = time.perf_counter()
    model = cp.BNCDE(max(HORIZONS), **LEVERS[name]).fit(train.cohort, validation.cohort, progress=False)
    seconds = time.perf_counter() - began
    drawn = model.predict(today, plan, horizons=HORIZONS, draws=100, progress=False).sample(DRAWS)
    lower, upper = np.quantile(drawn, [0.025, 0.975], axis=0)
    crps = crps_draws(outcome, drawn)
    row: dict[str, Any] = {
        "lever": name,
        "world": world.name,
        "crps": [paired_ratio(crps[:, h], best["crps"][:, h]).value for h in range(len(HORIZONS))],
        "coverage": covered(outcome, lower, upper).mean(axis=0).tolist(),
        "width": (np.median(upper - lower, axis=0) / best["width"]).tolist(),
        "fit_seconds": seconds,
    }
    if world is RANDOMISED:
        row["effects"] = effects(model, test, today[:EFFECTS])
    return row


def limit(test: Any, today: cp.Cohort, plan: cp.Plan) -> dict[str, Any]:
    """Of the oracle: CRPS of each patient, and the median width of its 95% intervals."""
    oracle = cp.Oracle(test.truth.settings, workers=os.cpu_count() or 1).fit(today)
    drawn = oracle.predict(today, plan, horizons=HORIZONS, draws=DRAWS, progress=False).sample(DRAWS)
    outcome = test.truth.volumes_cm3[:, test.truth.settings.step_of(CUT_DAYS + np.array(HORIZONS))]
    lower, upper = np.quantile(drawn, [0.025, 0.975], axis=0)
    return {"crps": crps_draws(outcome, drawn), "width": np.median(upper - lower, axis=0)}


def effects(model: cp.BNCDE, test: Any, today: cp.Cohort) -> list[float]:
    """Share of 95% intervals of expected effects that hold the oracle's, over horizons above one day; by comparison."""
    horizons, held = np.array(HORIZONS[1:]), []
    for name, (plan, versus) in COMPARED.items():

        def make(plan: cp.Plan = plan, versus: cp.Plan = versus) -> dict[str, Any]:
            oracle = cp.Oracle(test.truth.settings, workers=os.cpu_count() or 1).fit(today)
            one, other = (oracle_draws(oracle, today, own, horizons, ORACLE_DRAWS) for own in (plan, versus))
            return {"mean": (one - other).mean(axis=0)}

        truth = made_once(KEPT / f"{name.replace(' ', '-')}.npz", make)["mean"]
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", UnsupportedPlanWarning)  # a few in a thousand
            effect = model.effect(
                today, plan, versus=versus, horizons=horizons.tolist(), draws=EFFECT_DRAWS, progress=False
            )
        held.append(float(covered(truth, *effect.interval(0.95)).mean()))
    return held


def page_of(tried: list[dict[str, Any]]) -> str:
    commits = sorted({row["record"]["commit"][:10] for row in tried})
    machines = sorted({row["record"]["device"] or row["record"]["processor"] for row in tried})
    parts = [
        "# What each setting does\n\n"
        f"`BNCDE()` with one setting changed: a fit on {TRAIN:,} development patients, {VALIDATION} for stopping, "
        f"judged on {TEST:,} others known up to day {CUT_DAYS:g}, at {HORIZONS[0]:g} to {HORIZONS[-1]:g} days. One fit "
        "each: another draw of the patients changes a ratio by some hundredths. Effects: share of 95% intervals of "
        "expected effects that hold the oracle's, chemotherapy against nothing and against radiotherapy. "
        f"`python -m bench.levers` on {', '.join(machines)}; commit "
        f"{', '.join(f'`{commit}`' for commit in commits)}; figures: `levers.json`.\n"
    ]
    for world in WORLDS:
        own = {row["lever"]: row for row in tried if row["world"] == world.name}
        rows = [[name, *_entries(own[name])] for name in LEVERS if name in own]
        heads = ["setting", "CRPS ÷ oracle", "95% holds", "95% width ÷ oracle", "effects hold", "seconds"]
        parts.append(f"\n## {world.name.capitalize()}\n\n{markdown(heads, rows)}\n")
    return "".join(parts)


def _entries(row: dict[str, Any]) -> list[str]:
    def listed(values: list[float], form: str) -> str:
        return ", ".join(form.format(value) for value in values)

    return [
        listed(row["crps"], "{:.2f}"),
        listed([100 * share for share in row["coverage"]], "{:.1f}"),
        listed(row["width"], "{:.2f}"),
        listed([100 * share for share in row.get("effects", [])], "{:.0f}%") or "–",
        f"{row['fit_seconds']:.0f}",
    ]


if __name__ == "__main__":
    typer.run(main)
