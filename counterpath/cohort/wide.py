"""One wide frame, a row per patient and time, becomes the three tables that a cohort is read from."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import polars as pl

from counterpath.cohort.clock import times_from_text
from counterpath.cohort.declared import DeclaredVariable
from counterpath.cohort.findings import CohortError, Finding, counted, name_patients
from counterpath.cohort.frames import require_columns
from counterpath.cohort.ids import read_ids
from counterpath.cohort.tables import Tables
from counterpath.cohort.values import read_variable


def tables_from_frame(
    frame: pl.DataFrame,
    *,
    patient: str,
    time: str,
    outcomes: Sequence[str],
    covariates: Sequence[str],
    treatments: Mapping[str, str],
    infusions: Mapping[str, str],
    static: Sequence[str],
    changes_only: Sequence[str],
) -> tuple[Tables, Finding | None]:
    """Observations, treatments and static covariates apart.

    Args:
        frame: The user's frame.
        patient: Column with the patient.
        time: Column with the time.
        outcomes: Columns with outcomes.
        covariates: Columns with covariates that change.
        treatments: Name of each treatment given as single doses, and its column (empty or 0: nothing given).
        infusions: Name of each treatment given at a rate, and its column. The rate holds until the next row with a
            rate; in the last row it is open.
        static: Columns that do not change within a patient.
        changes_only: Columns whose repeated value is the old one carried forward, not a new measurement.
    """
    wanted = [patient, time, *outcomes, *covariates, *treatments.values(), *infusions.values(), *static]
    require_columns(frame, wanted, "wide")
    for column in wanted:
        if wanted.count(column) > 1:
            raise CohortError(f"{column!r} is named twice. Give each column one role.")
    for column in (patient, time):
        if column in ("treatment", "dose", "rate", "stop"):
            raise CohortError(f"A patient or time column named {column!r} would be taken for a treatment's. Rename it.")
    ids = read_ids(frame, patient, "wide")
    if frame[time].dtype == pl.String:  # '9' comes before '10'
        frame = frame.with_columns(times_from_text(frame[time], ids, "wide").alias(time))
    amounts = [*treatments.values(), *infusions.values()]
    frame = frame.with_columns(
        pl.Series(c, read_variable(frame[c], DeclaredVariable(name=c), ids, numeric=True)[1]).fill_nan(None)
        for c in amounts
    )
    unknown = [column for column in changes_only if column not in (*outcomes, *covariates)]
    if unknown:
        raise CohortError(f"changes_only names {unknown[0]!r}, which is no outcome and no covariate.")
    # A row that only records a treatment is no visit.
    visits = frame
    if amounts:
        given_here = pl.any_horizontal(pl.col(c).is_not_null() for c in amounts)
        seen_here = pl.any_horizontal(pl.col(c).is_not_null() for c in (*outcomes, *covariates))
        visits = frame.filter(seen_here | ~given_here)
    observations = visits.select(patient, time, *outcomes, *covariates)
    left_out = None
    if changes_only:
        observations, left_out = _changes_only(observations, patient, time, changes_only)
    given = [_doses(frame, patient, time, name, column) for name, column in treatments.items()]
    given += [_rates(frame, patient, time, name, column) for name, column in infusions.items()]
    return (
        Tables(
            observations,
            pl.concat(given, how="diagonal") if given else None,
            _one_row_per_patient(frame, patient, static) if static else None,
        ),
        left_out,
    )


def _doses(frame: pl.DataFrame, patient: str, time: str, name: str, column: str) -> pl.DataFrame:
    rows = frame.filter(pl.col(column) != 0)
    return rows.select(patient, time, treatment=pl.lit(name), dose=pl.col(column))


def _rates(frame: pl.DataFrame, patient: str, time: str, name: str, column: str) -> pl.DataFrame:
    """Each change of the rate starts an interval, which ends at the next change."""
    rows = frame.filter(pl.col(column).is_not_null()).sort(patient, time, maintain_order=True)
    rows = rows.select(patient, time, rate=pl.col(column))
    rows = rows.filter((pl.col("rate") != pl.col("rate").shift().over(patient)).fill_null(True))
    rows = rows.with_columns(stop=pl.col(time).shift(-1).over(patient), treatment=pl.lit(name))
    return rows.filter(pl.col("rate") != 0)


def _changes_only(
    observations: pl.DataFrame, patient: str, time: str, columns: Sequence[str]
) -> tuple[pl.DataFrame, Finding]:
    """A value stays only where it differs from the patient's last one."""
    rows = observations.sort(patient, time, maintain_order=True)
    last = [pl.col(c).forward_fill().shift().over(patient).alias(f"_last_{i}") for i, c in enumerate(columns)]
    repeats = [(pl.col(c) == pl.col(f"_last_{i}")).fill_null(False) for i, c in enumerate(columns)]
    marked = rows.with_columns(last)
    count = int(sum(marked.select(repeat.sum()).item() for repeat in repeats))
    kept = marked.with_columns(
        pl.when(~repeat).then(pl.col(c)).alias(c) for c, repeat in zip(columns, repeats, strict=True)
    )
    message = f"{counted(count, 'repeated value')} of {', '.join(columns)} taken as carried forward, not as measured."
    finding = Finding("carried_forward", "note", message, count=count, columns=tuple(columns))
    variables = [c for c in observations.columns if c not in (patient, time)]
    seen = [
        frame.select(pl.any_horizontal(pl.col(c).is_not_null() for c in variables)).to_series()
        for frame in (rows, kept)
    ]
    return kept.filter(seen[1] | ~seen[0]).select(observations.columns), finding


def _one_row_per_patient(frame: pl.DataFrame, patient: str, static: Sequence[str]) -> pl.DataFrame:
    for column in static:
        several = frame.group_by(patient, maintain_order=True).agg(pl.col(column).drop_nulls().n_unique())
        changing = several.filter(pl.col(column) > 1)[patient]
        if len(changing):
            raise CohortError(
                [
                    Finding(
                        "static_changes",
                        "error",
                        f"{column!r} changes within {name_patients(changing)}.",
                        f"Make it a covariate: covariates=[{column!r}, …].",
                        len(changing),
                        tuple(changing),
                        (column,),
                    )
                ]
            )
    return frame.group_by(patient, maintain_order=True).agg(pl.col(c).drop_nulls().first() for c in static)
