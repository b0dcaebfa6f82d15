"""Whom one can ask about: patients of the loaded cohort, and records that come with a question."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
import polars as pl

from counterpath.cohort import Cohort, CohortError, Plan, Schema
from counterpath.cohort.cuts import outcomes_after
from counterpath.cohort.findings import counted, did_you_mean
from counterpath.cohort.plan_parts import PlannedDose, PlannedInfusion
from counterpath.cohort.schema import Variable
from counterpath.explorer.limits import Limits
from counterpath.explorer.messages import (
    Given,
    History,
    Measured,
    RecordAnswer,
    Value,
)
from counterpath.explorer.problems import ProblemError, in_field

READ = ("observations", "static", "treatments")  # tables, in the order in which one makes sense of the next
VISITOR = "visitor"  # a posted patient's name; ids of a cohort are never looked up by it


class Patients:
    """The loaded cohort, by the names that a URL can hold.

    Attributes:
        cohort: None where no patients were loaded.
    """

    def __init__(self, cohort: Cohort | None):
        self.cohort = cohort
        names = [] if cohort is None else cohort.patients.cast(pl.String).to_list()
        self._place: Mapping[str, int] = {name: place for place, name in enumerate(names)}

    def __len__(self) -> int:
        return len(self._place)

    @property
    def names(self) -> list[str]:
        """In the cohort's order."""
        return list(self._place)

    def whole(self, name: str) -> Cohort:
        """One patient's whole record."""
        if self.cohort is None or name not in self._place:
            raise ProblemError(404, "No such patient", "There is no such patient in the loaded cohort.", "patient")
        return self.cohort.take(np.array([self._place[name]]))

    def known(self, name: str, at: float | None) -> Cohort:
        """What was known of them at a time, at the end of their record where none is given."""
        whole = self.whole(name)
        with in_field("at"):
            return whole.until(whole.history_end if at is None else at)

    def record(self, name: str, at: float | None, longest: float) -> RecordAnswer:
        """For the page: what was known, what came after, and what was given then."""
        whole, known = self.whole(name), self.known(name, at)
        now = float(known.history_end[0])
        later = outcomes_after(whole, known, longest)
        outcomes = [variable.name for variable in whole.schema.outcomes]
        return RecordAnswer(
            patient=name,
            at=now,
            first=float(whole.records.times[0]),
            last=float(whole.history_end[0]),
            history=history_of(known),
            later=tuple(
                Measured(time=time, values=there(dict(zip(outcomes, row, strict=True))))
                for time, row in zip(later.times.tolist(), later.values.tolist(), strict=True)
            ),
            followed=followed(whole, known, longest),
        )


def history_of(known: Cohort) -> History:
    """The record of one patient, in words that can be posted."""
    schema = known.schema
    table = known.observations.drop(schema.patient_column, schema.time_column)
    observations = tuple(
        Measured(time=time, values=there(row))
        for time, row in zip(known.records.times.tolist(), table.iter_rows(named=True), strict=True)
    )
    events, given = known.events, []
    for code, start, stop, amount in zip(events.treatment, events.start, events.stop, events.amount, strict=True):
        own: dict[str, Any] = {"treatment": schema.treatments[code].name, "start": float(start)}
        if np.isnan(stop):
            given.append(Given(**own, dose=float(amount)))
        else:
            given.append(Given(**own, rate=float(amount), stop=float(stop) if np.isfinite(stop) else None))
    static = known.static.select([v.name for v in schema.static]).row(0, named=True) if schema.static else {}
    return History(observations=observations, treatments=tuple(given), static=there(static))


def followed(whole: Cohort, known: Cohort, longest: float) -> Plan:
    """What was really given from a time on, up to the longest horizon."""
    events, names = Plan.observed(whole).resolve(known), [t.name for t in whole.schema.treatments]
    doses, infusions = [], []
    for code, start, stop, amount in zip(events.treatment, events.start, events.stop, events.amount, strict=True):
        if start >= longest:
            continue
        name, begin, much = names[code], float(start), float(amount)
        if np.isnan(stop):
            doses.append(PlannedDose(treatment=name, time=begin, dose=much))
        else:
            end = float(stop) if np.isfinite(stop) else None
            infusions.append(PlannedInfusion(treatment=name, start=begin, stop=end, rate=much))
    return Plan(doses=tuple(doses), infusions=tuple(infusions))


def posted(history: History, schema: Schema, at: float | None, limits: Limits) -> Cohort:
    """A record that came with a question, as known at a time."""
    rows = len(history.observations) + len(history.treatments)
    if rows > limits.records:
        raise ProblemError(
            413,
            "Too much",
            f"{counted(rows, 'record')} are more than {limits.records:,}. Leave out older ones.",
            "history",
        )
    key, time = schema.patient_column, schema.time_column
    known = {variable.name for variable in schema.variables}
    for i, measured in enumerate(history.observations):
        for name in measured.values:
            if name not in known:
                with in_field(f"history.observations.{i}.values.{name}"):
                    raise CohortError(f"The model knows no variable {name!r}. There is {', '.join(sorted(known))}.")
    observations = pl.DataFrame(
        {key: [VISITOR] * len(history.observations), time: [measured.time for measured in history.observations]}
        | {
            variable.name: _column([measured.values.get(variable.name) for measured in history.observations], variable)
            for variable in schema.variables
        }
    )
    given = [event.model_dump() | {key: VISITOR} for event in history.treatments]
    fixed = [variable.name for variable in schema.static]
    for name in history.static:
        if name not in fixed:
            with in_field(f"history.static.{name}"):
                raise CohortError(f"The model knows nothing called {name!r} of a patient. {did_you_mean(name, fixed)}")
    static = pl.DataFrame({key: [VISITOR]} | {name: [value] for name, value in history.static.items()})
    frames = {
        "observations": observations,
        "static": static if history.static else None,
        "treatments": _events(given, key),
    }
    cohort = read(frames, schema, within="history.")
    with in_field("at"):
        return cohort.until(cohort.history_end if at is None else np.array([at]))


def read(frames: Mapping[str, pl.DataFrame | None], schema: Schema, within: str = "") -> Cohort:
    """As training tables were read; what is wrong is said of the table that it is wrong in."""
    if schema.static and frames["static"] is None:
        with in_field(f"{within}static"):
            raise CohortError(f"The model knows {', '.join(v.name for v in schema.static)} of each patient. Say them.")
    try:
        return _cohort(frames, schema)
    except CohortError:
        # One table more each time, until the one that is to blame; of a patient nothing need be known at first.
        nothing = pl.DataFrame({schema.patient_column: [VISITOR]} | {v.name: [None] for v in schema.static})
        some = {"static": nothing if schema.static else None}
        for name in READ:
            some[name] = frames[name]
            with in_field(f"{within}{name}"):
                _cohort(some, schema)
        raise


def _cohort(frames: Mapping[str, pl.DataFrame | None], schema: Schema) -> Cohort:
    observations, treatments, static = frames["observations"], frames.get("treatments"), frames.get("static")
    dated = observations is not None and observations.schema.get(schema.time_column) == pl.String
    zero = "first record" if dated else "as given"
    try:
        return Cohort.from_tables(observations, treatments, static, like=schema, time_zero=zero)
    except pl.exceptions.PolarsError as error:  # such as: a date that there is not
        raise CohortError(f"The table cannot be read: {str(error).splitlines()[0]}.") from error


def _events(given: list[dict[str, Any]], key: str) -> pl.DataFrame | None:
    kinds = {key: pl.String, "treatment": pl.String, "start": pl.Float64, "stop": pl.Float64}
    return pl.DataFrame(given, schema=kinds | {"dose": pl.Float64, "rate": pl.Float64}) if given else None


def _column(values: list[Value], variable: Variable) -> pl.Series:
    """Text where the variable has categories, numbers otherwise."""
    if variable.kind == "categorical":
        return pl.Series([None if value is None else str(value) for value in values], dtype=pl.String)
    wrong = next((i for i, value in enumerate(values) if isinstance(value, str)), None)
    if wrong is not None:
        with in_field(f"history.observations.{wrong}.values.{variable.name}"):
            raise CohortError(f"{values[wrong]!r} is no number, and {variable.name} has numbers.")
    return pl.Series(values, dtype=pl.Float64)


def with_unmeasured(observations: pl.DataFrame, schema: Schema) -> pl.DataFrame:
    """Covariates for which there is no column have never been measured."""
    absent = [variable for variable in schema.covariates if variable.name not in observations.columns]
    return observations.with_columns(_column([None] * observations.height, v).alias(v.name) for v in absent)


def there(row: Mapping[str, Any]) -> dict[str, Any]:
    """Without what is missing."""
    return {
        name: value
        for name, value in row.items()
        if value is not None and not (isinstance(value, float) and np.isnan(value))
    }
