"""What was left out or changed on the way in: counted, and said in words that name the patients."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Sequence

import polars as pl

from counterpath.cohort.findings import Finding, counted, name_patients
from counterpath.cohort.journal import Journal

SAYINGS = {
    "outside-stay": ("{n} of {name} {lie} outside of any stay and {were} left out.", "records"),
    "after-longest": ("{n} of {name} {come} after the longest time of a stay and {were} left out.", "records"),
    "outside-record": (
        "{n} of {name} {lie} before the first measurement or after follow-up and {were} left out.",
        "records",
    ),
    "out-of-range": ("{n} of {name} {lie} outside of its range and {were} left out.", "values"),
    "implausible": (
        "{n} of {name} {lie} outside of the plausible range and {were} kept. Look at {them}, or read with "
        "implausible='leave out'.",
        "values",
    ),
    "other-unit": ("{n} of {name} {are} in a unit that the spec leaves out.", "records"),
    "no-value": ("{n} of {name} {have} no number and {were} left out.", "records"),
    "no-time": ("{n} of {name} {have} no time and {were} left out.", "records"),
    "no-end": ("{n} of {name} {have} no end and {last} until the end of follow-up.", "starts"),
    "no-start": ("{n} of {name} {come} without a start before {them} and {were} left out.", "ends"),
    "several-starts": ("{n} of {name} {come} while several starts are open, and {close} the latest.", "ends"),
    "no-length": ("{n} of {name} {have} no length within the stay and {were} left out.", "intervals"),
    "no-number": ("{n} {begin} without a number and {were} left out.", "stays"),
    "unended": ("{n} {have} no end and {last} until the next begins, if there is one.", "stays"),
    "open-ended": ("{n} {have} no end and {last} as long as there are records, if the spec has no longest.", "stays"),
    "over": ("{n} {are} over, by end or death, when {they} {begin}: nothing that comes later counts.", "stays"),
    "no-outcome": ("{n} {have} no record of the outcome and {were} left out.", "patients"),
    "unsaid": ("{n} of {name} {have} no value and {count} as not given.", "hours"),
}
SINGULAR = {
    "are": "is",
    "begin": "begins",
    "close": "closes",
    "come": "comes",
    "count": "counts",
    "have": "has",
    "last": "lasts",
    "lie": "lies",
    "them": "it",
    "they": "it",
    "were": "was",
}


class LeftOut:
    """Of whom, by what it was and by the variable or treatment.

    Attributes:
        source: Format of the records, at the beginning of the codes of findings.
    """

    def __init__(self, source: str):
        self.source = source
        # Numbers by patient: a list of all that is left out would grow with the data set.
        self._of: dict[tuple[str, str], Counter[str]] = {}

    def add(self, what: str, name: str, patients: pl.Series) -> None:
        """One more of each of these patients, who may be there several times."""
        if not len(patients):
            return
        numbers = self._of.setdefault((what, name), Counter())
        by_patient = patients.cast(pl.String).alias("patient").to_frame().group_by("patient", maintain_order=True)
        for patient, number in by_patient.len().iter_rows():
            numbers[patient] += number

    def findings(self) -> list[Finding]:
        """All of it."""
        return [
            _finding(f"{self.source}-{what}", SAYINGS[what], name, numbers)
            for (what, name), numbers in sorted(self._of.items())
        ]

    def said(self) -> list[Finding]:
        """All of it, each with a warning."""
        journal = Journal()
        for finding in self.findings():
            journal.unasked(finding)
        return journal.findings

    def as_reasons(self) -> str:
        """All of it in one line, for an error that nothing is left."""
        return f" Of what there was: {' '.join(map(str, self.findings()))}" if self._of else ""


def those_there(source: str, asked: Sequence[str], known: Collection[str], lack: str, journal: Journal) -> list[str]:
    """Of what was asked for; the others are named.

    Args:
        source: Format of the records.
        asked: Names.
        known: Those that are there.
        lack: What is said before the names of the others.
        journal: Where it is said.
    """
    absent = [name for name in asked if name not in known]
    if absent:
        said = f"{lack} {', '.join(map(repr, absent))}."
        journal.unasked(Finding(f"{source}-absent", "warning", said, count=len(absent), columns=tuple(absent)))
    return [name for name in asked if name in known]


def _finding(code: str, saying: tuple[str, str], name: str, numbers: Counter[str]) -> Finding:
    sentence, things = saying
    total = numbers.total()
    forms = {word: single if total == 1 else word for word, single in SINGULAR.items()}
    message = sentence.format(n=counted(total, things.removesuffix("s"), things), name=name, **forms)
    return Finding(
        code,
        "warning",
        f"{message[:1].upper()}{message[1:]} ({name_patients(numbers)})",
        count=total,
        patients=tuple(numbers),
        columns=(name,) if name else (),
    )
