"""What the columns of a cohort mean."""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import BaseModel, ConfigDict, Field, ValidationError, model_validator

from counterpath.cohort.findings import CohortError, did_you_mean
from counterpath.cohort.units import TimeUnit

FOLLOW_UP_END = "follow_up_end"
TIME_ORIGIN = "time_origin"

DType = Literal["float", "integer", "boolean", "text"]


class Strict(BaseModel):
    """A frozen record that refuses keys it does not know."""

    model_config = ConfigDict(frozen=True, extra="forbid", allow_inf_nan=False)


def in_plain_words(error: ValidationError) -> str:
    """The first thing that pydantic found wrong, in one line: where, what, and what was given."""
    first = error.errors()[0]
    where = ".".join(str(part) for part in first["loc"])
    what = first["msg"].removeprefix("Value error, ")
    given = f"={first['input']!r}" if where and isinstance(first["input"], (str, int, float)) else ""
    return f"{where}{given}: {what}." if where else f"{what[:1].upper()}{what[1:]}."


class Variable(Strict):
    """An outcome, a covariate that changes, or a static covariate.

    Attributes:
        name: The column's or variable's name.
        kind: `numeric`, or `categorical` with its `levels`.
        levels: The categories, as text, in the order of their codes.
        dtype: The type of the user's column, so that it can be given back as it came.
        unit: For labels only.
        lower: No value lies below; predictions respect it.
        upper: No value lies above; predictions respect it.
    """

    name: str
    kind: Literal["numeric", "categorical"] = "numeric"
    levels: tuple[str, ...] = ()
    dtype: DType = "float"
    unit: str | None = None
    lower: float | None = None
    upper: float | None = None

    @model_validator(mode="after")
    def _consistent(self) -> Variable:
        if self.kind == "numeric" and self.levels:
            raise ValueError(f"{self.name!r} is numeric and has levels; make it categorical or remove them")
        if self.lower is not None and self.upper is not None and self.lower >= self.upper:
            raise ValueError(f"{self.name!r}: lower bound {self.lower} is not below upper bound {self.upper}")
        return self

    @property
    def label(self) -> str:
        """The name with its unit, for axes and tables."""
        return f"{self.name} ({self.unit})" if self.unit else self.name


class Amounts(Strict):
    """How much of a treatment the cohort received at a time: usual (median), lowest, highest."""

    usual: float
    lowest: float
    highest: float


class Treatment(Strict):
    """A treatment that changes over time, given as single doses, as intervals with a rate, or both.

    Attributes:
        name: As in the table of treatments.
        unit: For labels only.
        dose: Amounts of its single doses; None where there was none.
        rate: Rates of its intervals, in the table's own unit; None where there was none.
    """

    name: str
    unit: str | None = None
    dose: Amounts | None = None
    rate: Amounts | None = None

    @property
    def label(self) -> str:
        """The name with its unit, for axes and tables."""
        return f"{self.name} ({self.unit})" if self.unit else self.name


class Schema(Strict):
    """Roles, kinds and units of everything in a cohort.

    Attributes:
        stay_separator: Where a patient is one stay of a person: what stands before it in an id is the person.
    """

    time_unit: TimeUnit
    outcomes: tuple[Variable, ...]
    covariates: tuple[Variable, ...] = ()
    static: tuple[Variable, ...] = ()
    treatments: tuple[Treatment, ...] = ()
    randomised: bool = False
    stay_separator: Annotated[str, Field(min_length=1)] | None = None
    patient_column: str = "patient"
    time_column: str = "time"

    @model_validator(mode="after")
    def _names_are_told_apart(self) -> Schema:
        if not self.outcomes:
            raise ValueError("a cohort needs at least one outcome")
        reserved = {self.patient_column, self.time_column, FOLLOW_UP_END, TIME_ORIGIN}
        for group in (self.variables, self.static, self.treatments):
            names = [item.name for item in group]
            for name in names:
                if names.count(name) > 1:
                    raise ValueError(f"{name!r} is named twice; give each column one role")
                if name in reserved and group is not self.treatments:
                    raise ValueError(f"{name!r} is the name of a key column; rename the variable")
        return self

    @property
    def variables(self) -> tuple[Variable, ...]:
        """What is observed over time: outcomes first, then covariates."""
        return self.outcomes + self.covariates

    def treatment_code(self, name: str) -> int:
        """The position of a treatment, or an error that lists what there is."""
        names = [treatment.name for treatment in self.treatments]
        if name not in names:
            raise CohortError(f"There is no treatment {name!r} in this cohort. {did_you_mean(name, names)}")
        return names.index(name)
