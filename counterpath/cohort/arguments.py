"""What the arguments of `from_tables` and `from_frame` say, as declarations."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

import polars as pl

from counterpath.cohort.declared import Columns, Declared, DeclaredVariable
from counterpath.cohort.findings import CohortError
from counterpath.cohort.schema import FOLLOW_UP_END, TIME_ORIGIN, Schema, Treatment

Names = str | Sequence[str]
Bounds = tuple[float | None, float | None]


def as_list(names: Names | None) -> list[str]:
    """One name or several, as a list."""
    if names is None:
        return []
    return [names] if isinstance(names, str) else list(names)


def as_mapping(columns: Names | Mapping[str, str]) -> dict[str, str]:
    """Columns by name; a column without a name of its own keeps its name."""
    return dict(columns) if isinstance(columns, Mapping) else {name: name for name in as_list(columns)}


@dataclass(frozen=True)
class NamedProperties:
    """What the arguments of `from_tables` say about variables by name."""

    categorical: list[str]
    bounds: Mapping[str, Bounds]
    units: Mapping[str, str]

    def variables(self, names: Iterable[str]) -> tuple[DeclaredVariable, ...]:
        """The named variables with what is known of them."""
        for name, bound in self.bounds.items():
            if not (isinstance(bound, Sequence) and len(bound) == 2):
                raise CohortError(f"bounds[{name!r}] is {bound!r}. Write (lower, upper), with None for no bound.")
        return tuple(
            DeclaredVariable(
                name=name,
                kind="categorical" if name in self.categorical else None,
                unit=self.units.get(name),
                lower=self.bounds.get(name, (None, None))[0],
                upper=self.bounds.get(name, (None, None))[1],
            )
            for name in names
        )

    def everything(
        self,
        declared: Declared,
        observations: pl.DataFrame,
        treatments: pl.DataFrame | None,
        static: pl.DataFrame | None,
        columns: Columns,
    ) -> Declared:
        """The same with every variable listed; an argument that names nothing is an error."""
        long = {columns.variable, columns.value} <= set(observations.columns)
        outcomes = {variable.name for variable in declared.outcomes}
        measured = (
            observations[columns.variable].cast(pl.String).drop_nulls().unique(maintain_order=True)
            if long
            else [name for name in observations.columns if name not in (columns.patient, columns.time)]
        )
        covariates = declared.covariates
        if covariates is None:
            covariates = self.variables(name for name in measured if name not in outcomes)
        keys = (columns.patient, declared.follow_up_end, declared.time_zero, FOLLOW_UP_END, TIME_ORIGIN)
        fixed = self.variables(name for name in static.columns if name not in keys) if static is not None else None
        names = (
            sorted(treatments[columns.treatment].drop_nulls().cast(pl.String).unique())
            if (treatments is not None and columns.treatment in treatments.columns)
            else []
        )
        known = {v.name for v in (*declared.outcomes, *covariates, *(fixed or ()))}
        for argument, given in (
            ("categorical", self.categorical),
            ("bounds", self.bounds),
            ("units", self.units),
        ):
            for name in given:
                if name not in known and not (argument == "units" and name in names):
                    raise CohortError(f"{argument} names {name!r}, which is no variable of these tables.")
        treated = tuple(Treatment(name=name, unit=self.units.get(name)) for name in names)
        return declared.model_copy(
            update={"covariates": covariates, "static": fixed, "treatments": treated or declared.treatments}
        )


def declared_like(schema: Schema, outcomes: list[str], follow_up_end: str | None, time_zero: str) -> Declared:
    """The same roles, levels, bounds and usual doses as another cohort has."""
    mine = [outcome.name for outcome in schema.outcomes]
    if outcomes and outcomes != mine:
        raise CohortError(f"outcome is {', '.join(outcomes)}, but `like` predicts {', '.join(mine)}. Leave it out.")
    return Declared(
        time_unit=schema.time_unit,
        outcomes=tuple(DeclaredVariable.of(variable) for variable in schema.outcomes),
        covariates=tuple(DeclaredVariable.of(variable) for variable in schema.covariates),
        static=tuple(DeclaredVariable.of(variable) for variable in schema.static),
        treatments=schema.treatments,
        randomised=schema.randomised,
        follow_up_end=follow_up_end,
        time_zero=time_zero,
        stay_separator=schema.stay_separator,
    )
