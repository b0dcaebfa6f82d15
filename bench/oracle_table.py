"""The physical limit beside carrying the last value forward, in every variant of the tumour world.

Run it with `python -m bench.oracle_table`; it takes about a quarter of an hour on two cores and writes
docs/results/oracle.json and its page.
"""

from __future__ import annotations

import sys
import time

import numpy as np

import counterpath as cp
from bench.provenance import provenance, write_result
from counterpath.metrics import covered, crps_draws, mean_by_patient, pit_draws, pit_uniformity, squared_error

PATIENTS = 10_000
TRAIN_SEED, TEST_SEED = 101, 102
CUT_DAYS = 54.0
HORIZONS = np.arange(1.0, 6.0)
LEVELS = (0.5, 0.8, 0.95, 0.99)
DRAWS = 2_000
VARIANTS = [(assignment, continuous) for continuous in (False, True) for assignment in ("arms", "randomised")]


def main(patients: int = PATIENTS) -> None:
    record = provenance("python -m bench.oracle_table")
    variants = []
    for assignment, continuous in VARIANTS:
        options = {"assignment": assignment, "continuous": continuous}
        train = cp.simulate_tumor_growth(patients, seed=TRAIN_SEED, **options)
        test = cp.simulate_tumor_growth(patients, seed=TEST_SEED, **options)
        variants.append({"assignment": assignment, "continuous": continuous} | measure(train, test))
        print_variant(variants[-1])
    content = record | {
        "patients": patients,
        "draws": DRAWS,
        "cut_days": CUT_DAYS,
        "seeds": {"train": TRAIN_SEED, "test": TEST_SEED},
        "variants": variants,
    }
    write_result("oracle", content, page(content))


def measure(train, test) -> dict:
    # Of all days, seen or not: large tumours are seen more often, and a scale should not depend on the visits.
    scale = float(train.truth.volumes_cm3[:, train.truth.settings.step_of(np.arange(60.0))].std())
    outcomes = test.truth.volumes_cm3[:, test.truth.settings.step_of(CUT_DAYS + HORIZONS)]
    history, plan = test.cohort.until(CUT_DAYS), cp.Plan.observed(test.cohort)
    oracle = cp.Oracle(test.truth.settings).fit(train.cohort)
    began = time.perf_counter()
    prediction = oracle.predict(history, plan, horizons=HORIZONS.tolist(), draws=DRAWS)
    seconds = time.perf_counter() - began
    last = cp.LastValue(5.0).fit(train.cohort).predict(history, plan, horizons=HORIZONS.tolist(), draws=DRAWS)
    best, carried = prediction.sample(DRAWS), last.sample(DRAWS)
    size = oracle.effective_size
    return {
        "scale_cm3": scale,
        "seconds": seconds,
        "effective_size": {
            "1%": float(np.quantile(size, 0.01)),
            "5%": float(np.quantile(size, 0.05)),
            "median": float(np.median(size)),
            "share_of_patients_above_500": float(np.mean(size >= 500)),
        },
        "finite_and_in_range": bool(np.isfinite(best).all() and best.min() >= 1e-8),
        "largest_mean_over_largest_outcome": float(prediction.mean.max() / outcomes.max()),
        "Oracle": [scores(outcomes[:, i], best[:, :, i], scale) for i in range(len(HORIZONS))],
        "LastValue": [scores(outcomes[:, i], carried[:, :, i], scale) for i in range(len(HORIZONS))],
    }


def scores(outcome: np.ndarray, draws: np.ndarray, scale: float) -> dict:
    crps = mean_by_patient(crps_draws(outcome / scale, draws / scale))
    error = mean_by_patient(squared_error(outcome / scale, np.median(draws, axis=0) / scale))
    coverage, width = {}, {}
    for level in LEVELS:
        lower, upper = np.quantile(draws, [(1 - level) / 2, (1 + level) / 2], axis=0, method="weibull")
        share = mean_by_patient(covered(outcome, lower, upper))
        coverage[f"{level:.0%}"] = {"value": share.value, "standard_error": share.standard_error}
        width[f"{level:.0%}"] = float(np.median(upper - lower)) / scale
    uniform = pit_uniformity(pit_draws(outcome, draws, np.random.default_rng(0)))
    return {
        "crps": crps.value,
        "crps_error": crps.standard_error,
        "mse_of_median": error.value,
        "coverage": coverage,
        "median_width": width,
        "pit_distance": uniform.distance,
        "pit_p_value": uniform.p_value,
    }


def print_variant(variant: dict) -> None:
    name = f"{variant['assignment']}, {'continuous' if variant['continuous'] else 'daily'}"
    print(f"{name}: {variant['seconds']:.0f} s, effective size {variant['effective_size']}", flush=True)
    for days, oracle, last in zip(HORIZONS, variant["Oracle"], variant["LastValue"], strict=True):
        shares = "  ".join(f"{level} {100 * c['value']:.1f}" for level, c in oracle["coverage"].items())
        print(
            f"  Δ = {days:.0f}  CRPS {oracle['crps']:.5f} (last value {last['crps']:.5f})  {shares}"
            f"  PIT p {oracle['pit_p_value']:.2f}",
            flush=True,
        )


def page(content: dict) -> str:
    parts = [
        "# The physical limit\n\n"
        f"Written by `{content['command']}` on {content['processor']} ({content['cores']} cores), Python "
        f"{content['python']}, commit `{content['commit'][:10]}`. Figures: `oracle.json`.\n\n"
        f"{content['patients']:,} simulated patients, known up to day {content['cut_days']:g}, under what was really "
        "given. The oracle knows the simulator and the same record; nothing can do better on average. Volumes are "
        "divided by the standard deviation of the training patients' volumes on all days. Every patient counts, "
        "seen on that day or not.\n"
    ]
    for variant in content["variants"]:
        size = variant["effective_size"]
        parts.append(
            f"\n## {variant['assignment']}, {'continuous time' if variant['continuous'] else 'daily'}\n\n"
            f"Effective size {size['5%']:.0f} at the 5% quantile of patients, {size['median']:.0f} at the median; at "
            f"least 500 for {size['share_of_patients_above_500']:.1%}. {variant['seconds']:.0f} s.\n\n"
            "| Δ (days) | CRPS | ± | MSE of median | 50% | 80% | 95% | 99% | 95% width | PIT p "
            "| last value: CRPS | MSE |\n"
            "|---|---|---|---|---|---|---|---|---|---|---|---|\n"
        )
        for days, oracle, last in zip(HORIZONS, variant["Oracle"], variant["LastValue"], strict=True):
            shares = " | ".join(f"{100 * c['value']:.1f}" for c in oracle["coverage"].values())
            parts.append(
                f"| {days:.0f} | {oracle['crps']:.5f} | {oracle['crps_error']:.5f} | {oracle['mse_of_median']:.2e} "
                f"| {shares} | {oracle['median_width']['95%']:.5f} | {oracle['pit_p_value']:.2f} "
                f"| {last['crps']:.5f} | {last['mse_of_median']:.2e} |\n"
            )
    parts.append(
        "\nCoverage has a standard error of 0.5 points at 50%, 0.4 at 80%, 0.2 at 95% and 0.1 at 99%. The PIT's "
        "p-value is of a Kolmogorov–Smirnov test that it is uniform.\n"
    )
    return "".join(parts)


if __name__ == "__main__":
    main(int(sys.argv[1]) if len(sys.argv) > 1 else PATIENTS)
