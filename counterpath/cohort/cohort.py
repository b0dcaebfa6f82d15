"""Patient records as data: immutable, columnar, and in the patient's own time."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from os import PathLike
from typing import TYPE_CHECKING, Any, Literal

import numpy as np
import polars as pl
from jaxtyping import Float64, Int64
from pydantic import ValidationError

from counterpath.cohort.arguments import Bounds, NamedProperties, Names, as_list, as_mapping, declared_like
from counterpath.cohort.clock import times_asked_for
from counterpath.cohort.cuts import Cut, events_until, outcomes_after
from counterpath.cohort.declared import Columns, Declared, Repairs
from counterpath.cohort.describe import describe_cohort, summarise_cohort
from counterpath.cohort.findings import CohortError, Finding, counted, name_patients
from counterpath.cohort.frames import FrameKind, to_kind, to_polars
from counterpath.cohort.ids import number_of
from counterpath.cohort.plan import Plan
from counterpath.cohort.records import Observations, TreatmentEvents, freeze
from counterpath.cohort.schema import FOLLOW_UP_END, Schema, in_plain_words
from counterpath.cohort.tables import Tables, read_tables
from counterpath.cohort.tables_out import observation_table, static_table, treatment_table
from counterpath.cohort.units import TimeUnit
from counterpath.cohort.wide import tables_from_frame

if TYPE_CHECKING:
    from counterpath.cohort.checks import CheckReport


@dataclass(frozen=True, eq=False, repr=False)
class Cohort:
    """Patients with what was observed of them and what they were given.

    Times count from each patient's time zero in `schema.time_unit`. Nothing in a cohort changes; every method
    returns a new one. Build it with `from_tables`, `from_frame` or `cp.read_cohort`.

    Attributes:
        schema: Roles, kinds, units.
        patients: Their ids, as integers or text.
        origins: Each patient's time zero on the clock of the user's tables.
        follow_up_end: When a patient was last under observation; NaN where not given.
        records: What was measured.
        events: What was given.
        static_values: One row per patient, NaN where missing.
        repairs: What was changed or left out on the way in, with counts.
        frames: The kind of frame that is given back.
    """

    schema: Schema
    patients: pl.Series
    origins: pl.Series
    follow_up_end: Float64[np.ndarray, " patients"]
    records: Observations
    events: TreatmentEvents
    static_values: Float64[np.ndarray, "patients static"]
    repairs: tuple[Finding, ...] = ()
    frames: FrameKind = "polars"

    def __post_init__(self):
        freeze(self.follow_up_end)
        freeze(self.static_values)

    # --- reading

    @classmethod
    def from_tables(
        cls,
        observations: Any,
        treatments: Any = None,
        static: Any = None,
        *,
        outcome: Names | None = None,
        time_unit: TimeUnit | None = None,
        like: Cohort | Schema | None = None,
        covariates: Names | None = None,
        categorical: Names = (),
        bounds: Mapping[str, Bounds] | None = None,
        units: Mapping[str, str] | None = None,
        randomised: bool = False,
        follow_up_end: str | None = None,
        time_zero: str = "first record",
        stay_separator: str | None = None,
        duplicates: Literal["error", "mean", "first", "last"] = "error",
        merge_within: float = 0.0,
        after_follow_up: Literal["error", "drop"] = "error",
        **columns: str,
    ) -> Cohort:
        """Read up to three tables of pandas, polars, Arrow or another kind that narwhals knows.

        Args:
            observations: Wide (a column per variable) or long (columns `variable` and `value`).
            treatments: A row per dose (`time`, `dose`) or interval (`start`, `stop`, `rate`), with `treatment`.
            static: A row per patient.
            outcome: Name or names of what is to be predicted.
            time_unit: Unit of the times; datetimes are converted to it.
            like: Another cohort, such as the training patients, or a model's schema: its roles, categories, bounds and
                usual doses hold here too. `outcome`, `time_unit`, `covariates`, `categorical`, `bounds` and `units` are
                then left out.
            covariates: What else is measured over time; default: every other column or variable.
            categorical: Covariates, changing or static, whose numbers are codes. Text is categorical anyway.
            bounds: (lower, upper) of variables; None for no bound. Predictions respect those of outcomes.
            units: Units of variables and treatments, for labels.
            randomised: Whether treatment was assigned at random, given what is recorded.
            follow_up_end: Column of `static` with the end of follow-up (death, discharge, censoring).
            time_zero: `first record`, `as given` (numbers only), or a column of `static`.
            stay_separator: Where a patient is one stay of a person, as in `person/stay`: what stands between the two in
                an id. A split then keeps persons together.
            duplicates: What to do with two values of a variable at one time.
            merge_within: Join records of a patient that are closer than this.
            after_follow_up: `drop` leaves out what is dated after the end of follow-up.
            **columns: Names of columns that differ from the usual: `patient`, `time`, `variable`, `value`,
                `treatment`, `start`, `stop`, `dose`, `rate`.
        """
        observed, kind = to_polars(observations, "observations")
        given = None if treatments is None else to_polars(treatments, "treatments")[0]
        fixed = None if static is None else to_polars(static, "static")[0]
        unknown = set(columns) - set(Columns.model_fields)
        if unknown:
            raise TypeError(f"from_tables() has no argument {sorted(unknown)[0]!r}")
        if follow_up_end is None and fixed is not None and FOLLOW_UP_END in fixed.columns:
            follow_up_end = FOLLOW_UP_END  # as `cohort.static` gives it back
        try:
            if like is not None:
                schema = like.schema if isinstance(like, Cohort) else like
                keys = {"patient": schema.patient_column, "time": schema.time_column}
                named = Columns(**(keys | columns))
                declared = declared_like(schema, as_list(outcome), follow_up_end, time_zero)
            elif outcome is None or time_unit is None:
                raise CohortError("Say outcome=… and time_unit=…, or like=… for patients of a study that is known.")
            else:
                describe = NamedProperties(as_list(categorical), bounds or {}, units or {})
                named = Columns(**columns)
                declared = Declared(
                    time_unit=time_unit,
                    outcomes=describe.variables(as_list(outcome)),
                    covariates=describe.variables(as_list(covariates)) if covariates is not None else None,
                    randomised=randomised,
                    follow_up_end=follow_up_end,
                    time_zero=time_zero,
                    stay_separator=stay_separator,
                )
                declared = describe.everything(declared, observed, given, fixed, named)
            repairs = Repairs(duplicates=duplicates, merge_within=merge_within, after_follow_up=after_follow_up)
        except ValidationError as error:
            raise CohortError(in_plain_words(error)) from error
        return cls.build(Tables(observed, given, fixed), declared, named, repairs, kind)

    @classmethod
    def from_frame(
        cls,
        frame: Any,
        *,
        patient: str,
        time: str,
        outcome: Names,
        time_unit: TimeUnit | None = None,
        covariates: Names = (),
        treatments: Names | Mapping[str, str] = (),
        infusions: Names | Mapping[str, str] = (),
        static: Names = (),
        changes_only: Names = (),
        follow_up_end: str | None = None,
        **options: Any,
    ) -> Cohort:
        """Read one wide frame with a row per patient and time.

        Args:
            frame: Of pandas, polars, Arrow or another kind that narwhals knows.
            patient: Column with the patient.
            time: Column with the time.
            outcome: Column or columns to be predicted.
            time_unit: Unit of the times; of `like`, where that is given.
            covariates: Columns that change over time.
            treatments: Columns with single doses, or {name: column}. Empty or 0: nothing given.
            infusions: Columns with a rate that holds until the next row, or {name: column}.
            static: Columns that do not change within a patient.
            changes_only: Columns in which a repeated value is carried forward, not measured anew.
            follow_up_end: Column with the end of follow-up, the same in all rows of a patient.
            **options: As for `from_tables`: `like`, `categorical`, `bounds`, `units`, `randomised`, `time_zero`,
                `duplicates`, `merge_within`, `after_follow_up`.
        """
        table, kind = to_polars(frame, "wide")
        fixed = [
            *as_list(static),
            *([follow_up_end] if follow_up_end and follow_up_end not in as_list(static) else []),
        ]
        tables, carried = tables_from_frame(
            table,
            patient=patient,
            time=time,
            outcomes=as_list(outcome),
            covariates=as_list(covariates),
            treatments=as_mapping(treatments),
            infusions=as_mapping(infusions),
            static=fixed,
            changes_only=as_list(changes_only),
        )
        cohort = cls.from_tables(
            tables.observations,
            tables.treatments,
            tables.static,
            patient=patient,
            time=time,
            # a wide frame has no such columns, whatever its variables are called
            variable="\0variable",
            value="\0value",
            start=time,
            outcome=outcome,
            covariates=covariates,
            time_unit=time_unit,
            follow_up_end=follow_up_end,
            **options,
        )
        repairs = cohort.repairs if carried is None else (*cohort.repairs, carried)
        return replace(cohort, frames=kind, repairs=repairs)

    @classmethod
    def build(
        cls,
        tables: Tables,
        declared: Declared,
        columns: Columns,
        repairs: Repairs,
        frames: FrameKind = "polars",
    ) -> Cohort:
        """The one way in: tables with everything that was said of them."""
        try:
            parts = read_tables(tables, declared, columns, repairs)
        except ValidationError as error:  # names that clash
            raise CohortError(in_plain_words(error)) from error
        return cls(**vars(parts), frames=frames)

    # --- looking

    def __len__(self) -> int:
        return len(self.patients)

    def __repr__(self) -> str:
        return summarise_cohort(self)

    def describe(self) -> Any:
        """A frame with a line per variable and treatment: how often, how much, for how many."""
        return to_kind(describe_cohort(self), self.frames)

    def check(self, *, lookback: float | None = None, cells: int = 64) -> CheckReport:
        """A verdict before any training; see `counterpath.cohort.checks`."""
        from counterpath.cohort.checks import check_cohort

        return check_cohort(self, lookback=lookback, cells=cells)

    @property
    def history_end(self) -> Float64[np.ndarray, " patients"]:
        """Up to when each patient is known: end of follow-up, or the last record or treatment without one."""
        last = np.full(len(self), -np.inf)
        has = self.records.per_patient > 0
        last[has] = self.records.times[self.records.offsets[1:][has] - 1]
        given = np.where(np.isfinite(self.events.stop), self.events.stop, self.events.start)
        np.maximum.at(last, self.events.patient_of_row, given)
        return np.where(np.isnan(self.follow_up_end), last, self.follow_up_end)

    @property
    def observations(self) -> Any:
        """What was measured, as a wide frame of the user's kind."""
        return to_kind(observation_table(self), self.frames)

    @property
    def treatments(self) -> Any:
        """What was given, as a frame of the user's kind: start, stop, dose, rate."""
        return to_kind(treatment_table(self), self.frames)

    @property
    def static(self) -> Any:
        """One line per patient, as a frame of the user's kind, with end of follow-up and time zero."""
        return to_kind(static_table(self), self.frames)

    def equals(self, other: Cohort) -> bool:
        """The same patients, records and meaning, to the bit."""
        return (
            self.schema == other.schema
            and self.patients.equals(other.patients)
            and self.origins.equals(other.origins)
            and np.array_equal(self.follow_up_end, other.follow_up_end, equal_nan=True)
            and self.records.equals(other.records)
            and self.events.equals(other.events)
            and np.array_equal(self.static_values, other.static_values, equal_nan=True)
            and self.repairs == other.repairs
        )

    # --- choosing

    def positions(self, patients: Iterable[Any]) -> Int64[np.ndarray, " chosen"]:
        """Where these patients stand in the cohort, or an error that names who is not there."""
        wanted = patients if isinstance(patients, pl.Series) else pl.Series(list(patients), dtype=self.patients.dtype)
        numbers = number_of(wanted, self.patients)
        if (numbers < 0).any():
            absent = wanted.filter(pl.Series(numbers < 0))
            verb = "is" if absent.n_unique() == 1 else "are"
            raise CohortError(f"{name_patients(absent, capital=True)} {verb} not in this cohort of {len(self):,}.")
        return numbers

    def __getitem__(self, which: Any) -> Cohort:
        """Some patients: `cohort[:10]` and masks go by position, `cohort[[17, 20]]` and `cohort["P3"]` by id."""
        if isinstance(which, slice):
            return self.take(np.arange(len(self))[which])
        try:
            listed = [which] if isinstance(which, (str, int, np.integer)) else list(which)
            if listed and all(isinstance(item, (bool, np.bool_)) for item in listed):
                if len(listed) != len(self):
                    raise IndexError(f"The mask has {len(listed)} values; the cohort has {len(self)} patients.")
                return self.take(np.flatnonzero(np.array(listed, dtype=bool)))
            positions = self.positions(listed)
            if len(np.unique(positions)) < len(positions):
                raise CohortError("A patient is named twice. A cohort holds each patient once.")
            return self.take(positions)
        except (TypeError, pl.exceptions.PolarsError) as error:
            kind = "text" if self.patients.dtype == pl.String else "integers"
            raise CohortError(f"{which!r} names no patients: ids of this cohort are {kind}.") from error

    def take(self, positions: Int64[np.ndarray, " chosen"]) -> Cohort:
        """Patients by position, in this order; `cohort[…]` is the friendlier way."""
        return replace(
            self,
            patients=self.patients.gather(positions),
            origins=self.origins.gather(positions),
            follow_up_end=self.follow_up_end[positions],
            records=self.records.take(positions),
            events=self.events.take(positions),
            static_values=self.static_values[positions],
        )

    def renamed(self, patients: pl.Series) -> Cohort:
        """The same patients by other names."""
        return replace(self, patients=patients.alias(self.patients.name))

    @classmethod
    def joined(cls, cohorts: Sequence[Cohort]) -> Cohort:
        """Patients of several cohorts with one schema, under names that differ."""
        first = cohorts[0]
        if any(other.schema != first.schema for other in cohorts):
            raise CohortError("These cohorts have different schemas. Read their tables with like=….")
        patients = pl.concat([cohort.patients for cohort in cohorts])
        if patients.n_unique() < len(patients):
            twice = patients.filter(patients.is_duplicated())
            raise CohortError(f"{name_patients(twice, capital=True)} would be in the cohort more than once.")
        return replace(
            first,
            patients=patients,
            origins=pl.concat([cohort.origins for cohort in cohorts]),
            follow_up_end=np.concatenate([cohort.follow_up_end for cohort in cohorts]),
            records=Observations.joined([cohort.records for cohort in cohorts]),
            events=TreatmentEvents.joined([cohort.events for cohort in cohorts]),
            static_values=np.concatenate([cohort.static_values for cohort in cohorts]),
            repairs=tuple(repair for cohort in cohorts for repair in cohort.repairs),
        )

    @property
    def person_of_patient(self) -> Int64[np.ndarray, " patients"]:
        """Numbers: the same for all stays of a person, where patients are stays."""
        if self.schema.stay_separator is None:
            return np.arange(len(self))
        before = self.patients.cast(pl.String).str.splitn(self.schema.stay_separator, 2).struct[0]
        return number_of(before, before.unique(maintain_order=True))

    def split(self, shares: Sequence[float], *, seed: int) -> tuple[Cohort, ...]:
        """Patients at random into parts of these shares, e.g. (0.7, 0.1, 0.2). Nobody is in two parts.

        Where patients are stays of persons, all stays of a person are in one part, and shares are of persons.
        """
        if not shares or min(shares) <= 0 or abs(sum(shares) - 1.0) > 1e-9:
            raise CohortError(f"Shares {tuple(shares)} are not positive numbers with sum 1, such as (0.7, 0.1, 0.2).")
        person = self.person_of_patient
        persons = int(person.max(initial=-1)) + 1
        ends = np.round(np.cumsum(shares) * persons).astype(int)
        order = np.random.default_rng(seed).permutation(persons)
        parts = np.split(order, ends[:-1])
        if min(len(part) for part in parts) == 0:
            raise CohortError(f"{counted(persons, 'patient')} are too few for shares {tuple(shares)}.")
        return tuple(self.take(np.flatnonzero(np.isin(person, part))) for part in parts)

    def until(self, time: Any, *, ended: Literal["error", "drop"] = "error") -> Cohort:
        """What was known at a time: observations up to it, treatments before it, running intervals open.

        Args:
            time: In the cohort's unit since time zero; one for all, one per patient (in order, or {id: time}), or a
                date on the clock of the user's tables.
            ended: What to do with patients who were not under observation then: an error, or leave them out.
        """
        end = times_asked_for(time, self.patients, self.origins, self.schema.time_unit)
        gone = end > np.where(np.isnan(self.follow_up_end), np.inf, self.follow_up_end)
        first = np.full(len(self), np.inf)
        has = self.records.per_patient > 0
        first[has] = self.records.times[self.records.offsets[:-1][has]]
        absent = gone | (first > end)
        if absent.any():
            if ended == "error":
                who = self.patients.filter(pl.Series(absent))
                verb = "was" if len(who) == 1 else "were"
                raise CohortError(
                    f"{name_patients(who, capital=True)} {verb} not under observation at that time "
                    f"({int(gone.sum())} ended before, {int((first > end).sum())} began later). "
                    "Choose another time, or pass ended='drop'."
                )
            return self[~absent].until(end[~absent])
        return replace(
            self,
            follow_up_end=end,
            records=self.records.keep(self.records.times <= end[self.records.patient_of_row]),
            events=events_until(self.events, end),
        )

    def cut(self, time: Any, *, max_horizon: float | None = None, ended: Literal["error", "drop"] = "error") -> Cut:
        """The trajectory in two: history until `time`, the plan that followed, and the outcomes after it."""
        history = self.until(time, ended=ended)
        return Cut(history, Plan.observed(self), outcomes_after(self, history, max_horizon))

    # --- keeping

    def save(self, folder: str | PathLike[str], *, overwrite: bool = False) -> None:
        """Write the cohort as Parquet with its schema, whole or not at all; `cp.read_cohort` reads it back."""
        from counterpath.cohort.folder import write_cohort

        write_cohort(self, folder, overwrite=overwrite)

    @classmethod
    def load(cls, folder: str | PathLike[str]) -> Cohort:
        """The cohort that `save` wrote."""
        from counterpath.cohort.folder import read_cohort

        return read_cohort(folder)
