"""From a MEDS data set to a cohort."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from os import PathLike
from pathlib import Path
from typing import Any

import polars as pl
from rich.console import Console
from rich.progress import Progress

from counterpath.cohort import Cohort
from counterpath.cohort.findings import CohortError
from counterpath.cohort.journal import Journal
from counterpath.cohort.schema import FOLLOW_UP_END
from counterpath.importers.left_out import LeftOut, those_there
from counterpath.importers.meds_intervals import with_amounts
from counterpath.importers.meds_shards import find_shards, read_shards, split_subjects
from counterpath.importers.meds_spec import BEGIN, MedsSpec, read_spec
from counterpath.importers.meds_stays import BETWEEN
from counterpath.importers.meds_tables import Extraction


def read_meds(
    folder: str | PathLike[str],
    spec: MedsSpec | Mapping[str, Any] | str | PathLike[str],
    *,
    split: str | None = None,
    progress: bool = True,
) -> Cohort:
    """Patients of a MEDS data set, file by file, so that the data may be larger than memory.

    A patient is a subject, or one stay of a subject where the spec describes stays; its id is then `subject/stay`.

    Args:
        folder: That holds `data` and `metadata`.
        spec: What to take: a `MedsSpec`, what would make one, a TOML or JSON file, or a ready one by its name.
        split: Only subjects of this part of the data set, such as `train`.
        progress: Show it.
    """
    chosen, folder, left_out = read_spec(spec), Path(folder), LeftOut("meds")
    subjects = None if split is None else split_subjects(folder, split)
    paths, extraction = find_shards(folder), Extraction(chosen, left_out)
    with Progress(console=Console(stderr=True, quiet=not progress), transient=True) as shown:
        shards = shown.track(read_shards(paths, chosen, subjects), len(paths), description="Reading MEDS")
        parts = [extraction.tables(events) for events in shards]
    observations, treatments, static = (pl.concat(part) for part in zip(*parts, strict=True))
    _require_outcomes(observations, static, chosen, folder, left_out)
    has_outcome = _have_outcome(observations, chosen)
    left_out.add("no-outcome", "", static.filter(~has_outcome)["patient"])
    given = with_amounts(treatments.filter(has_outcome), left_out)
    return _cohort(observations.filter(has_outcome), given, static.filter(has_outcome), chosen, left_out)


def _require_outcomes(
    observations: pl.DataFrame, static: pl.DataFrame, spec: MedsSpec, folder: Path, left_out: LeftOut
) -> None:
    compare = "Compare the spec's codes with metadata/codes."
    if spec.stay is not None and not static.height:
        raise CohortError(f"No code that begins a stay was found in {folder}.{left_out.as_reasons() or f' {compare}'}")
    measured = set(observations["variable"])
    for name in spec.outcome:
        if name not in measured:
            raise CohortError(
                f"No usable record of {name} was found in {folder}.{left_out.as_reasons() or f' {compare}'}"
            )


def _have_outcome(observations: pl.DataFrame, spec: MedsSpec) -> pl.Expr:
    patients = observations.filter(pl.col("variable").is_in(list(spec.outcome)))["patient"].unique()
    return pl.col("patient").is_in(patients.implode())


def _cohort(
    observations: pl.DataFrame, treatments: pl.DataFrame, static: pl.DataFrame, spec: MedsSpec, left_out: LeftOut
) -> Cohort:
    journal, measured = Journal(), set(observations["variable"])
    covariates = those_there("meds", list(spec.covariates), measured, "Nobody has a value of", journal)
    fixed = [name for name in spec.static if static[name].null_count() < static.height]
    those_there("meds", list(spec.static), fixed, "Nobody has a value of", journal)
    drugs = those_there("meds", list(spec.treatments), set(treatments["treatment"]), "Nobody was given", journal)
    variables = {name: own for name, own in spec.measured.items() if name in measured}
    described = variables | {name: spec.treatments[name] for name in drugs}
    named: dict[str, Any] = {
        "outcome": list(spec.outcome),
        "covariates": covariates,
        "bounds": {name: own.bounds for name, own in variables.items() if own.bounds is not None},
        "units": {name: own.unit for name, own in described.items() if own.unit is not None},
    }
    cohort = Cohort.from_tables(
        observations,
        treatments if treatments.height else None,
        static,
        time_unit=spec.time_unit,
        time_zero=BEGIN,
        stay_separator=BETWEEN if spec.stay is not None else None,
        follow_up_end=FOLLOW_UP_END,
        duplicates="mean",
        merge_within=spec.merge_within,
        **named,
    )
    return replace(cohort, repairs=(*left_out.said(), *journal.findings, *cohort.repairs))
