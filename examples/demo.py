"""The tour that `make demo` takes: read and check tables; simulate a study, train, compare, look at patients."""

from __future__ import annotations

from pathlib import Path

import numpy as np
from rich.console import Console
from rich.table import Table

import counterpath as cp
from counterpath.cli.tables import description_table
from counterpath.estimators import Estimator
from counterpath.figures import Forecast, draw_forecasts
from counterpath.predictive import Evaluation

HORIZONS = [1.0, 2.0, 3.0, 4.0, 5.0]


def main() -> None:
    """Everything it writes goes to the folder `demo`."""
    console = Console()
    folder = Path("demo")
    folder.mkdir(exist_ok=True)
    records_of_a_ward(console, folder)
    forecasts_in_a_simulated_study(console, folder)


def records_of_a_ward(console: Console, folder: Path) -> None:
    """Tables come in, are checked and described, and six patients are drawn."""
    console.rule("Tables of a ward")
    ward = cp.load_example_ward()
    console.print(ward)
    console.print(f"\n{ward.check()}\n", highlight=False)
    console.print(description_table(ward))
    picture = folder / "patients.png"
    treated = [patient for patient in ward.patients if len(set(ward[patient].events.treatment)) == 2][:6]
    cp.draw_patients(ward, treated, path=picture)
    console.print(f"\nSix of them are drawn in {picture}.\n")


def forecasts_in_a_simulated_study(console: Console, folder: Path) -> None:
    """Where the truth is known: our model between the simplest forecast and the best possible one, and two plans."""
    console.rule("A simulated study")
    train = cp.simulate_tumor_growth(patients=1_000, seed=0).cohort
    study = cp.simulate_tumor_growth(patients=1_000, seed=1)
    test = study.cohort
    report = train.check()
    console.print(train)
    console.print(f"\n{report}", highlight=False)

    today = test.until(50.0)
    outcomes = study.truth.outcomes(today, cp.Plan.observed(test), np.array(HORIZONS))
    scale = float(train.records.values[:, 0].std())
    console.print("\nTraining two models; the first run also compiles them.")
    ours = cp.BNCDE(max_horizon=5.0).fit(train)
    oracle = cp.Oracle(study.truth.settings).fit(train)
    models = [
        cp.LastValue(max_horizon=5.0).fit(train),
        cp.TECDE(max_horizon=5.0, outcome_noise=True).fit(train),
        ours,
        oracle,
    ]
    with console.status("Predicting …"):
        evaluations = [m.evaluate(test, at=50.0, horizons=HORIZONS, truth=outcomes, scale=scale) for m in models]
    console.print(
        "\nFrom day 50, under what was really given; volumes over the training patients' standard deviation.\n"
    )
    console.print(as_table(evaluations))
    console.print("\nOf 1,000 other patients. The oracle knows the simulator: no model can do better but by chance.")

    largest = np.argsort(-study.truth.select(today.patients).volumes_cm3[:, 50])[30:270:30]
    eight = today[[today.patients[int(i)] for i in largest]]
    plans = {
        "no treatment": cp.Plan.none(),
        "both, now and in two days": cp.Plan.repeat("chemotherapy", every=2.0, times=2)
        + cp.Plan.repeat("radiotherapy", every=2.0, times=2),
    }
    pictures = {folder / "forecasts.png": ours, folder / "oracle.png": oracle}
    for picture, model in pictures.items():
        bands = [forecast(model, eight, name, plan) for name, plan in plans.items()]
        draw_forecasts(eight, bands, back=15.0, path=picture)
    summary = folder / "report.txt"
    lines = [str(train), str(report), *(str(evaluation.to_frame()) for evaluation in evaluations)]
    summary.write_text("\n\n".join(lines) + "\n", encoding="utf-8")
    drawn = " (BNCDE) and ".join(str(picture) for picture in pictures)
    console.print(f"\nEight patients under two plans are drawn in {drawn} (oracle); the report is in {summary}.")


def forecast(model: Estimator, today: cp.Cohort, label: str, plan: cp.Plan) -> Forecast:
    """A model's band under a plan."""
    prediction = model.predict(today, plan, horizons=HORIZONS, draws=model.draws_to_judge)
    lower, upper = prediction.interval(0.95)
    return Forecast(label, plan, prediction.horizons, lower, prediction.median, upper)


def as_table(evaluations: list[Evaluation]) -> Table:
    """Models side by side, a line per horizon."""
    table = Table(box=None, header_style="bold", padding=(0, 1), pad_edge=False)
    for title in ("Δ", "model", "CRPS", "÷ oracle", "MSE", "95%", "width", "99%", "width"):
        table.add_column(title, justify="left" if title == "model" else "right")
    for scores in zip(*(evaluation.scores for evaluation in evaluations), strict=True):
        for evaluation, score in zip(evaluations, scores, strict=True):
            spread = [
                cell
                for level in (0.95, 0.99)
                for cell in (f"{score.coverage[level].value:.1%}", f"{score.width[level]:.4f}")
            ]
            table.add_row(
                f"{score.horizon:.0f}",
                evaluation.model,
                f"{score.crps.value:.5f}",
                f"{score.crps.value / scores[-1].crps.value:.2f}",
                f"{score.mse.value:.1e}",
                *spread,
            )
    return table


if __name__ == "__main__":
    main()
