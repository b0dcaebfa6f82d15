"""Worlds made of records that a user has: real ones, and real covariates with simulated outcomes."""

from __future__ import annotations

import hashlib
from abc import abstractmethod
from dataclasses import dataclass, replace
from functools import cache
from pathlib import Path
from typing import Any, ClassVar

import numpy as np
import polars as pl
from jaxtyping import Int64

from counterpath.cohort import Cohort, CohortError, Plan, Schema, read_cohort
from counterpath.cohort.findings import counted
from counterpath.estimators import Estimator
from counterpath.estimators.semi_synthetic_oracle import SemiSyntheticOracle
from counterpath.experiments.scales import Scale
from counterpath.experiments.world import USUAL_NOISE, Asked, World, followed_through_noise
from counterpath.importers import read_mimic_extract
from counterpath.simulators import SemiSynthetic, simulate_semi_synthetic
from counterpath.simulators.semi_synthetic import DRIVERS as DRIVEN_BY
from counterpath.simulators.semi_synthetic import TREATMENT, Gain

# The paper's shares: 60% to learn from, 15% for stopping, 25% to be asked about. The last are the same for all fits.
TO_ASK, FOR_STOPPING = 0.25, 0.2  # the second of those that remain
SPLIT_SEED, STUDY_SEED, CUT_SEED = 90_000, 91_000, 92_000
HOURS = 30
FIRST_CUT = 9  # nobody is asked about earlier
FEWEST = 8  # patients
OTHER_CHOICE = "other choice"
GAIN: Gain = "bounded"  # outcomes of the printed equations can explode
# The paper's supplement simulates on these; the outcome follows the first two.
DRIVERS = ("heart rate", "red blood cell count", "sodium", "mean blood pressure", "systemic vascular resistance")


@dataclass(frozen=True)
class RecordWorld(World):
    """Patients of a file.

    Attributes:
        name: In file names.
        data: The hourly file of MIMIC-Extract, or a folder that `cohort.save` or `counterpath import` wrote.
    """

    name: str
    data: Path | None = None
    unit: ClassVar[str] = "hour"
    horizons: ClassVar[tuple[float, ...]] = (1.0,)

    def made_of(self, data: Path) -> RecordWorld:
        """The same world, of these records."""
        return replace(self, data=data)

    @property
    def file(self) -> Path:
        """Where the records are."""
        if self.data is None:
            raise CohortError(f"The world {self.name!r} is made of records. Say which.")
        return self.data

    @property
    def kept_as(self) -> str:
        """Files of two users often have one name, so the content tells them apart."""
        return f"{self.name}-{digest(self.file)[:12]}"

    @property
    @abstractmethod
    def everybody(self) -> Cohort:
        """All who can be learned from or asked about."""

    @property
    def parts(self) -> tuple[Cohort, Cohort]:
        """Who can be learned from, and who is asked about."""
        known, to_ask = self.everybody.split((1 - TO_ASK, TO_ASK), seed=SPLIT_SEED)
        return known, to_ask

    def learners(self, scale: Scale, seed: int) -> tuple[Cohort, Cohort]:
        """For each seed another split of those who are not asked about."""
        train, validation = self.parts[0].split((1 - FOR_STOPPING, FOR_STOPPING), seed=seed)
        return train, validation

    def up_to_the_last_cut(self, cohort: Cohort, horizon: float) -> Cohort:
        """Until one of the outcomes that could be asked about, at random."""
        outcome, records = cohort.records.values[:, 0], cohort.records
        late = np.flatnonzero(~np.isnan(outcome) & (records.times >= FIRST_CUT + horizon))
        number = np.bincount(records.patient_of_row[late], minlength=len(cohort))
        first = np.cumsum(number) - number
        chosen = first + (np.random.default_rng(CUT_SEED).random(len(cohort)) * number).astype(np.int64)
        ends = cohort.history_end.copy()
        ends[number > 0] = records.times[late[chosen[number > 0]]]
        return cohort.until(ends, ended="drop")

    def usual_size(self, scale: Scale) -> float:
        """Of recorded outcomes."""
        return float(np.nanstd(self.parts[0].records.values[:, 0]))

    def setting(self, scale: Scale) -> dict[str, Any]:
        """The file, what is in it, and how many patients and forecasts there are."""
        (train, validation), schema = self.learners(scale, 0), self.everybody.schema
        number = {"train": len(train), "validation": len(validation), "test": len(self.parts[1])}
        return {
            "data": self.file.name,
            "digest": digest(self.file),
            "outcome": schema.outcomes[0].name,
            "covariates": [variable.name for variable in (*schema.covariates, *schema.static)],
            "treatments": [treatment.name for treatment in schema.treatments],
            "patients": number,
            "forecasts": len(self.asked(scale, "factual").history),
            "split_seed": SPLIT_SEED,
        }


@dataclass(frozen=True)
class RealWorld(RecordWorld):
    """The first thirty hours of each stay; asked about the next hour, where its outcome was recorded."""

    has_oracle: ClassVar[bool] = False

    @property
    def everybody(self) -> Cohort:
        """Who stayed for thirty hours."""
        return first_hours(self.file)

    def protocols(self, horizon: float) -> list[str]:
        """Nobody knows another future."""
        return ["factual"]

    def asked(self, scale: Scale, protocol: str, noise_std: float = USUAL_NOISE) -> Asked:
        """In the last hours before the thirtieth."""
        return recorded_next_hours(self, scale)

    def oracle(self, scale: Scale, asked: Asked, *, believes: float | None, workers: int) -> Estimator:
        """Nobody knows the truth."""
        raise CohortError("Real records have no oracle.")


@dataclass(frozen=True)
class SemiSyntheticWorld(RecordWorld):
    """Real covariates, simulated treatments and outcomes; asked about the next hour under either choice."""

    test_seed: ClassVar[int] = STUDY_SEED

    @property
    def everybody(self) -> Cohort:
        """With the usual noise."""
        return semi_synthetic(self.file, USUAL_NOISE).cohort

    def protocols(self, horizon: float) -> list[str]:
        """What was given, and the other choice at the time of the decision."""
        return ["factual", OTHER_CHOICE]

    def asked(self, scale: Scale, protocol: str, noise_std: float = USUAL_NOISE) -> Asked:
        """In the last hours; where the noise is not the usual one, fewer times."""
        return simulated_next_hours(self, scale, protocol, noise_std)

    def oracle(self, scale: Scale, asked: Asked, *, believes: float | None, workers: int) -> Estimator:
        """Of the same equations."""
        truth = asked.study if believes is None else replace(asked.study, noise_std=believes)
        return SemiSyntheticOracle(truth).fit(asked.history)

    def setting(self, scale: Scale) -> dict[str, Any]:
        """And which equations its outcomes follow."""
        names = _covariates(records(self.file).schema)
        return super().setting(scale) | {"gain": GAIN, "drivers": names[:DRIVEN_BY], "study_seed": STUDY_SEED}


REAL = RealWorld("icu")
SEMI_SYNTHETIC = SemiSyntheticWorld("semi-synthetic")


@cache
def records(data: Path) -> Cohort:
    """What the user has."""
    if (data / "data").is_dir() and not (data / "schema.toml").exists():
        raise CohortError(
            f"{data} is not a cohort's folder, but looks like MEDS. First: counterpath import {data} FOLDER --spec …"
        )
    cohort = read_cohort(data) if data.is_dir() else read_mimic_extract(data)
    if cohort.schema.time_unit != "hour":
        raise CohortError(
            f"{data.name} counts in {cohort.schema.time_unit}s, and these experiments ask an hour ahead. Read the "
            'tables with time_unit="hour".'
        )
    return cohort


@cache
def digest(data: Path) -> str:
    """Of all files of the user's records."""
    found = hashlib.sha256()
    for path in sorted(data.iterdir()) if data.is_dir() else [data]:
        if path.is_file():
            with path.open("rb") as file:
                found.update(hashlib.file_digest(file, "sha256").digest())
    return found.hexdigest()


@cache
def first_hours(data: Path) -> Cohort:
    """Thirty hours of each stay that is as long."""
    cohort = records(data)
    stays = np.flatnonzero(cohort.history_end >= HOURS)
    if len(stays) < FEWEST:
        raise CohortError(
            f"{data.name} has {counted(len(stays), 'patient')} with {HOURS} {cohort.schema.time_unit}s of records, and "
            f"learning, stopping and asking take at least {FEWEST}."
        )
    return cohort.take(stays).until(float(HOURS), ended="drop")


@cache
def recorded_next_hours(world: RealWorld, scale: Scale) -> Asked:
    """An hour before each of the last outcomes."""
    cohort = world.parts[1]
    outcome = cohort.records.values[:, 0]
    late = ~np.isnan(outcome) & (cohort.records.times > FIRST_CUT)
    whose, place = last_ones(np.bincount(cohort.records.patient_of_row[late], minlength=len(cohort)), scale.test)
    rows = np.flatnonzero(late)[place]
    every = named_by_moment(cohort, whose, cohort.records.times[rows] - 1.0)
    history = every.until(cohort.records.times[rows] - 1.0, ended="drop")
    still = every.positions(history.patients)
    outcomes, seen = outcome[rows][still][:, None], np.ones((len(history), 1), bool)
    return Asked(None, history, Plan.observed(every), outcomes, seen, cohort.person_of_patient[whose[still]])


@cache
def semi_synthetic(data: Path, noise_std: float) -> SemiSynthetic:
    """One study; with other noise the same patients, coefficients and random numbers."""
    cohort = records(data)
    names = _covariates(cohort.schema)
    return simulate_semi_synthetic(cohort, covariates=names, seed=STUDY_SEED, gain=GAIN, noise_std=noise_std)


def _covariates(schema: Schema) -> list[str]:
    """The paper's, as far as they are there; all numbers where they are too few."""
    numbers = [variable.name for variable in schema.covariates if variable.kind == "numeric"]
    found = [name for name in DRIVERS if name in numbers]
    return found if len(found) >= DRIVEN_BY else numbers


@cache
def simulated_next_hours(world: SemiSyntheticWorld, scale: Scale, protocol: str, noise_std: float) -> Asked:
    """Treated or not at each of the last hours, and the outcome an hour later."""
    study = semi_synthetic(world.file, noise_std)
    cohort = study.cohort[world.parts[1].patients]
    hours = np.rint(cohort.follow_up_end).astype(np.int64) - FIRST_CUT
    whose, place = last_ones(hours, scale.test)
    if noise_std != USUAL_NOISE:
        some = followed_through_noise(len(whose), scale)
        whose, place = whose[some], place[some]
    at = FIRST_CUT + place - (np.cumsum(hours) - hours)[whose]
    every = named_by_moment(cohort, whose, at)
    truth = replace(study.truth.select(cohort.patients.gather(whose)), ids=every.patients)
    rows = np.arange(len(whose))
    given = truth.given[rows, at] ^ (protocol == OTHER_CHOICE)
    now, never = Plan.dose(TREATMENT), Plan.none()
    plan = Plan.per_patient({who: now if does else never for who, does in zip(every.patients, given, strict=True)})
    return Asked(
        truth,
        every.until(at.astype(np.float64)),
        plan,
        truth.potential[rows, at, given.astype(np.int64)][:, None],
        truth.observed[rows, at + 1][:, None],
        cohort.person_of_patient[whose],
    )


def last_ones(
    number: Int64[np.ndarray, " patients"], at_most: int
) -> tuple[Int64[np.ndarray, " forecasts"], Int64[np.ndarray, " forecasts"]]:
    """Who is asked about, and about which of all that there is of all: as many last ones of each as make `at_most`.

    Args:
        number: How many each has; what a patient has stands together, in the patients' order.
        at_most: In all, but one of each.
    """
    each = np.minimum(number, max(at_most // len(number), 1))
    whose = np.repeat(np.arange(len(number)), each)
    of_own = np.arange(len(whose)) - (np.cumsum(each) - each)[whose]
    return whose, (np.cumsum(number) - each)[whose] + of_own


def named_by_moment(cohort: Cohort, whose: np.ndarray, at: np.ndarray) -> Cohort:
    """The same patient at another time has another name."""
    chosen = cohort.take(whose)
    names = pl.Series([f"{patient}@{time}" for patient, time in zip(chosen.patients, at, strict=True)])
    return chosen.renamed(names)
