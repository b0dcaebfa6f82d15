"""What is odd about a variable: hardly recorded, always the same, in two units, or text that is no category."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from counterpath.cohort.findings import Finding, counted
from counterpath.cohort.odd_text import odd_levels
from counterpath.cohort.schema import Variable
from counterpath.cohort.units_mixed import looks_like_two_units

if TYPE_CHECKING:
    from counterpath.cohort.cohort import Cohort

EMPTY = 0.01  # a variable recorded for fewer patients than this is nearly empty
FEW = 5  # and so is one with fewer values than this,
MANY = 10  # where there are this many times more records (static: patients); a small cohort is just small


def odd_variables(cohort: Cohort) -> list[Finding]:
    """Nearly empty, constant, in two units, or text that is no category: one line per variable and reason."""
    found = []
    columns = [
        (v, cohort.records.values[:, j], cohort.records.patient_of_row) for j, v in enumerate(cohort.schema.variables)
    ]
    columns += [(v, cohort.static_values[:, j], np.arange(len(cohort))) for j, v in enumerate(cohort.schema.static)]
    outcomes = {v.name for v in cohort.schema.outcomes}
    for variable, values, owner in columns:
        if variable.name in outcomes and np.isnan(values).all():
            continue  # an error of its own
        found += _odd_variable(variable, values, owner, len(cohort))
    return found


def _odd_variable(variable: Variable, values: np.ndarray, owner: np.ndarray, patients: int) -> list[Finding]:
    present = ~np.isnan(values)
    seen, name = values[present], (variable.name,)
    share = np.count_nonzero(np.bincount(owner[present], minlength=patients)) / max(patients, 1)
    if share < EMPTY or (len(seen) < FEW and len(values) >= MANY * FEW):
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
    if variable.kind == "categorical":
        return odd_levels(variable, seen)
    two = looks_like_two_units(seen)
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
