"""`counterpath report`: one page for a reader who was not there."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Literal

import typer

from counterpath.cli.arguments import PLAN, At, ModelFile, Outcome, Overwrite, Seed, load_both, read_plan, read_time
from counterpath.cli.output import may_write
from counterpath.cli.voice import AsJson, Quiet, speaking


def report(
    model: ModelFile,
    folder: Annotated[Path, typer.Argument(metavar="FOLDER", help="Patients that the model has not seen.")],
    to: Annotated[Path, typer.Option(help="The page.")] = Path("report.html"),
    plan: Annotated[str | None, typer.Option(help=f"To be compared. {PLAN} Default: the first treatment, now.")] = None,
    versus: Annotated[str | None, typer.Option(help="What it is compared with; likewise. Default: none.")] = None,
    better: Annotated[
        Literal["lower", "higher"] | None, typer.Option(help="Which outcomes are; adds probabilities of benefit.")
    ] = None,
    outcome: Outcome = None,
    by: Annotated[str | None, typer.Option(help="A static covariate: its groups too.")] = None,
    at: At = None,
    seed: Seed = 0,
    overwrite: Overwrite = False,
    quiet: Quiet = False,
    as_json: AsJson = False,
) -> None:
    """Judge a model and write a page with verdicts, figures, example patients under two plans, effects and support.

    Example: `counterpath report model.safetensors tumours-test --plan 'chemotherapy@0,2,4' --better lower`
    """
    with speaking(quiet=quiet, as_json=as_json) as voice:
        from counterpath.report import write_report

        if plan is None and versus is not None:
            raise typer.BadParameter("--versus goes with --plan.")
        if plan is not None and plan == (versus or "none"):
            raise typer.BadParameter("--plan and --versus are the same plan: there is nothing to compare.")
        may_write(to, overwrite=overwrite, suffixes=(".html",))
        fitted, cohort = load_both(model, folder, voice)
        evaluation = fitted.evaluate(cohort, outcome=outcome, by=by, seed=seed, progress=voice.shows_progress)
        write_report(
            evaluation,
            to,
            plans=None if plan is None else {p: read_plan(p, cohort) for p in (plan, versus or "none")},
            better=better,
            by=by,
            at=None if at is None else read_time(at),
            progress=voice.shows_progress,
        )
        voice.say(f"{evaluation}.")
        voice.result(f"The report is in {to}.", report=str(to), verdict=evaluation.verdict)
