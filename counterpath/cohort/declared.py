"""What the user says about their tables: names of columns, roles, repairs. Also the form of `schema.toml`."""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import Field, field_validator, model_validator

from counterpath.cohort.schema import DType, Strict, Treatment, Variable
from counterpath.cohort.units import TimeUnit


class DeclaredVariable(Strict):
    """A variable by name; what is left out is found from the data."""

    name: str
    kind: Literal["numeric", "categorical"] | None = None
    levels: tuple[str, ...] | None = None
    dtype: DType | None = None
    unit: str | None = None
    lower: float | None = None
    upper: float | None = None

    @model_validator(mode="after")
    def _bounds_in_order(self) -> DeclaredVariable:
        if self.lower is not None and self.upper is not None and self.lower >= self.upper:
            raise ValueError(f"{self.name!r}: lower bound {self.lower:g} is not below upper bound {self.upper:g}")
        return self

    @classmethod
    def of(cls, variable: Variable) -> DeclaredVariable:
        """Everything that a finished schema knows of a variable."""
        return cls(**{**variable.model_dump(), "levels": variable.levels or None})


class Columns(Strict):
    """Which column holds what. One name serves all tables that have such a column."""

    patient: str = "patient"
    time: str = "time"
    variable: str = "variable"
    value: str = "value"
    treatment: str = "treatment"
    start: str = "start"
    stop: str = "stop"
    dose: str = "dose"
    rate: str = "rate"


class Repairs(Strict):
    """Repairs that the user asked for. None of them happens unasked.

    Attributes:
        duplicates: What to do where a variable has two values at one time.
        merge_within: Records of a patient closer than this are one record.
        after_follow_up: `drop` leaves out what is dated after the end of follow-up.
    """

    duplicates: Literal["error", "mean", "first", "last"] = "error"
    merge_within: float = Field(default=0.0, ge=0.0)
    after_follow_up: Literal["error", "drop"] = "error"


class Declared(Strict):
    """The roles of columns and variables, and how time is counted.

    Attributes:
        covariates: None means every other column or variable of the observations.
        static: None means every other column of the static table.
        treatments: None means every treatment that occurs.
        follow_up_end: Column of the static table with the end of follow-up.
        time_zero: `first record`, `as given` (numbers only), or a column of the static table.
        stay_separator: Where a patient is one stay of a person: what stands before it in an id is the person.
    """

    time_unit: TimeUnit
    outcomes: tuple[DeclaredVariable, ...]
    covariates: tuple[DeclaredVariable, ...] | None = None
    static: tuple[DeclaredVariable, ...] | None = None
    treatments: tuple[Treatment, ...] | None = None
    randomised: bool = False
    follow_up_end: str | None = None
    time_zero: str = "first record"
    stay_separator: Annotated[str, Field(min_length=1)] | None = None

    @field_validator("outcomes")
    @classmethod
    def _some(cls, outcomes: tuple[DeclaredVariable, ...]) -> tuple[DeclaredVariable, ...]:
        if not outcomes:
            raise ValueError("name at least one outcome")
        return outcomes
