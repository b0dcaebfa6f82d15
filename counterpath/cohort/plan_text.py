"""A plan in one line of text, for a shell or a text field: `chemotherapy=5@0,2,4 + oxygen=2@0-6 + continued`."""

from __future__ import annotations

from counterpath.cohort.findings import PlanError
from counterpath.cohort.plan import Plan
from counterpath.cohort.units import TimeUnit

FORM = (
    "Write treatment@0,2,4 for doses at these times from now, treatment=5@0 for a dose of 5, treatment=0.1@0-6 for a "
    "rate of 0.1 until 6, treatment@0- for good; 'none', 'continued'; and + between parts."
)


def read_plan_text(text: str, time_unit: TimeUnit | None = None) -> Plan:
    """The plan that a line of text describes; see `FORM`.

    Args:
        text: Of one line.
        time_unit: Of its times; default: the cohort's.
    """
    total = Plan.none()
    for part in (part.strip() for part in text.split(" + ")):
        total = total + _part(part, time_unit)
    return total


def _part(part: str, time_unit: TimeUnit | None) -> Plan:
    if part in ("none", "continued"):
        return Plan.none() if part == "none" else Plan.continued()
    # From the right: a treatment's name may hold anything.
    what, at, times = part.rpartition("@")
    name, equals, amount = what.rpartition("=")
    if not at or not times or not (name if equals else what):
        raise PlanError(f"{part!r} is not a part of a plan. {FORM}")
    if not equals:
        name, amount = what, ""
    given = _number(amount, part) if equals else None
    start, dash, stop = times.partition("-")
    if dash:
        until = _number(stop, part) if stop else None
        return Plan.infusion(name, _number(start, part), until, given, time_unit=time_unit)
    total = Plan.none()
    for time in times.split(","):
        total = total + Plan.dose(name, _number(time, part), given, time_unit=time_unit)
    return total


def _number(text: str, part: str) -> float:
    try:
        return float(text)
    except ValueError:
        raise PlanError(f"{text!r} in {part!r} is not a number. {FORM}") from None
