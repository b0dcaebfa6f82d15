"""How close the models come to the physical limit: one fit for Δ = 1…5, three data draws, beside the oracle.

    python -m bench.engine_table oracle VARIANT             the limit, once per variant (on many cores)
    python -m bench.engine_table fit VARIANT MODEL DRAW     a fit on data draw 0, 1 or 2 (on a GPU)
    python -m bench.engine_table page                       docs/results/engine.json and its page, from what is there

Variants are `arms`, `randomised` and `randomised-continuous`; models are those of `MODELS`. Each call writes one file
into the folder `engine-table` (or `--to FOLDER`), so that a table can grow fit by fit, and the model beside it, for
other questions. Several processes may share a device; `--beside` says how many others there were. A fit that is cut
short goes on where it was when the same call is made again.
"""

from __future__ import annotations

import json
import os
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import jax
import numpy as np
import typer

import counterpath as cp
from bench.provenance import last_result, provenance, write_result
from counterpath.estimators.neural import NeuralEstimator
from counterpath.metrics import covered, crps_draws, mean_by_patient, paired_ratio, squared_error

PATIENTS, VALIDATION, TEST = 10_000, 1_000, 4_000
# No model is judged on test patients that an earlier state of it was judged on: `BNCDE` has read 30,000 to 32,000.
TRAIN_SEEDS, VALIDATION_SEEDS, TEST_SEED = (20_000, 20_001, 20_002), (25_000, 25_001, 25_002), 33_000
CUT_DAYS = 54.0
HORIZONS = np.arange(1.0, 6.0)
LEVELS = (0.95, 0.99)
DRAWS = 1_000
VARIANTS = ("arms", "randomised", "randomised-continuous")
SIZES: dict[str, Any] = {  # as `BNCDE.large`
    "field_widths": (128, 128),
    "batch_size": 128,
    "cuts_per_step": 16,
    "steps": 6_000,
}
MODELS: dict[str, Callable[[int], Any]] = {
    "BNCDE": lambda seed: cp.BNCDE.large(5.0, seed=seed),
    "BNCDE.paper": lambda seed: cp.BNCDE.paper(1.0, seed=seed),
    "TECDE": lambda seed: cp.TECDE(5.0, seed=seed, **SIZES),
    "TECDE with noise": lambda seed: cp.TECDE(5.0, seed=seed, outcome_noise=True, **SIZES),
    "DeepEnsemble": lambda seed: cp.DeepEnsemble(
        cp.TECDE(5.0, seed=seed, outcome_noise=True, **SIZES), members=4
    ),
}  # fmt: skip

app = typer.Typer(add_completion=False, pretty_exceptions_enable=False)
Folder = typer.Option(Path("engine-table"), "--to")


def world(variant: str, patients: int, seed: int) -> Any:
    assignment, _, continuous = variant.partition("-")
    return cp.simulate_tumor_growth(patients, seed=seed, assignment=assignment, continuous=continuous == "continuous")


def truth(test: Any) -> np.ndarray:
    return test.truth.volumes_cm3[:, test.truth.settings.step_of(CUT_DAYS + HORIZONS)]


@app.command()
def oracle(variant: str, folder: Path = Folder) -> None:
    """The limit: draws of the true posterior predictive."""
    test = world(variant, TEST, TEST_SEED)
    model = cp.Oracle(test.truth.settings, workers=os.cpu_count()).fit(test.cohort)
    prediction = model.predict(
        test.cohort.until(CUT_DAYS), cp.Plan.observed(test.cohort), horizons=HORIZONS.tolist(), draws=DRAWS
    )
    folder.mkdir(parents=True, exist_ok=True)
    np.savez_compressed(folder / f"{variant}.npz", draws=prediction.sample(DRAWS))


@app.command()
def fit(variant: str, model: str, draw: int, beside: int = 0, folder: Path = Folder) -> None:
    """One fit on a data draw of its own, scored on the test set of all."""
    record = provenance(f"python -m bench.engine_table fit {variant} {model!r} {draw}")
    train, validation = world(variant, PATIENTS, TRAIN_SEEDS[draw]), world(variant, VALIDATION, VALIDATION_SEEDS[draw])
    own, name = MODELS[model](draw), f"{variant}.{model.replace(' ', '-')}.{draw}"
    folder.mkdir(parents=True, exist_ok=True)
    began = time.perf_counter()
    # A model that learns from one cut of each patient, the last, is to learn from such cuts as it is asked about.
    until = CUT_DAYS + own.max_horizon if model == "BNCDE.paper" else None
    learn, held = (w.cohort if until is None else w.cohort.until(until) for w in (train, validation))
    own.fit(learn, held, progress=False, checkpoint=folder / f"{name}.checkpoint")
    seconds = max(time.perf_counter() - began, float(own.history_["seconds"].max()))  # the second, if it was cut short
    test = world(variant, TEST, TEST_SEED)
    limit = np.load(folder / f"{variant}.npz")["draws"]
    content = record | {
        "variant": variant,
        "model": model,
        "draw": draw,
        "test_seed": TEST_SEED,
        "device": jax.devices()[0].device_kind,
        "beside": beside,
        "fit_seconds": seconds,
        **scores(own, test, limit, scale=float(truth_on_all_days(train).std())),
    }
    (folder / f"{name}.json").write_text(json.dumps(content, indent=2) + "\n", encoding="utf-8")
    own.save(folder / f"{name}.safetensors")
    print(line([content]))


def truth_on_all_days(world: Any) -> np.ndarray:
    return world.truth.volumes_cm3[:, world.truth.settings.step_of(np.arange(60.0))]


def scores(model: Any, test: Any, limit: np.ndarray, scale: float) -> dict[str, Any]:
    """Every horizon that the model knows; what is divided by the oracle's is so patient by patient."""
    today, plan = test.cohort.until(CUT_DAYS), cp.Plan.observed(test.cohort)
    outcomes = truth(test)
    horizons = HORIZONS[model.max_horizon >= HORIZONS]
    prediction = model.predict(today, plan, horizons=horizons.tolist(), draws=model.draws_to_judge)
    drawn = prediction.sample(DRAWS)
    rows = []
    for i, horizon in enumerate(horizons):
        outcome, draws = outcomes[:, i], drawn[:, :, i]
        crps, best = crps_draws(outcome / scale, draws / scale), crps_draws(outcome / scale, limit[:, :, i] / scale)
        ratio = paired_ratio(crps, best)
        row: dict[str, Any] = {
            "horizon": float(horizon),
            "crps": mean_by_patient(crps).value,
            "crps_over_oracle": ratio.value,
            "crps_over_oracle_interval": [ratio.lower, ratio.upper],
            "mse_of_median": mean_by_patient(squared_error(outcome / scale, np.median(draws, 0) / scale)).value,
        }
        for level in LEVELS:
            tails = ((1 - level) / 2, (1 + level) / 2)
            (lower, upper), (low, high) = (np.quantile(d, tails, axis=0) for d in (draws, limit[:, :, i]))
            row[f"coverage_{level:.0%}"] = float(np.mean(covered(outcome, lower, upper)))
            row[f"width_over_oracle_{level:.0%}"] = float(np.median(upper - lower) / np.median(high - low))
        rows.append(row)
    found = {
        "horizons": rows,
        "finite": bool(np.isfinite(drawn).all()),
        "largest_mean_over_largest_outcome": float(prediction.mean.max() / outcomes.max()),
    }
    if isinstance(model, NeuralEstimator) and model.architecture.posterior is not None:
        found["error_over_spread"] = error_over_spread(model, today, plan, horizons, limit)
    return found


def error_over_spread(model: Any, today: Any, plan: Any, horizons: np.ndarray, limit: np.ndarray) -> list[float]:
    """RMS(model mean − oracle mean) ÷ RMS(spread of the means over draws), on the model's scale."""
    means, _ = model.components(today, plan, horizons, 100, 0)
    variable = model.tabulation_.scaler.variables[0]
    error = means.mean(axis=0) - variable.forward(limit[:, :, : len(horizons)]).mean(axis=0)
    spread = means.std(axis=0, ddof=1)
    return [float(v) for v in np.sqrt((error**2).mean(axis=0) / (spread**2).mean(axis=0))]


def line(fits: list[dict[str, Any]]) -> str:
    """A row of the page: means over the fits of a model."""
    width = len(fits[0]["horizons"])

    def mean(key: str, i: int) -> float:
        return float(np.mean([fit["horizons"][i][key] for fit in fits]))

    def row(key: str, form: str) -> str:
        return ", ".join(form.format(mean(key, i)) for i in range(width))

    ratios = row("crps_over_oracle", "{:.2f}")
    shares = [", ".join(f"{100 * mean(f'coverage_{level}', i):.1f}" for i in range(width)) for level in ("95%", "99%")]
    calibrated = [fit["error_over_spread"] for fit in fits if "error_over_spread" in fit]
    spread = ", ".join(f"{v:.2f}" for v in np.mean(calibrated, axis=0)) if calibrated else "–"
    alone = [fit["fit_seconds"] for fit in fits if not fit["beside"]]
    seconds = f"{np.mean(alone):.0f}" if alone else f"at most {min(fit['fit_seconds'] for fit in fits):.0f}"
    return (
        f"| {fits[0]['model']} ({len(fits)}) | {test_seed(fits[0]):,} | {ratios} | {shares[0]} | {shares[1]} "
        f"| {row('width_over_oracle_95%', '{:.2f}')} | {spread} | {seconds} |"
    )


def test_seed(fit: dict[str, Any]) -> int:
    return fit.get("test_seed", 32_000)  # the first fits did not say


def page_of(fits: list[dict[str, Any]]) -> str:
    parts = [
        "# How close the models come\n\n"
        f"{PATIENTS:,} training patients, {VALIDATION:,} for stopping, {TEST:,} test patients known up to day "
        f"{CUT_DAYS:g} under what was really given; every patient counts, seen on that day or not. Means over fits on "
        "data draws of their own, as many as the brackets say. One serves Δ = 1…5 days (`BNCDE.paper`: Δ = 1 only, and "
        "from records up to day 55, since it learns from the last cut of each patient alone). CRPS and width are "
        "divided by the oracle's, which knows the simulator. The last but one column is the model's own uncertainty: "
        "RMS(model mean − oracle mean) ÷ RMS(spread over weights). Seconds are of `fit`: preparing, "
        "compiling and training; where all fits shared the device with others, of the quickest. Rows of another test "
        "seed are of other patients, and only ratios of one seed compare models: a single patient in 4,000 can move a "
        "mean ([why](../explanation/design-decisions.md#one-patient-can-rule-a-mean)). `BNCDE` of seed 32,000 was "
        "fitted with temperature ½, the preset then, and rows up to seed 33,000 before models corrected a [linear "
        "response](../explanation/design-decisions.md#each-patients-own-linear-response-comes-first). Figures of every "
        "fit: `engine.json`.\n"
    ]
    missing = []
    for variant in VARIANTS:
        rows = []
        for model in MODELS:
            own = [fit for fit in fits if (fit["variant"], fit["model"]) == (variant, model)]
            for seed in sorted({test_seed(fit) for fit in own}):
                rows.append(line([fit for fit in own if test_seed(fit) == seed]) + "\n")
            missing += [f"{variant}: {model}"] if not own else []
        if rows:
            parts.append(
                f"\n## {variant.replace('-', ', ')}\n\n"
                "| model | test seed | CRPS ÷ oracle | 95% holds | 99% holds | 95% width ÷ oracle "
                "| error ÷ spread | seconds |\n"
                "|---|---|---|---|---|---|---|---|\n" + "".join(rows)
            )
    if missing:
        parts.append(f"\nNot measured yet: {'; '.join(missing)}.\n")
    devices, commits = (sorted({fit[key] for fit in fits}) for key in ("device", "commit"))
    parts.append(f"\nMeasured on {', '.join(devices)}; commit {', '.join(f'`{name[:10]}`' for name in commits)}.\n")
    return "".join(parts)


@app.command()
def page(folder: Path = Folder) -> None:
    """The page, from the fits that are there and those of the last page that were not made anew."""
    earlier = last_result("engine")["fits"]
    found = [json.loads(path.read_text(encoding="utf-8")) for path in sorted(folder.glob("*.json"))]
    by_name = {(fit["variant"], fit["model"], test_seed(fit), fit["draw"]): fit for fit in earlier + found}
    fits = [by_name[name] for name in sorted(by_name)]
    write_result("engine", {"fits": fits}, page_of(fits))


if __name__ == "__main__":
    app()
