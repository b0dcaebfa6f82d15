"""A verdict on a cohort before any training: what is odd, whom it concerns, and what to do."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
import polars as pl

from counterpath.cohort.findings import CohortError, Finding, counted, name_patients
from counterpath.cohort.frames import FrameKind, to_kind
from counterpath.cohort.grid import choose_grid, share_in_shared_cells, window_starts
from counterpath.cohort.schema import Variable
from counterpath.cohort.units_mixed import looks_like_two_units

if TYPE_CHECKING:
    from counterpath.cohort.cohort import Cohort

NEAR = 0.01  # records closer than this share of the median gap are nearly coincident
EMPTY = 0.01  # a covariate recorded for fewer patients than this is nearly empty
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
    outcomes = cohort.records.values[:, : len(cohort.schema.outcomes)]
    has = np.bincount(cohort.records.patient_of_row[~np.isnan(outcomes).all(axis=1)], minlength=len(cohort)) > 0
    names = tuple(v.name for v in cohort.schema.outcomes)
    if not has.any():
        return [Finding("no_outcome", "error", "No outcome was recorded at all.", "Name another.", columns=names)]
    return _of_patients(
        cohort,
        ~has,
        "patient_without_outcome",
        "without any outcome",
        "They teach a model nothing.",
        columns=names,
    )


def _single_records(cohort: Cohort) -> list[Finding]:
    alone = cohort.records.per_patient == 1
    remedy = "They have a history but no later outcome."
    return _of_patients(cohort, alone, "single_record", "with a single record", remedy)


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
        f"{counted(count, 'record')} follow another within {NEAR * typical:.3g} {cohort.schema.time_unit}s "
        f"({name_patients(who)}), while the usual gap is {typical:.3g}."
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


def _after_follow_up(cohort: Cohort) -> list[Finding]:
    events = cohort.events
    end = cohort.follow_up_end[events.patient_of_row]
    late = (events.start >= end) | (np.isfinite(events.stop) & (events.stop > end))
    if not late.any():
        return []
    who = cohort.patients.gather(np.unique(events.patient_of_row[late]))
    names = tuple(cohort.schema.treatments[i].name for i in np.unique(events.treatment[late]))
    message = (
        f"{counted(int(late.sum()), 'treatment')} ({', '.join(names)}) given or running after the end of follow-up "
        f"({name_patients(who)})."
    )
    remedy = "Mend the dates, or pass after_follow_up='drop'."
    return [Finding("treatment_after_follow_up", "warning", message, remedy, int(late.sum()), tuple(who), names)]


def _odd_variables(cohort: Cohort) -> list[Finding]:
    found = []
    columns = [
        (v, cohort.records.values[:, j], cohort.records.patient_of_row) for j, v in enumerate(cohort.schema.variables)
    ]
    columns += [(v, cohort.static_values[:, j], np.arange(len(cohort))) for j, v in enumerate(cohort.schema.static)]
    for variable, values, owner in columns:
        found += _odd_variable(variable, values, owner, len(cohort))
    return found


def _odd_variable(variable: Variable, values: np.ndarray, owner: np.ndarray, patients: int) -> list[Finding]:
    present = ~np.isnan(values)
    seen, name = values[present], (variable.name,)
    share = np.count_nonzero(np.bincount(owner[present], minlength=patients)) / max(patients, 1)
    if share < EMPTY:
        message = f"{variable.name!r} was recorded for {share:.1%} of patients ({counted(len(seen), 'time')})."
        return [Finding("nearly_empty", "warning", message, "Leave it out, or check its name.", columns=name)]
    if len(seen) > 1 and seen.min() == seen.max():
        value = variable.levels[int(seen[0])] if variable.kind == "categorical" else f"{seen[0]:g}"
        message = f"{variable.name!r} is always {value}."
        return [
            Finding(
                "constant",
                "warning",
                message,
                "Leave it out: it tells patients apart in no way.",
                columns=name,
            )
        ]
    two = looks_like_two_units(seen) if variable.kind == "numeric" else None
    if two is not None:
        low, high, number = two
        message = f"{variable.name!r} looks like two units: values near {low:.3g}, and {number:,} near {high:.3g}."
        return [
            Finding(
                "mixed_units",
                "warning",
                message,
                "Convert to one unit.",
                min(number, len(seen) - number),
                columns=name,
            )
        ]
    return []


def _treatment_patterns(cohort: Cohort) -> list[Finding]:
    if not cohort.schema.treatments:
        message = "There is no treatment that changes over time, so effects of plans cannot be asked."
        return [Finding("no_treatment", "note", message, "Predictions of the outcome can.")]
    found = []
    for code, treatment in enumerate(cohort.schema.treatments):
        owner = cohort.events.patient_of_row[cohort.events.treatment == code]
        treated = np.count_nonzero(np.bincount(owner, minlength=len(cohort)))
        name = (treatment.name,)
        if treated == 0:
            message = f"{treatment.name!r} was never given."
            found.append(Finding("never_given", "warning", message, "Nothing can be learnt about it.", columns=name))
        elif treated == len(cohort):
            message = f"Every patient received {treatment.name!r}."
            remedy = "What would have happened without it is seen only between doses."
            found.append(Finding("always_given", "warning", message, remedy, columns=name))
    return found


def _of_patients(
    cohort: Cohort, which: np.ndarray, code: str, what: str, remedy: str, columns: tuple[str, ...] = ()
) -> list[Finding]:
    if not which.any():
        return []
    who = cohort.patients.filter(pl.Series(which))
    message = f"{counted(len(who), 'patient')} {what} ({name_patients(who)})."
    return [Finding(code, "warning", message, remedy, len(who), tuple(who), columns)]


CHECKS: tuple[Callable[[Any], list[Finding]], ...] = (
    _outcomes_missing,
    _single_records,
    _near_coincident,
    _long_gaps,
    _after_follow_up,
    _odd_variables,
    _treatment_patterns,
)
