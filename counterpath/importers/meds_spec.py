"""What to take from a MEDS data set: which codes are outcome, covariates, static variables and treatments."""

from __future__ import annotations

import json
import tomllib
from collections.abc import Mapping
from importlib.resources import files
from os import PathLike
from pathlib import Path
from typing import Annotated, Any, Literal

import polars as pl
from pydantic import AfterValidator, BeforeValidator, Field, StrictBool, ValidationError, model_validator

from counterpath.cohort.findings import CohortError, did_you_mean
from counterpath.cohort.schema import FOLLOW_UP_END, TIME_ORIGIN, Strict, in_plain_words
from counterpath.cohort.units import TimeUnit

PATTERN = "re:"  # before a regular expression that a whole code must match
BEGIN = "begin"  # of a patient's record, in the table of static variables
KEYS = frozenset({"patient", "time", BEGIN, FOLLOW_UP_END, TIME_ORIGIN})


def _compiles(codes: tuple[str, ...]) -> tuple[str, ...]:
    for code in codes:
        try:
            pl.select(code=pl.lit("")).select(selects((code,)))
        except pl.exceptions.ComputeError as error:
            lines = str(error).strip().splitlines()
            why = next((line.removeprefix("error: ") for line in lines if line.startswith("error: ")), lines[0])
            raise ValueError(
                f"{code!r} is not a regular expression as polars reads them ({why}); "
                "list the codes, or write a simpler pattern"
            ) from error
    return codes


def _one_or_several(codes: Any) -> Any:
    return (codes,) if isinstance(codes, str) else codes


def _is_factor(value: bool | float) -> bool | float:
    if value is not False and (value is True or value <= 0):
        raise ValueError("write a factor above 0, or false to leave the unit out")
    return value


def _in_order(limits: tuple[float | None, float | None]) -> tuple[float | None, float | None]:
    low, high = limits
    if low is not None and high is not None and low >= high:
        raise ValueError(f"the lower limit {low:g} is not below the upper limit {high:g}")
    return limits


# A code, or `re:` and a regular expression that matches whole codes; one or several.
Codes = Annotated[tuple[str, ...], BeforeValidator(_one_or_several), AfterValidator(_compiles), Field(min_length=1)]
# How many of the usual unit one of another is; false leaves records in it out.
Factor = Annotated[StrictBool | float, AfterValidator(_is_factor)]
Limits = Annotated[tuple[float | None, float | None], AfterValidator(_in_order)]


def selects(codes: Codes) -> pl.Expr:
    """Whether a row's code is one of these."""
    exact = [code for code in codes if not code.startswith(PATTERN)]
    chosen = pl.col("code").is_in(exact)
    for code in codes:
        if code.startswith(PATTERN):
            chosen = chosen | pl.col("code").str.contains(f"^(?:{code.removeprefix(PATTERN)})$")
    return chosen


class Measured(Strict):
    """A variable that is measured over time.

    Attributes:
        codes: Of its records.
        unit: Of its values, for labels; where the data has a column `unit`, other units must be in `units`.
        units: Factors that bring other units to `unit`; `false` leaves records in a unit out, and counts them.
        range: Values outside are left out, and counted.
        bounds: That no value can leave; one outside is an error, and predictions of an outcome respect them.
    """

    codes: Codes
    unit: str | None = None
    units: dict[str, Factor] = Field(default_factory=dict)
    range: Limits | None = None
    bounds: Limits | None = None


class Fixed(Strict):
    """A static variable.

    Attributes:
        codes: Of what says it.
        value: `number`: its numeric value; `text`: what the first group of the pattern matches, or the code itself;
            `years`: from it to the beginning, such as the age from a birth.
    """

    codes: Codes
    value: Literal["number", "text", "years"] = "text"


class Given(Strict):
    """A treatment: single doses, or intervals between a start and an end.

    Attributes:
        codes: Of single doses, whose numeric value is the dose.
        starts: Of beginnings of intervals, whose numeric value is the rate.
        ends: Of their ends.
        pair_by: Columns that a start and its end share, such as the number of an order. Of those that share them, and
            of all starts and ends of a subject where there are none, an end closes the latest start before it that is
            still open. So a lost end costs the interval that lost it, which lasts until follow-up ends, and no other;
            but where intervals overlap without a number, which end is whose is a guess. Such ends are counted.
        unit: Of dose or rate.
        units: Factors that bring other units to `unit`; `false` leaves what is given in a unit out, and counts it.
    """

    codes: Codes | None = None
    starts: Codes | None = None
    ends: Codes | None = None
    pair_by: tuple[str, ...] = ()
    unit: str | None = None
    units: dict[str, Factor] = Field(default_factory=dict)

    @model_validator(mode="after")
    def _is_one_kind(self) -> Given:
        if (self.codes is None) == (self.starts is None) or (self.starts is None) != (self.ends is None):
            raise ValueError("give `codes` for doses, or both `starts` and `ends` for intervals")
        return self


class Stay(Strict):
    """What a patient of the cohort is: a stretch of a subject's record, from an index event on.

    Attributes:
        begins: Codes of the index event: time zero.
        ends: Codes of its end, which ends follow-up.
        number: Column that says which stay a record belongs to; records without it belong by their time.
        longest: Follow-up ends so long after the beginning, at the latest, in units of time.
    """

    begins: Codes
    ends: Codes | None = None
    number: str | None = None
    longest: Annotated[float, Field(gt=0)] | None = None


class MedsSpec(Strict):
    """What to take from a MEDS data set.

    Attributes:
        time_unit: Of the cohort.
        outcome: What is to be predicted, by name.
        covariates: What else is measured over time.
        static: What does not change.
        treatments: What is given.
        stay: None: the whole record of a subject.
        merge_within: Records of a patient that are closer than this, in units of time, become one.
        death: Codes that end follow-up.
    """

    time_unit: TimeUnit
    outcome: Annotated[dict[str, Measured], Field(min_length=1)]
    covariates: dict[str, Measured] = Field(default_factory=dict)
    static: dict[str, Fixed] = Field(default_factory=dict)
    treatments: dict[str, Given] = Field(default_factory=dict)
    stay: Stay | None = None
    merge_within: Annotated[float, Field(ge=0)] = 0.0
    death: Codes = ("MEDS_DEATH",)

    @model_validator(mode="after")
    def _names_are_told_apart(self) -> MedsSpec:
        names = [*self.outcome, *self.covariates, *self.treatments]
        for name in names:
            if names.count(name) > 1:
                raise ValueError(
                    f"{name!r} is named twice; give each outcome, covariate and treatment a name of its own"
                )
        for name in sorted(KEYS.intersection((*self.measured, *self.static))):
            raise ValueError(f"{name!r} is the name of a key column; choose another name for the variable")
        return self

    @property
    def measured(self) -> dict[str, Measured]:
        """Outcomes and covariates."""
        return self.outcome | self.covariates

    @property
    def columns(self) -> set[str]:
        """That it needs besides those of the standard."""
        stay = {self.stay.number} if self.stay is not None and self.stay.number is not None else set()
        return stay.union(*(given.pair_by for given in self.treatments.values()))

    @property
    def all_codes(self) -> Codes:
        """Of everything that is read."""
        parts: list[Codes | None] = [self.death]
        parts += [one.codes for one in (*self.measured.values(), *self.static.values())]
        parts += [codes for given in self.treatments.values() for codes in (given.codes, given.starts, given.ends)]
        if self.stay is not None:
            parts += [self.stay.begins, self.stay.ends]
        return tuple(dict.fromkeys(code for part in parts if part is not None for code in part))


def read_spec(spec: MedsSpec | Mapping[str, Any] | str | PathLike[str]) -> MedsSpec:
    """A spec from Python, from a TOML or JSON file, or one that comes with counterpath, by its name.

    Args:
        spec: A `MedsSpec`, what would make one, a file, or a name such as `icu-haemodynamics`.
    """
    if isinstance(spec, MedsSpec):
        return spec
    where, content = "The spec", spec
    if not isinstance(spec, Mapping):
        where, content = f"{spec}", _content(spec)
    try:
        return MedsSpec.model_validate(content)
    except ValidationError as error:
        raise CohortError(f"{where}: {in_plain_words(error)}") from error


def ready_specs() -> list[str]:
    """Names of those that come with counterpath."""
    return sorted(
        path.name.removesuffix(".toml") for path in files("counterpath.importers").joinpath("specs").iterdir()
    )


def _content(spec: str | PathLike[str]) -> Any:
    path = Path(spec)
    ready = files("counterpath.importers").joinpath("specs", f"{path.name}.toml")
    if not path.suffix and ready.is_file():
        return tomllib.loads(ready.read_text(encoding="utf-8"))
    if not path.is_file():
        raise CohortError(
            f"There is no spec {str(spec)!r}: neither a file nor one of {', '.join(ready_specs())}. "
            f"{did_you_mean(str(spec), ready_specs())}".strip()
        )
    try:
        text = path.read_text(encoding="utf-8")
        return json.loads(text) if path.suffix == ".json" else tomllib.loads(text)
    except (UnicodeDecodeError, json.JSONDecodeError, tomllib.TOMLDecodeError) as error:
        raise CohortError(
            f"{path} is not the {'JSON' if path.suffix == '.json' else 'TOML'} it should be: {error}."
        ) from error
