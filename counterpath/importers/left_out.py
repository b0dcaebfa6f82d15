"""What was left out or changed on the way in: counted, and said in words that name the patients."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from typing import Any

from counterpath.cohort.findings import Finding, counted, name_patients
from counterpath.cohort.journal import Journal

SAYINGS = {
    "outside-stay": ("{n} of {name} {lie} outside of any stay and {were} left out.", "records"),
    "out-of-range": ("{n} of {name} {lie} outside of its range and {were} left out.", "values"),
    "no-value": ("{n} of {name} {have} no number and {were} left out.", "records"),
    "no-time": ("{n} of {name} {have} no time and {were} left out.", "records"),
    "no-end": ("{n} of {name} {have} no end and {last} until the end of follow-up.", "starts"),
    "no-start": ("{n} of {name} {come} without a start before {them} and {were} left out.", "ends"),
    "no-length": ("{n} of {name} {end} when {they} {begin} and {were} left out.", "intervals"),
    "no-outcome": ("{n} {have} no record of the outcome and {were} left out.", "patients"),
}


class LeftOut:
    """Of whom, by what it was and by the variable or treatment.

    Attributes:
        source: Format of the records, at the beginning of the codes of findings.
    """

    def __init__(self, source: str):
        self.source = source
        self._of: dict[tuple[str, str], list[Any]] = {}

    def add(self, what: str, name: str, patients: list[Any]) -> None:
        """One more of each of these patients, who may be there several times."""
        if patients:
            self._of.setdefault((what, name), []).extend(patients)

    def said(self) -> list[Finding]:
        """All of it, each with a warning."""
        journal = Journal()
        for (what, name), patients in sorted(self._of.items()):
            journal.unasked(_finding(f"{self.source}-{what}", SAYINGS[what], name, patients))
        return journal.findings


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


def _finding(code: str, saying: tuple[str, str], name: str, patients: list[Any]) -> Finding:
    sentence, things = saying
    one = len(patients) == 1
    words = {"lie": "lies", "have": "has", "come": "comes", "end": "ends", "last": "lasts", "begin": "begins"}
    forms = {word: single if one else word for word, single in words.items()}
    forms |= {"were": "was" if one else "were", "them": "it" if one else "them", "they": "it" if one else "they"}
    message = sentence.format(n=counted(len(patients), things.removesuffix("s"), things), name=name, **forms)
    return Finding(
        code,
        "warning",
        f"{message[:1].upper()}{message[1:]} ({name_patients(patients)})",
        count=len(patients),
        patients=tuple(dict.fromkeys(patients)),
        columns=(name,) if name else (),
    )
