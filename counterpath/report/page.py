"""The page itself."""

from __future__ import annotations

import platform
from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from importlib.metadata import version
from importlib.resources import files
from os import PathLike
from pathlib import Path
from typing import Any

import jinja2
import numpy as np
import polars as pl
from matplotlib.figure import Figure

from counterpath._version import __version__
from counterpath.cohort import CohortError, Plan
from counterpath.cohort.findings import counted
from counterpath.cohort.frames import to_polars
from counterpath.estimators import Estimator
from counterpath.figures.training import draw_training
from counterpath.predictive import Direction, Evaluation, Support
from counterpath.predictive.effect import ASSUMPTIONS
from counterpath.report.examples import Examples, ask_examples, usual_plans
from counterpath.report.pictures import picture
from counterpath.report.tables import (
    cohort_table,
    effect_table,
    findings_table,
    models_table,
    number,
    scores_table,
    support_table,
)

TEMPLATE = "page.html"
HANDED_OVER = 0.1  # share of forecasts, for the sentence about deferral
LIBRARIES = ("jax", "equinox", "numpy", "polars")


def write_report(
    evaluation: Evaluation,
    path: str | PathLike[str],
    *,
    plans: Mapping[str, Plan] | None = None,
    better: Direction | None = None,
    by: str | None = None,
    at: Any = None,
    others: Sequence[Evaluation] = (),
    progress: bool = True,
) -> Path:
    """Write one self-contained page: verdicts first, then calibration, examples, effects, support, data and model.

    Args:
        evaluation: Of `model.evaluate`, which knows the model and the patients.
        path: Of the page, such as `report.html`.
        plans: Two, by name; the effect is of the first against the second. Default: the first treatment now, and none.
        better: Whether `lower` or `higher` outcomes are; adds probabilities of benefit.
        by: A static covariate: effects in its groups too.
        at: When the two plans are asked about, as for `cohort.until`; default: at the end of each record.
        others: Evaluations of other models on the same patients, to stand beside.
        progress: Show it, where it takes long.
    """
    model, cohort = evaluation.estimator, evaluation.cohort
    if not isinstance(model, Estimator) or cohort is None:
        raise CohortError("This evaluation does not know its model and patients. Use the one that model.evaluate gave.")
    evaluation, others = evaluation.unscaled(), [other.unscaled() for other in others]
    for other in others:
        if [score.bin for score in other.scores] != [score.bin for score in evaluation.scores]:
            raise CohortError(f"{other.model} was judged at other times, so it cannot stand beside {evaluation.model}.")
    checked = cohort.check()
    asked = plans if plans is not None else usual_plans(cohort.schema) if cohort.schema.treatments else None
    examples = None if asked is None else ask_examples(model, cohort, evaluation.outcome.name, asked, at, progress)
    history = getattr(model, "history_", None)
    findings, _ = to_polars(checked.to_frame(), "findings") if checked.findings else (None, None)
    text = _template().render(
        evaluation=evaluation,
        cohort=cohort,
        model=model,
        written=datetime.now(UTC),
        says=_sentences(evaluation, examples, checked.verdict),
        well=evaluation.verdict.endswith(": well calibrated"),
        calibration=picture(evaluation.plot(titled=False), "Coverage, spread, sharpness and deferral of the forecasts"),
        scores=scores_table(evaluation),
        models=models_table([evaluation, *others]) if others else None,
        examples=examples,
        effects=None if examples is None else effect_table(examples.effect, by, better),
        effect_picture=None
        if examples is None
        else picture(examples.effect.plot(better=better, titled=False), "Expected effects on these patients, in order"),
        better=better,
        support=_support(examples, cohort.schema.time_unit),
        described=cohort_table(cohort),
        verdict_of_data=checked.verdict,
        findings=None if findings is None else findings_table(findings),
        training=None if history is None else picture(_training(model, history), "Scores by epoch of training"),
        longest=float(evaluation.points.elapsed.max()),
        settings=getattr(model, "parameters", {}),
        assumptions=ASSUMPTIONS,
        versions={"counterpath": __version__, "Python": platform.python_version()}
        | {name: version(name) for name in LIBRARIES},
    )
    path = Path(path)
    path.parent.mkdir(parents=True, exist_ok=True)
    new = path.with_name(f".{path.name}.new")
    try:
        new.write_text(text, encoding="utf-8")
        new.replace(path)
    finally:
        new.unlink(missing_ok=True)
    return path


def _training(model: Estimator, history: pl.DataFrame) -> Figure:
    settings = getattr(getattr(model, "model", model), "training", None)  # of each member, for an ensemble
    return draw_training(history, counts_from=0.0 if settings is None else settings.kl_ramp)


def _template() -> jinja2.Template:
    source = files("counterpath.report").joinpath(TEMPLATE).read_text(encoding="utf-8")
    made = jinja2.Environment(autoescape=True, undefined=jinja2.StrictUndefined, trim_blocks=True, lstrip_blocks=True)
    return made.from_string(source)


def _sentences(evaluation: Evaluation, examples: Examples | None, of_data: str) -> list[tuple[str, str]]:
    """What a reader in a hurry should take along."""
    overall, unit = evaluation.overall, evaluation.outcome.unit or ""
    curve = evaluation.deferral
    left = float(np.interp(HANDED_OVER, curve.shares, curve.error))
    gains = "lowers" if left < 1 else "does not lower"
    by_how_much = f" by {1 - left:.0%}" if left < 1 else ""
    found = [
        ("Calibration", f"{evaluation.verdict}."),
        (
            "Closeness",
            f"The median forecast missed the outcome by {number(overall.mae.value)} {unit}".rstrip()
            + f" on average; the 95% interval was {number(overall.width[0.95])} {unit}".rstrip()
            + " wide for the median forecast.",
        ),
        (
            "Knowing its limits",
            f"Handing the least certain {HANDED_OVER:.0%} of forecasts to somebody else {gains} the mean error of the "
            f"rest{by_how_much}.",
        ),
    ]
    if examples is not None:
        known = zip(examples.names, examples.predictions, strict=True)
        found.append(("Support", " ".join(_supported(name, p.support) for name, p in known if p.support is not None)))
    found.append(("Data", of_data))
    return [(what, sentence) for what, sentence in found if sentence]


def _supported(name: str, support: Support) -> str:
    unseen, patients = int(support.never_observed.any(axis=1).sum()), len(support.windows)
    if not unseen:
        return f"“{name}”: training holds comparable cases for all {counted(patients, 'patient')} asked about."
    return f"“{name}”: never observed for {unseen:,} of {patients:,} patients asked about: extrapolated."


def _support(examples: Examples | None, time_unit: str) -> Any:
    if examples is None or any(prediction.support is None for prediction in examples.predictions):
        return None
    named = {name: p.support for name, p in zip(examples.names, examples.predictions, strict=True) if p.support}
    return support_table(named, examples.predictions[0].horizons.tolist(), time_unit)
