"""A verdict on a cohort before any training: what is odd, whom it concerns, and what to do."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
import polars as pl

from counterpath.cohort.checks_treatments import (
    amounts_in_two_units,
    repeated_doses,
    treatment_patterns,
    treatments_after_follow_up,
)
from counterpath.cohort.checks_variables import odd_variables
from counterpath.cohort.findings import CohortError, Finding, counted, name_patients
from counterpath.cohort.frames import FrameKind, to_kind
from counterpath.cohort.grid import choose_grid, share_in_shared_cells, window_starts
from counterpath.cohort.odd_text import near_equal_names

if TYPE_CHECKING:
    from counterpath.cohort.cohort import Cohort

NEAR = 0.01  # records closer than this share of the median gap are nearly coincident
FAR = 100.0  # a gap longer than this many median follow-ups is probably a wrong date
CROWDED = 0.2  # above this share of records in shared cells, a finer grid is worth a thought


@dataclass(frozen=True)
class CheckReport:
    """All findings, errors first.

    Attributes:
        findings: What was found.
        patients: Size of the cohort.
        shared_cells: Share of records that would share a solver cell.
        frames: The kind of frame that `to_frame` gives.
    """

    findings: tuple[Finding, ...]
    patients: int
    shared_cells: float
    frames: FrameKind = "polars"

    @property
    def ok(self) -> bool:
        """True where nothing stops a fit."""
        return not self.of("error")

    def of(self, severity: str) -> tuple[Finding, ...]:
        """The findings of one severity."""
        return tuple(finding for finding in self.findings if finding.severity == severity)

    @property
    def verdict(self) -> str:
        """One line in plain words."""
        errors, warnings = len(self.of("error")), len(self.of("warning"))
        if errors:
            return f"Not ready: {counted(errors, 'error')} to mend, {counted(warnings, 'warning')}."
        if warnings:
            return f"Ready to fit, with {counted(warnings, 'warning')} to read."
        return "Ready to fit."

    def __str__(self) -> str:
        lines = [self.verdict]
        lines += [f"  {finding.severity:<8} {finding.message}" + _remedy(finding) for finding in self.findings]
        return "\n".join(lines)

    def to_frame(self) -> Any:
        """A line per finding."""
        columns = {
            "severity": [f.severity for f in self.findings],
            "code": [f.code for f in self.findings],
            "count": [f.count for f in self.findings],
            "message": [f.message for f in self.findings],
            "remedy": [f.remedy for f in self.findings],
        }
        types = {
            "severity": pl.String,
            "code": pl.String,
            "count": pl.Int64,
            "message": pl.String,
            "remedy": pl.String,
        }
        return to_kind(pl.DataFrame(columns, schema=types), self.frames)

    def raise_for_errors(self) -> None:
        """A `CohortError` with every error, if there is one."""
        if not self.ok:
            raise CohortError(self.of("error"))


def _remedy(finding: Finding) -> str:
    return f"\n{'':<11}→ {finding.remedy}" if finding.remedy else ""


def check_cohort(cohort: Cohort, *, lookback: float | None = None, cells: int = 64) -> CheckReport:
    """Look at a cohort as a careful colleague would.

    Args:
        cohort: The patients.
        lookback: The window that a model would see; default: the longest history.
        cells: The number of solver cells that a model would have.
    """
    found: list[Finding] = list(cohort.repairs)
    for check in CHECKS:
        found += check(cohort)
    grid = choose_grid(cohort.records, cohort.history_end, lookback=lookback, cells=cells)
    shared = share_in_shared_cells(cohort.records, cohort.history_end, grid)
    found.append(_crowded_cells(shared, grid.cells, grid.lookback, cohort.schema.time_unit))
    order = {"error": 0, "warning": 1, "note": 2}
    return CheckReport(tuple(sorted(found, key=lambda f: order[f.severity])), len(cohort), shared, cohort.frames)


def _crowded_cells(shared: float, cells: int, lookback: float, unit: str) -> Finding:
    message = f"{shared:.0%} of records would share one of {cells} solver cells over {lookback:.4g} {unit}s."
    if shared <= CROWDED:
        return Finding("shared_cells", "note", message)
    return Finding("shared_cells", "warning", message, "Use more cells, or a shorter lookback.")


def _outcomes_missing(cohort: Cohort) -> list[Finding]:
    recorded = ~np.isnan(cohort.records.values[:, : len(cohort.schema.outcomes)])
    names = tuple(v.name for v in cohort.schema.outcomes)
    found = [
        Finding(
            "no_outcome",
            "error",
            f"Outcome {name!r} was never recorded.",
            "Leave it out, or name another outcome.",
            columns=(name,),
        )
        for j, name in enumerate(names)
        if not recorded[:, j].any()
    ]
    if len(found) == len(names):
        return found
    has = np.bincount(cohort.records.patient_of_row[recorded.any(axis=1)], minlength=len(cohort)) > 0
    what, why = "without any outcome", "they teach a model nothing"
    remedy = "Leave them out, or look for their outcomes."
    return found + _of_patients(cohort, ~has, "patient_without_outcome", what, why, remedy, names)


def _single_records(cohort: Cohort) -> list[Finding]:
    alone = cohort.records.per_patient == 1
    what, why = "with a single record", "a history without a later outcome"
    remedy = "Leave them out, or look for their other records."
    return _of_patients(cohort, alone, "single_record", what, why, remedy)


def _near_coincident(cohort: Cohort) -> list[Finding]:
    records = cohort.records
    same = np.diff(records.patient_of_row) == 0
    gaps = np.diff(records.times)
    if not same.any():
        return []
    typical = float(np.median(gaps[same]))
    near = same & (gaps < NEAR * typical)
    if not near.any():
        return []
    who = cohort.patients.gather(np.unique(records.patient_of_row[1:][near]))
    count = int(near.sum())
    message = (
        f"{counted(count, 'record')} {'follows' if count == 1 else 'follow'} another within "
        f"{NEAR * typical:.3g} {cohort.schema.time_unit}s ({name_patients(who)}), while the usual gap is {typical:.3g}."
    )
    remedy = f"If they are one visit, pass merge_within={_rounded_up(NEAR * typical):.2g}."
    return [Finding("near_coincident", "warning", message, remedy, count, tuple(who))]


def _rounded_up(value: float) -> float:
    """To two digits, so that what lies within `value` lies within the result."""
    step = 10.0 ** (np.floor(np.log10(value)) - 1)
    return float(np.ceil(value / step) * step)


def _long_gaps(cohort: Cohort) -> list[Finding]:
    records, unit = cohort.records, cohort.schema.time_unit
    end = cohort.history_end
    length = end - window_starts(records, end, np.inf)
    typical = float(np.median(length[length > 0])) if (length > 0).any() else 0.0
    gaps = np.diff(records.times)
    far = (np.diff(records.patient_of_row) == 0) & (gaps > FAR * typical) & (typical > 0)
    if not far.any():
        return []
    who = cohort.patients.gather(np.unique(records.patient_of_row[1:][far]))
    message = (
        f"{counted(int(far.sum()), 'gap')} of up to {gaps[far].max():,.8g} {unit}s between records "
        f"({name_patients(who)}); the usual follow-up is {typical:.4g}."
    )
    return [Finding("long_gap", "warning", message, "Look for a wrong date.", int(far.sum()), tuple(who))]


def _of_patients(
    cohort: Cohort, which: np.ndarray, code: str, what: str, why: str, remedy: str, columns: tuple[str, ...] = ()
) -> list[Finding]:
    if not which.any():
        return []
    who = cohort.patients.filter(pl.Series(which))
    message = f"{counted(len(who), 'patient')} {what} ({name_patients(who)}): {why}."
    return [Finding(code, "warning", message, remedy, len(who), tuple(who), columns)]


CHECKS: tuple[Callable[[Any], list[Finding]], ...] = (
    _outcomes_missing,
    _single_records,
    _near_coincident,
    _long_gaps,
    treatments_after_follow_up,
    odd_variables,
    near_equal_names,
    treatment_patterns,
    repeated_doses,
    amounts_in_two_units,
)
