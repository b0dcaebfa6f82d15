"""What each setting does to `BNCDE`, one at a time, on development patients: beside the oracle.

    python -m bench.levers                    all that are not in docs/results/levers.json yet, then the page
    python -m bench.levers "temperature 4"    one
    python -m bench.levers --at-once 6        several fits side by side: one leaves an accelerator almost idle

Each lever is a fit on 1,000 patients, in the daily world with random treatment days and in continuous time. Nobody of
these is in a test set. Defaults were chosen on such patients; see docs/explanation/design-decisions.md.
"""

from __future__ import annotations

import multiprocessing
import os
import time
import warnings
from collections.abc import Iterator
from concurrent.futures import ProcessPoolExecutor
from pathlib import Path
from typing import Annotated, Any

import jax
import numpy as np
import typer

import counterpath as cp
from bench.provenance import RESULTS, last_result, provenance, write_result
from bench.tables import markdown
from counterpath.experiments.answers import made_once
from counterpath.experiments.expected_effects import COMPARED, oracle_draws
from counterpath.experiments.tumor_worlds import CONTINUOUS, CUT_DAYS, HORIZONS, RANDOMISED, TumorWorld
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
    "one cut before the last outcome": {"cuts": "last"},
    "recalibrated": {},
}
# Levels are set after the fit, on the validation patients: ends of intervals alone change, not what is drawn.
RECALIBRATED = "recalibrated"
KEPT = Path(".levers")


def main(
    levers: Annotated[list[str] | None, typer.Argument()] = None,
    to: Path = RESULTS,
    at_once: int = 1,
) -> None:
    """Try what is missing, or what is named, and write the page."""
    path = to / "levers.json"
    tried = last_result("levers", to)["tried"] if path.exists() else []
    there = {(row["lever"], row["world"]) for row in tried}
    work = [(name, world) for world in WORLDS for name in levers or LEVERS if levers or (name, world.name) not in there]
    if at_once > 1:
        os.environ.setdefault("XLA_PYTHON_CLIENT_PREALLOCATE", "false")  # they share an accelerator's memory
    device = jax.devices()[0]
    for world in WORLDS:
        limit(world)  # before several processes want it
    for row in attempts(work, at_once):
        record = provenance(f"python -m bench.levers {row['lever']!r}")
        record |= {"device": None if device.platform == "cpu" else device.device_kind, "at_once": at_once}
        others = [other for other in tried if (other["lever"], other["world"]) != (row["lever"], row["world"])]
        tried = [*others, row | {"record": record}]
        write_result("levers", {"tried": tried}, page_of(tried), to)
        print(*(row[part] for part in ("lever", "world", "crps", "coverage", "width")), flush=True)


def attempts(work: list[tuple[str, TumorWorld]], at_once: int) -> Iterator[dict[str, Any]]:
    """One after the other, or several processes side by side."""
    if at_once == 1:
        yield from (attempt(*one) for one in work)
        return
    apart = multiprocessing.get_context("spawn")
    cores, shares = sorted(os.sched_getaffinity(0)), apart.Queue()
    for place in range(at_once):
        shares.put(cores[place::at_once] or cores)
    with ProcessPoolExecutor(at_once, apart, initializer=_keep_to_own_cores, initargs=(shares,)) as pool:
        yield from pool.map(attempt, *zip(*work, strict=True))


def _keep_to_own_cores(shares: Any) -> None:
    """Of a process, before it computes: several that want all cores wait for each other."""
    os.sched_setaffinity(0, shares.get())


def attempt(name: str, world: TumorWorld) -> dict[str, Any]:
    """A fit, judged on others."""
    train, validation = (
        world.simulate(patients, seed).cohort for patients, seed in ((TRAIN, TRAIN_SEED), (VALIDATION, VALIDATION_SEED))
    )
    asked, best = Asked(world), limit(world)
    began = time.process_time()
    model = cp.BNCDE(max(HORIZONS), **LEVERS[name]).fit(train, validation, progress=False)
    seconds = time.process_time() - began  # of processors: other work, or other fits, may go on beside it
    if name == RECALIBRATED:
        model.calibrate(validation)
    prediction = model.predict(asked.today, asked.plan, horizons=HORIZONS, draws=100, progress=False)
    lower, upper = prediction.interval(0.95)
    crps = crps_draws(asked.outcome, prediction.sample(DRAWS))
    row: dict[str, Any] = {
        "lever": name,
        "world": world.name,
        "crps": [paired_ratio(crps[:, h], best["crps"][:, h]).value for h in range(len(HORIZONS))],
        "coverage": covered(asked.outcome, lower, upper).mean(axis=0).tolist(),
        "width": (np.median(upper - lower, axis=0) / best["width"]).tolist(),
        "fit_seconds": seconds,
    }
    if world == RANDOMISED:
        row["effects"] = effects(model, asked)
    return row


class Asked:
    """Test patients of a world, what is asked about them, and what came."""

    def __init__(self, world: TumorWorld):
        self.study = world.simulate(TEST, TEST_SEED)
        self.today = self.study.cohort.until(CUT_DAYS)
        self.plan = cp.Plan.observed(self.study.cohort)
        truth = self.study.truth
        self.outcome = truth.volumes_cm3[:, truth.settings.step_of(CUT_DAYS + np.array(HORIZONS))]


def limit(world: TumorWorld) -> dict[str, Any]:
    """Of the oracle: CRPS of each patient, the median width of its 95% intervals, and expected effects."""

    def make() -> dict[str, Any]:
        asked = Asked(world)
        oracle = cp.Oracle(asked.study.truth.settings, workers=os.cpu_count() or 1).fit(asked.today)
        prediction = oracle.predict(asked.today, asked.plan, horizons=HORIZONS, draws=DRAWS, progress=False)
        lower, upper = prediction.interval(0.95)
        crps = crps_draws(asked.outcome, prediction.sample(DRAWS))
        made = {"crps": crps, "width": np.median(upper - lower, axis=0)}
        for name, plans in COMPARED.items() if world == RANDOMISED else ():
            days = np.array(HORIZONS[1:])
            one, other = (oracle_draws(oracle, asked.today[:EFFECTS], own, days, ORACLE_DRAWS) for own in plans)
            made[name] = (one - other).mean(axis=0)
        return made

    return made_once(KEPT / f"limit.{world.name}.npz", make)


def effects(model: cp.BNCDE, asked: Asked) -> list[float]:
    """Share of 95% intervals of expected effects that hold the oracle's, over horizons above one day; by comparison."""
    held = []
    for name, (plan, versus) in COMPARED.items():
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", UnsupportedPlanWarning)  # a few in a thousand
            effect = model.effect(
                asked.today[:EFFECTS],
                plan,
                versus=versus,
                horizons=list(HORIZONS[1:]),
                draws=EFFECT_DRAWS,
                progress=False,
            )
        held.append(float(covered(limit(RANDOMISED)[name], *effect.interval(0.95)).mean()))
    return held


def page_of(tried: list[dict[str, Any]]) -> str:
    commits = sorted({row["record"]["commit"][:10] for row in tried})
    at_once = max(row["record"]["at_once"] for row in tried)
    machines = sorted({row["record"]["device"] or row["record"]["processor"] for row in tried})
    parts = [
        "# What each setting does\n\n"
        f"`BNCDE()` with one setting changed: a fit on {TRAIN:,} development patients, {VALIDATION} for stopping, "
        f"judged on {TEST:,} others known up to day {CUT_DAYS:g}, at {HORIZONS[0]:g} to {HORIZONS[-1]:g} days. One fit "
        "each, on the same patients: another draw of these changes a ratio by 0.05 to 0.08 ([three "
        "draws](laptop/continuous-time.md)), so that smaller differences between rows say little. Effects: share of "
        "95% intervals of expected effects that hold the oracle's, chemotherapy against nothing and against "
        "radiotherapy. "
        f"`python -m bench.levers` on {', '.join(machines)}, up to {at_once} fits side by side; commit "
        f"{', '.join(f'`{commit}`' for commit in commits)}; figures: `levers.json`.\n"
    ]
    for world in WORLDS:
        own = {row["lever"]: row for row in tried if row["world"] == world.name}
        rows = [[name, *_entries(own[name])] for name in LEVERS if name in own]
        heads = ["setting", "CRPS ÷ oracle", "95% holds", "95% width ÷ oracle", "effects hold", "processor seconds"]
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
