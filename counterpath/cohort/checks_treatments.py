"""What is odd about the treatments: who received them, when, twice, and in which unit."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from counterpath.cohort.findings import Finding, counted, name_patients
from counterpath.cohort.units_mixed import looks_like_two_units

if TYPE_CHECKING:
    from counterpath.cohort.cohort import Cohort


def treatments_after_follow_up(cohort: Cohort) -> list[Finding]:
    """Given, or running, when the patient was no longer under observation."""
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


def treatment_patterns(cohort: Cohort) -> list[Finding]:
    """Treatments that nobody or everybody received."""
    if not cohort.schema.treatments:
        message = (
            "There is no treatment that changes over time, so effects of plans cannot be asked; "
            "predictions of the outcome can."
        )
        return [Finding("no_treatment", "note", message, "Add a treatments table, if there were any.")]
    found = []
    for code, treatment in enumerate(cohort.schema.treatments):
        owner = cohort.events.patient_of_row[cohort.events.treatment == code]
        treated = np.count_nonzero(np.bincount(owner, minlength=len(cohort)))
        name = (treatment.name,)
        if treated == 0:
            message = f"{treatment.name!r} was never given: nothing can be learnt about it."
            remedy = "Leave it out, or check its name."
            found.append(Finding("never_given", "warning", message, remedy, columns=name))
        elif treated == len(cohort):
            message = f"Every patient received {treatment.name!r}: what happens without it is seen only between doses."
            remedy = "Compare plans that differ in when and how much, not with and without."
            found.append(Finding("always_given", "warning", message, remedy, columns=name))
    return found


def repeated_doses(cohort: Cohort) -> list[Finding]:
    """Single doses of one patient, treatment, time and amount: often a row that was exported twice."""
    events = cohort.events
    rows = np.flatnonzero(events.is_dose)
    patient, treatment, start, amount = (
        column[rows] for column in (events.patient_of_row, events.treatment, events.start, events.amount)
    )
    order = np.lexsort((amount, start, treatment, patient))
    same = np.ones(max(len(rows) - 1, 0), bool)
    for column in (patient, treatment, start, amount):
        same &= np.diff(column[order]) == 0
    if not same.any():
        return []
    again = order[1:][same]
    who = cohort.patients.gather(np.unique(patient[again]))
    names = tuple(cohort.schema.treatments[i].name for i in np.unique(treatment[again]))
    message = (
        f"{counted(len(again), 'dose')} ({', '.join(names)}) {'repeats' if len(again) == 1 else 'repeat'} another of "
        f"the same time and amount ({name_patients(who)})."
    )
    remedy = "Remove the rows if they were entered twice, or write one row with the sum."
    return [Finding("repeated_dose", "warning", message, remedy, len(again), tuple(who), names)]


def amounts_in_two_units(cohort: Cohort) -> list[Finding]:
    """Doses, or rates, of one treatment that look like two units."""
    found = []
    for code, treatment in enumerate(cohort.schema.treatments):
        mine = cohort.events.treatment == code
        for what, which in (("Doses", cohort.events.is_dose), ("Rates", ~cohort.events.is_dose)):
            amounts = cohort.events.amount[mine & which]
            two = looks_like_two_units(amounts)
            if two is not None:
                low, high, number = two
                message = (
                    f"{what} of {treatment.name!r} look like two units: near {low:.3g}, and {number:,} near {high:.3g}."
                )
                count = min(number, len(amounts) - number)
                columns = (treatment.name,)
                found.append(Finding("mixed_units", "warning", message, "Convert to one unit.", count, columns=columns))
    return found
