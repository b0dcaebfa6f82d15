"""The tour that `make demo` takes: tables → check → fit → evaluate → predict → effect → report."""

from __future__ import annotations

import sys
from dataclasses import replace
from pathlib import Path

import numpy as np
from rich.console import Console
from rich.table import Table

import counterpath as cp
from counterpath.cli.output import first_rows
from counterpath.cli.tables import description_table
from counterpath.predictive import Evaluation

HORIZONS = [1.0, 2.0, 3.0, 4.0, 5.0]
TODAY = 50.0
PLANS = {
    "both, now and in two days": cp.Plan.from_text("chemotherapy@0,2 + radiotherapy@0,2"),
    "no treatment": cp.Plan.none(),
}


def main() -> None:
    """Everything it writes goes to the folder `demo`."""
    console = Console()
    folder = Path("demo")
    folder.mkdir(exist_ok=True)
    records_of_a_ward(console, folder)
    a_simulated_study(console, folder)


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


def a_simulated_study(console: Console, folder: Path) -> None:
    """Where the truth is known: our model between the simplest forecast and the best possible one, and two plans."""
    console.rule("A simulated study")
    train = cp.simulate_tumor_growth(patients=1_000, seed=0).cohort
    study = cp.simulate_tumor_growth(patients=300, seed=1)
    console.print(train)
    console.print(f"\n{train.check()}", highlight=False)

    console.print("\nTraining three models; the first run also compiles them.")
    models = {
        "LastValue": cp.LastValue(max_horizon=5.0).fit(train),
        "TECDE": cp.TECDE(max_horizon=5.0).fit(train),
        "TECDE, noise": cp.TECDE(max_horizon=5.0, outcome_noise=True).fit(train),
        "BNCDE": cp.BNCDE(max_horizon=5.0).fit(train),
        "Oracle": cp.Oracle(study.truth.settings).fit(train),
    }
    ours = models["BNCDE"]
    today = study.cohort.until(TODAY)
    outcomes = study.truth.outcomes(today, cp.Plan.observed(study.cohort), np.array(HORIZONS))
    scale = float(train.records.values[:, 0].std())
    with console.status("Predicting …"):
        evaluations = {
            name: replace(
                model.evaluate(study.cohort, at=TODAY, horizons=HORIZONS, truth=outcomes, scale=scale), model=name
            )
            for name, model in models.items()
        }
    console.print(
        "\nFrom day 50, under what was really given; volumes over the training patients' standard deviation.\n"
    )
    console.print(as_table(list(evaluations.values())))
    console.print(
        f"\nOf {len(today)} other patients. The oracle knows the simulator: no model can do better but by chance."
    )
    console.print(f"\n{evaluations['BNCDE']}.", highlight=False)

    (asked, plan), (_, nothing) = PLANS.items()
    effect = ours.effect(today[:100], plan, versus=nothing, horizons=[5.0])
    console.print(f"\nWhat “{asked}” would change within five days, against nothing:\n", highlight=False)
    console.print(first_rows(effect.summary(better="lower")))
    console.print(f"\n{effect.label.capitalize()}.", highlight=False)

    model, page = folder / "tumor.safetensors", folder / "report.html"
    ours.save(model)
    study.cohort.save(folder / "patients", overwrite=True)
    with console.status("Writing the report …"):
        others = [evaluation for name, evaluation in evaluations.items() if name != "BNCDE"]
        cp.write_report(
            evaluations["BNCDE"], page, plans=PLANS, better="lower", at=TODAY, others=others, progress=False
        )
    console.print(f"\nThe model is in {model}. The report is in {page}: open it in a browser.", highlight=False)
    console.print("Change a patient's plan in the browser and see the forecast answer:\n", highlight=False)
    command = Path(sys.executable).with_name("counterpath")
    command = command.relative_to(Path.cwd()) if command.is_relative_to(Path.cwd()) else command
    console.print(f"    {command} explore {model} --data {folder / 'patients'}\n", highlight=False, soft_wrap=True)


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
                for cell in (f"{score.coverage[level].value:.1%}", f"{score.width[level]:.1e}")
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
