"""What is wrong with a table, in words that name the patient, the column and the remedy."""

from __future__ import annotations

import difflib
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any, Literal

Severity = Literal["error", "warning", "note"]

SHOWN = 3  # patients named in a message; a finding itself keeps them all


@dataclass(frozen=True)
class Finding:
    """One thing that a person should know about their tables.

    Attributes:
        code: A short stable name, for filters and tests.
        severity: `error` stops, `warning` is counted, `note` informs.
        message: What was found, and where.
        remedy: What to do about it.
        count: How many rows, patients or variables are concerned.
        patients: The patients concerned, where patients are.
        columns: The columns or variables concerned.
    """

    code: str
    severity: Severity
    message: str
    remedy: str = ""
    count: int = 1
    patients: tuple[Any, ...] = ()
    columns: tuple[str, ...] = ()

    def __str__(self) -> str:
        return f"{self.message} {self.remedy}".strip()


class CohortError(ValueError):
    """Tables that cannot become a cohort. `findings` lists every reason."""

    def __init__(self, findings: Sequence[Finding] | str, *, code: str = "input"):
        if isinstance(findings, str):
            findings = [Finding(code, "error", findings)]
        self.findings = tuple(findings)
        lines = [str(finding) for finding in self.findings]
        super().__init__(lines[0] if len(lines) == 1 else "\n".join(f"{i}. {x}" for i, x in enumerate(lines, 1)))


class CohortWarning(UserWarning):
    """Something in the tables that was kept, changed or left out, and counted."""


class TimeZoneWarning(CohortWarning):
    """Times in several zones were brought to one."""


class PlanError(ValueError):
    """A plan that cannot be carried out as written."""


class PlanWarning(UserWarning):
    """Something in a plan that may not be meant."""


class UnseenDoseWarning(PlanWarning):
    """A planned dose or rate lies outside what the cohort ever received."""


def name_patients(patients: Iterable[Any], *, capital: bool = False) -> str:
    """'patient 17', or 'patients 17, 20, 31 and 5 more'; `capital` to open a sentence."""
    patients = list(dict.fromkeys(patients))
    shown = ", ".join(str(patient) for patient in patients[:SHOWN])
    more = f" and {len(patients) - SHOWN} more" if len(patients) > SHOWN else ""
    return f"{'P' if capital else 'p'}atient{'s' if len(patients) > 1 else ''} {shown}{more}"


def counted(number: int, thing: str, things: str = "") -> str:
    """'1 row', '1,204 rows'."""
    return f"{number:,} {thing if number == 1 else things or thing + 's'}"


def did_you_mean(word: str, known: Iterable[str]) -> str:
    """The remedy for a name that is not there: the nearest that is, or all of them."""
    known = list(known)
    near = difflib.get_close_matches(word, known, n=1)
    if near:
        return f"Did you mean {near[0]!r}?"
    return f"There is {', '.join(repr(name) for name in known)}." if known else "There are none."
