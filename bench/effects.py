"""Are effects of plans right, and does the model know how right? Beside the oracle's, on randomised tumour growth.

    python -m bench.effects MODEL.safetensors      docs/results/effects.json and its page

The model is one that `bench.engine_table` keeps. Two comparisons: chemotherapy every other day against nothing,
where everybody gains, and against radiotherapy as often, where some gain and some lose.
"""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import numpy as np
import typer

import counterpath as cp
from bench.provenance import RESULTS, provenance, write_result
from bench.tables import markdown
from counterpath.experiments.expected_effects import COMPARED, DRAWS, ORACLE_DRAWS, oracle_draws, rms
from counterpath.experiments.tumor_worlds import CUT_DAYS, RANDOMISED

TEST, TEST_SEED = 500, 62_000  # 60,000 and 61,000 have judged earlier states of the model
HORIZONS = np.arange(2.0, 6.0)
BENEFIT_BINS = np.array([0.0, 0.05, 0.25, 0.5, 0.75, 0.95, 1.0])

app = typer.Typer(add_completion=False, pretty_exceptions_enable=False)


@app.command()
def main(model: Path, patients: int = TEST, to: Path = RESULTS) -> None:
    """Measure and write the page."""
    record = provenance(f"python -m bench.effects {model.name}")
    test = RANDOMISED.simulate(patients, TEST_SEED)
    today, fitted = test.cohort.until(CUT_DAYS), cp.load(model)
    oracle = cp.Oracle(test.truth.settings, workers=os.cpu_count() or 1).fit(today)
    content = record | {"patients": patients}
    content["compared"] = {
        name: compare(fitted, oracle, today, plan, versus) for name, (plan, versus) in COMPARED.items()
    }
    page = page_of(content)
    write_result("effects", content, page, to)
    print(page)


def compare(model: Any, oracle: cp.Oracle, today: Any, plan: cp.Plan, versus: cp.Plan) -> dict[str, Any]:
    """The model's expected effect and its interval beside the oracle's, which both sides condition on the record."""
    asked = {"horizons": HORIZONS.tolist(), "progress": False}
    effect = model.effect(today, plan, versus=versus, draws=DRAWS, **asked)
    # Draw by draw with the same parameters and noise, so that what differs is the plan.
    one, other = (oracle_draws(oracle, today, own, HORIZONS, ORACLE_DRAWS) for own in (plan, versus))
    truth, unsure = (one - other).mean(axis=0), (one - other).std(axis=0)
    lower, upper = effect.interval(0.95)
    inside = (truth >= lower) & (truth <= upper)
    rows = [
        {
            "horizon": float(horizon),
            "coverage": float(inside[:, i].mean()),
            "error": rms(effect.mean[:, i] - truth[:, i]),
            "spread": rms(effect.draws.std(axis=0, ddof=1)[:, i]),
            "oracle_std": rms(unsure[:, i]),
            "size": rms(truth[:, i]),
        }
        for i, horizon in enumerate(HORIZONS)
    ]
    chance = effect.probability_of_benefit(better="lower")
    return {"horizons": rows, "benefit": benefit(chance.ravel(), (truth < 0).ravel())}


def benefit(chance: np.ndarray, gains: np.ndarray) -> list[dict[str, float]]:
    """How many of the patients who were promised a benefit with this probability have one, by the oracle."""
    which = np.clip(np.searchsorted(BENEFIT_BINS, chance, side="right") - 1, 0, len(BENEFIT_BINS) - 2)
    rows = []
    for i in range(len(BENEFIT_BINS) - 1):
        mine = which == i
        if mine.any():
            rows.append(
                {
                    "from": float(BENEFIT_BINS[i]),
                    "to": float(BENEFIT_BINS[i + 1]),
                    "points": int(mine.sum()),
                    "promised": float(chance[mine].mean()),
                    "gained": float(gains[mine].mean()),
                }
            )
    return rows


def page_of(content: dict[str, Any]) -> str:
    parts = [
        "# Are the effects right?\n\n"
        f"`BNCDE.large()`, trained on 10,000 patients of the randomised world, asked about {content['patients']} "
        f"others on day {CUT_DAYS:g}. The truth is the oracle's E[Y(plan) − Y(other) | record]. Coverage: of the "
        "model's 95% intervals of the expected effect. Error, spread and sizes are root mean squares over patients in "
        "cm³; the oracle's std is how unsure somebody is who knows the simulator and has the same record. "
        f"Commit `{content['commit'][:10]}`; figures: `effects.json`.\n"
    ]
    for name, found in content["compared"].items():
        rows = [
            [
                f"{row['horizon']:g}",
                f"{row['coverage']:.1%}",
                *(f"{row[key]:.3g}" for key in ("error", "spread", "oracle_std", "size")),
            ]
            for row in found["horizons"]
        ]
        heading = ["days", "95% interval holds", "error", "model's spread", "oracle's std", "size of the effect"]
        chances = [
            [
                f"{row['from']:.0%} to {row['to']:.0%}",
                str(row["points"]),
                f"{row['promised']:.1%}",
                f"{row['gained']:.1%}",
            ]
            for row in found["benefit"]
        ]
        parts.append(
            f"\n## {name.capitalize()}\n\n{markdown(heading, rows)}\n\n"
            "Probability of benefit, over all these horizons:\n\n"
            f"{markdown(['promised', 'patients × horizons', 'mean', 'gain by the oracle'], chances)}\n"
        )
    return "".join(parts)


if __name__ == "__main__":
    app()
