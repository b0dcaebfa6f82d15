"""Tables of a page: text in cells, ready to be read."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import polars as pl

from counterpath.cohort import Cohort
from counterpath.cohort.describe import describe_cohort
from counterpath.cohort.frames import to_polars
from counterpath.metrics import Estimate
from counterpath.predictive import Effect, Evaluation, Support
from counterpath.predictive.evaluation import Scores
from counterpath.predictive.points import LEVELS
from counterpath.predictive.prediction import FEW

DESCRIBED = {"name": "", "role": "role", "unit": "unit", "values": "values", "patients": "patients with it"} | {
    name: name for name in ("mean", "lowest", "median", "highest")
}


@dataclass(frozen=True)
class Table:
    """Cells as text.

    Attributes:
        heading: Of the columns.
        rows: A cell per column.
        texts: How many columns, from the first, are text; the others are numbers and stand to the right.
    """

    heading: tuple[str, ...]
    rows: tuple[tuple[str, ...], ...]
    texts: int = 1


def scores_table(evaluation: Evaluation) -> Table:
    """A row per bin of elapsed time, then all together, then each subgroup."""
    heading = ("", "patients", "outcomes", "CRPS", "error of the median")
    levels = tuple(f"inside {level:.0%}" for level in LEVELS)
    groups = [score for score in evaluation.subgroups if score.bin == "all"]
    rows = [_scores(score) for score in (*evaluation.scores, evaluation.overall, *groups)]
    return Table((*heading, *levels, "width of 95%"), tuple(rows))


def _scores(score: Scores) -> tuple[str, ...]:
    inside = [_share(score.coverage[level]) for level in LEVELS]
    return (
        score.subgroup if score.bin == "all" else score.bin,
        f"{score.patients:,}",
        f"{score.points:,}",
        _with_error(score.crps),
        _with_error(score.mae),
        *inside,
        number(score.width[0.95]),
    )


def models_table(evaluations: Sequence[Evaluation]) -> Table:
    """Models side by side: CRPS, error and coverage over all elapsed times, then the CRPS of each."""
    bins = [score.bin for score in evaluations[0].scores]
    rows = [
        (
            e.model,
            _with_error(e.overall.crps),
            _with_error(e.overall.mae),
            _share(e.overall.coverage[0.95]),
            number(e.overall.width[0.95]),
            *(number(score.crps.value) for score in e.scores),
        )
        for e in evaluations
    ]
    heading = ("model", "CRPS", "error of the median", "inside 95%", "width of 95%", *(f"CRPS, {b}" for b in bins))
    return Table(heading, tuple(rows))


def effect_table(effect: Effect, by: str | None, better: Any) -> Table:
    """Mean effects on all patients at every horizon, and on subgroups at the longest."""
    frame, _ = to_polars(effect.average(by, better=better), "effects")
    rows = []
    longest = pl.col("elapsed") == effect.horizons.max()
    for row in frame.filter((pl.col("subgroup") == "all") | longest).iter_rows(named=True):
        cells = [
            row["subgroup"],
            f"{row['patients']:,}",
            f"{row['elapsed']:g}",
            number(row["effect"]),
            f"{number(row['lower'])} to {number(row['upper'])}",
        ]
        rows.append((*cells, f"{row['probability_of_benefit']:.0%}") if better else tuple(cells))
    unit = effect.history.schema.time_unit
    heading = ("patients", "number", f"{unit}s ahead", "expected effect", "95% interval")
    return Table((*heading, "probability of benefit") if better else heading, tuple(rows))


def support_table(plans: dict[str, Support], horizons: Sequence[float], time_unit: str) -> Table:
    """How many patients have comparable training windows behind a plan."""
    rows = []
    for name, support in plans.items():
        for i, horizon in enumerate(horizons):
            windows, patients = support.windows[:, i], len(support.windows)
            counts = ((windows == 0).sum(), ((windows > 0) & (windows < FEW)).sum(), (windows >= FEW).sum())
            rows.append(
                (
                    name,
                    f"{horizon:g} {time_unit}{'' if horizon == 1 else 's'}",
                    *(f"{count:,} ({count / patients:.0%})" for count in counts),
                    f"{int(support.dose_outside[:, i].sum()):,}",
                )
            )
    heading = ("plan", "ahead", "never observed", f"fewer than {FEW} windows", f"{FEW} or more", "dose out of range")
    return Table(heading, tuple(rows), texts=2)


def cohort_table(cohort: Cohort) -> Table:
    """A row per variable and treatment."""
    frame = describe_cohort(cohort)
    rows = [tuple(_described(name, row[name]) for name in DESCRIBED) for row in frame.iter_rows(named=True)]
    return Table(tuple(DESCRIBED.values()), tuple(rows), texts=3)


def _described(name: str, value: Any) -> str:
    if value is None:
        return ""
    return f"{value:.0%}" if name == "patients" else number(value) if isinstance(value, float) else _text(value)


def _text(value: Any) -> str:
    return f"{value:,}" if isinstance(value, int) else str(value)


def findings_table(frame: pl.DataFrame) -> Table:
    """What the check found."""
    rows = tuple((row["severity"], row["message"], row["remedy"]) for row in frame.iter_rows(named=True))
    return Table(("", "found", "remedy"), rows, texts=3)


def number(value: float) -> str:
    """With three digits that count, and no exponent where it can be helped."""
    return f"{value:,.0f}" if abs(value) >= 1000 else f"{value:.3g}"


def _with_error(estimate: Estimate) -> str:
    return number(estimate.value) + (f" ± {number(estimate.standard_error)}" if estimate.patients > 1 else "")


def _share(estimate: Estimate) -> str:
    return f"{estimate.value:.1%}" + (f" ± {estimate.standard_error:.1%}" if estimate.patients > 1 else "")
