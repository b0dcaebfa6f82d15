"""What several commands are asked with, and how it is read."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from counterpath.cli.voice import Voice

if TYPE_CHECKING:
    from counterpath.cohort import Cohort, Plan
    from counterpath.estimators import Estimator

ModelFile = Annotated[Path, typer.Argument(metavar="MODEL", help="A file that `counterpath fit` wrote.")]
Folder = Annotated[Path, typer.Argument(metavar="FOLDER", help="Patients, as `counterpath check` reads them.")]
At = Annotated[
    str | None,
    typer.Option(help="When: a time since each patient's start, or a date of the tables. Default: their last record."),
]
Horizons = Annotated[
    str | None, typer.Option(help="Elapsed times, such as 1,3,5. Default: five, up to the longest of the model.")
]
Patients = Annotated[str | None, typer.Option(help="Only these, such as A12,B7. Default: all.")]
DropEnded = Annotated[bool, typer.Option("--drop-ended", help="Leave out who was not under observation at that time.")]
Outcome = Annotated[str | None, typer.Option(help="Which, where there are several. Default: the first.")]
Draws = Annotated[int, typer.Option(min=2, help="Of what the model does not know.")]
Seed = Annotated[int, typer.Option(min=0, help="The same seed gives the same draws.")]
Overwrite = Annotated[bool, typer.Option("--overwrite", help="Replace files that are there already.")]

PLAN = (
    "A file (CSV, Parquet, JSON; comparison.json#A of the explorer), 'none', 'continued', 'observed', or a line "
    "such as 'chemotherapy=5@0,2,4'."
)


def load_both(model: Path, folder: Path, voice: Voice) -> tuple[Estimator, Cohort]:
    """The model and the patients that it is asked about."""
    from counterpath.cohort import read_cohort
    from counterpath.estimators import load

    fitted, cohort = load(model), read_cohort(folder)
    voice.say(f"{type(fitted).__name__} from {model}, {len(cohort):,} patients from {folder}.")
    return fitted, cohort


def as_known(cohort: Cohort, at: str | None, patients: str | None, voice: Voice, *, drop_ended: bool) -> Cohort:
    """The patients who are asked about, as they are known at that time."""
    chosen = cohort
    if patients is not None:
        known = dict(zip(cohort.patients.cast(str), cohort.patients, strict=True))
        chosen = cohort[[known.get(name, name) for name in (part.strip() for part in patients.split(","))]]
    time: Any = chosen.history_end if at is None else read_time(at)
    known = chosen.until(time, ended="drop" if drop_ended else "error")
    if len(known) < len(chosen):
        voice.say(f"{len(chosen) - len(known):,} patients were not under observation at that time.")
    return known


def read_plan(text: str, cohort: Cohort) -> Plan:
    """From a file, from a word, or from a line of text."""
    from counterpath.cohort import Plan, PlanError

    if text == "observed":
        return Plan.observed(cohort)
    file, mark, name = text.partition(".json#")  # a plan's name may have such a sign in it
    if mark and name:
        return _compared_plan(Path(f"{file}.json"), name)
    path = Path(text)
    if path.suffix in (".json", ".csv", ".parquet"):
        if not path.exists():
            raise PlanError(f"There is no plan at {path}.")
        return Plan.from_table(path, patient=cohort.schema.patient_column)
    return Plan.from_text(text)


def _compared_plan(path: Path, name: str) -> Plan:
    """One of the plans of a comparison that the explorer saved."""
    import json

    from counterpath.cohort import Plan, PlanError
    from counterpath.cohort.findings import did_you_mean

    if not path.exists():
        raise PlanError(f"There is no comparison at {path}.")
    try:
        plans = json.loads(path.read_text(encoding="utf-8"))["plans"]
    except (json.JSONDecodeError, UnicodeDecodeError, KeyError, TypeError) as error:
        raise PlanError(f"{path} is no comparison that the explorer saved.") from error
    if name not in plans:
        raise PlanError(f"{path} has no plan {name!r}. {did_you_mean(name, plans)}")
    return Plan.from_json(json.dumps(plans[name]))


def read_horizons(text: str | None, model: Estimator) -> list[float]:
    """Numbers with commas between them; default: even steps up to the longest."""
    if text is None:
        return model.even_horizons()
    return read_numbers(text, "--horizons")


def read_numbers(text: str, option: str) -> list[float]:
    """Numbers with commas between them."""
    try:
        return [float(part) for part in text.split(",")]
    except ValueError:
        raise typer.BadParameter(f"{text!r} is no list of numbers, such as 1,3,5.", param_hint=option) from None


def read_time(text: str) -> Any:
    """A number, or a date."""
    from datetime import datetime

    try:
        return float(text)
    except ValueError:
        pass
    try:
        return datetime.fromisoformat(text)
    except ValueError:
        raise typer.BadParameter(
            f"{text!r} is neither a number nor a date such as 2024-03-01 or 2024-03-01T08:30.", param_hint="--at"
        ) from None
