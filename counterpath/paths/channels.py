"""Which channels a path has, in order, and what each is. Names are for people; the schemes go by roles."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, replace
from typing import Literal

from counterpath.cohort.schema import Schema

Role = Literal[
    "time", "value", "slope", "since", "unseen", "timing", "answered", "response", "exposure", "drift", "effect",
    "count", "given", "dose", "infused", "rate",
]  # fmt: skip
ANSWERS: tuple[Role, ...] = ("answered", "response", "exposure")
LINEAR: tuple[Role, ...] = ("drift", "effect")


@dataclass(frozen=True)
class Channel:
    """One channel of a path.

    Attributes:
        name: Unique within a path.
        role: What it holds; `count` is of records, `given` of treatments begun. `timing` says how early in their cells
            records or doses came. Of what happened between two records of an outcome with a treatment between them,
            `response` is the outcome's change, `exposure` the time; `answered` are the treatments before the last.
            `drift` and `effect` are the patient's own linear response to time and to a treatment.
        variable: Number of the variable in the schema, for channels that come from records.
        level: Number of the level, for the value of a category.
        treatment: Number of the treatment in the schema, for channels that come from treatments.
    """

    name: str
    role: Role
    variable: int | None = None
    level: int | None = None
    treatment: int | None = None


def history_channels(schema: Schema) -> tuple[Channel, ...]:
    """Time; outcomes with all that is made of them; covariates; counts of records; treatments."""
    channels = [Channel("time", "time")]
    for j, outcome in enumerate(schema.outcomes):
        channels.append(Channel(outcome.name, "value", j))
        channels.append(Channel(f"{outcome.name}:slope", "slope", j))
        channels.append(Channel(f"{outcome.name}:since", "since", j))
        channels.append(Channel(f"{outcome.name}:unseen", "unseen", j))
        channels.append(Channel(f"{outcome.name}:timing", "timing", j))
        for code, treatment in enumerate(schema.treatments):
            name = f"{outcome.name}:{treatment.name}"
            channels += [Channel(f"{name}:{role}", role, j, treatment=code) for role in ANSWERS]
        channels.append(Channel(f"{outcome.name}:drift", "drift", j))
        for code, treatment in enumerate(schema.treatments):
            channels.append(Channel(f"{outcome.name}:{treatment.name}:effect", "effect", j, treatment=code))
    for j, covariate in enumerate(schema.covariates, start=len(schema.outcomes)):
        name = covariate.name
        if covariate.kind == "categorical":
            channels += [Channel(f"{name}={level}", "value", j, code) for code, level in enumerate(covariate.levels)]
        else:
            channels.append(Channel(name, "value", j))
    channels += [Channel(f"{variable.name}:count", "count", j) for j, variable in enumerate(schema.variables)]
    return _told_apart([*channels, *_treatment_channels(schema)])


def plan_channels(schema: Schema) -> tuple[Channel, ...]:
    """Elapsed time, and treatments."""
    return _told_apart([Channel("elapsed", "time"), *_treatment_channels(schema)])


def _treatment_channels(schema: Schema) -> list[Channel]:
    """`count` for every treatment, `dose` and `timing` for single doses, `infused` and `rate` for intervals."""
    channels = []
    for code, treatment in enumerate(schema.treatments):
        name = treatment.name
        channels.append(Channel(f"{name}:count", "given", treatment=code))
        if treatment.dose:
            channels.append(Channel(f"{name}:dose", "dose", treatment=code))
            channels.append(Channel(f"{name}:timing", "timing", treatment=code))
        if treatment.rate:
            channels.append(Channel(f"{name}:infused", "infused", treatment=code))
            channels.append(Channel(f"{name}:rate", "rate", treatment=code))
    return channels


def _told_apart(channels: Iterable[Channel]) -> tuple[Channel, ...]:
    """A lab value `insulin` beside a treatment `insulin` would have one name: the later channel adds its role."""
    unique: dict[str, Channel] = {}
    for channel in channels:
        name = channel.name
        while name in unique:
            name = f"{name}:{channel.role}"
        unique[name] = replace(channel, name=name)
    return tuple(unique.values())
