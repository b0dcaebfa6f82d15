"""Text that is no category: notes, dates, decimal commas, and names that are meant to be the same."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING

import numpy as np
import polars as pl

from counterpath.cohort.findings import SHOWN, Finding, counted
from counterpath.cohort.schema import Variable
from counterpath.cohort.values import DECIMAL_COMMA

if TYPE_CHECKING:
    from counterpath.cohort.cohort import Cohort

MANY_LEVELS = 20  # up to here a category is a category, however few its values are
LEVELS_PER_VALUE = 0.1  # above, a level is seen fewer than ten times on average
DATE = r"(\d{4}([-/.])\d{1,2}\2\d{1,2}|\d{1,2}([-/.])\d{1,2}\3(\d{4}|\d{2}))([T ].*)?"


def odd_levels(variable: Variable, seen: np.ndarray) -> list[Finding]:
    """What is odd about the levels of a categorical variable that occur.

    Args:
        variable: It has levels.
        seen: Level numbers, without gaps.
    """
    levels = [variable.levels[code] for code in np.unique(seen).astype(int)]
    name = (variable.name,)
    if _most_match(DATE, levels):
        message = f"{variable.name!r} is text with dates (such as {levels[0]!r}), and each becomes a category."
        remedy = "Write a number that is known then, such as the age, or leave it out."
        return [Finding("dates_as_text", "warning", message, remedy, len(seen), columns=name)]
    if _most_match(DECIMAL_COMMA, levels):
        message = f"{variable.name!r} is text with decimal commas (such as {levels[0]!r}), and each becomes a category."
        return [Finding("decimal_commas", "warning", message, "Write decimals with a point.", len(seen), columns=name)]
    found = []
    alike = near_equal(levels)
    if alike:
        message = f"{variable.name!r} has levels that differ only in case or white space: {_named(alike)}."
        found.append(Finding("near_equal_levels", "warning", message, "Write them alike.", len(alike), columns=name))
    if len(levels) > max(MANY_LEVELS, LEVELS_PER_VALUE * len(seen)):
        message = (
            f"{variable.name!r} has {counted(len(levels), 'level')} in {counted(len(seen), 'value')}: "
            "too many to be categories."
        )
        remedy = "Leave it out if it is a note or an identifier, or join levels."
        found.append(Finding("many_levels", "warning", message, remedy, len(levels), columns=name))
    return found


def near_equal_names(cohort: Cohort) -> list[Finding]:
    """Treatments, and patients, whose names differ only in case or white space."""
    found = []
    treatments = near_equal(treatment.name for treatment in cohort.schema.treatments)
    if treatments:
        message = f"Treatments whose names differ only in case or white space: {_named(treatments)}."
        names = tuple(name for group in treatments for name in group)
        remedy = "Write them alike if they are one treatment."
        found.append(Finding("near_equal_treatments", "warning", message, remedy, len(treatments), columns=names))
    patients = near_equal(cohort.patients) if cohort.patients.dtype == pl.String else []
    if patients:
        message = f"Patients whose ids differ only in case or white space: {_named(patients)}."
        ids = tuple(patient for group in patients for patient in group)
        remedy = "Write them alike if they are one patient."
        found.append(Finding("near_equal_patients", "warning", message, remedy, len(patients), ids))
    return found


def near_equal(names: Iterable[str]) -> list[list[str]]:
    """Groups of different names that are equal up to case and white space."""
    groups: dict[str, list[str]] = {}
    for name in dict.fromkeys(names):
        groups.setdefault(" ".join(name.split()).casefold(), []).append(name)
    return [group for group in groups.values() if len(group) > 1]


def _most_match(pattern: str, levels: Sequence[str]) -> bool:
    return sum(re.fullmatch(pattern, level.strip()) is not None for level in levels) > len(levels) / 2


def _named(groups: list[list[str]]) -> str:
    shown = "; ".join(", ".join(repr(name) for name in group) for group in groups[:SHOWN])
    return f"{shown} and {counted(len(groups) - SHOWN, 'other group')}" if len(groups) > SHOWN else shown
