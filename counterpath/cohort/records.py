"""Ragged columns: what was recorded of every patient, sorted by patient and time."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, fields

import numpy as np
from jaxtyping import Bool, Float64, Int64


def freeze(array: np.ndarray) -> np.ndarray:
    """The same array, read-only."""
    array.setflags(write=False)
    return array


def offsets_from(patient_of_row: Int64[np.ndarray, " rows"], patients: int) -> Int64[np.ndarray, " offsets"]:
    """Where each patient's rows begin and end, from sorted patient numbers."""
    return offsets_from_counts(np.bincount(patient_of_row, minlength=patients))


def offsets_from_counts(rows: Int64[np.ndarray, " patients"]) -> Int64[np.ndarray, " offsets"]:
    """Where each patient's rows begin and end, from how many there are."""
    return np.concatenate([[0], np.cumsum(rows)]).astype(np.int64)


@dataclass(frozen=True, eq=False)
class Ragged:
    """Rows of many patients end to end: patient p owns rows offsets[p] to offsets[p + 1]."""

    offsets: Int64[np.ndarray, " offsets"]

    def __post_init__(self):
        for field in fields(self):
            freeze(getattr(self, field.name))

    @property
    def patients(self) -> int:
        """Number of patients, with or without rows."""
        return len(self.offsets) - 1

    @property
    def rows(self) -> int:
        """Number of rows of all patients."""
        return int(self.offsets[-1])

    @property
    def per_patient(self) -> Int64[np.ndarray, " patients"]:
        """Number of rows of each patient."""
        return np.diff(self.offsets)

    @property
    def patient_of_row(self) -> Int64[np.ndarray, " rows"]:
        """The patient's number, for each row."""
        return np.repeat(np.arange(self.patients), self.per_patient)

    def _columns(self) -> list[str]:
        return [field.name for field in fields(self) if field.name != "offsets"]

    def keep(self, mask: Bool[np.ndarray, " rows"]):
        """The rows where `mask` holds; every patient stays."""
        kept = np.concatenate([[0], np.cumsum(mask)])[self.offsets].astype(np.int64)
        return type(self)(kept, *(getattr(self, name)[mask] for name in self._columns()))

    def take(self, patients: Int64[np.ndarray, " chosen"]):
        """These patients, in this order."""
        counts = self.per_patient[patients]
        offsets = offsets_from_counts(counts)
        rows = np.arange(offsets[-1]) - np.repeat(offsets[:-1] - self.offsets[patients], counts)
        return type(self)(offsets, *(getattr(self, name)[rows] for name in self._columns()))

    @classmethod
    def joined(cls, parts: Sequence[Ragged]):
        """Patients of one after those of the other."""
        offsets = offsets_from_counts(np.concatenate([part.per_patient for part in parts]))
        return cls(offsets, *(np.concatenate([getattr(p, f.name) for p in parts]) for f in fields(cls)[1:]))

    def equals(self, other: Ragged) -> bool:
        """Equal to the bit, missing values included."""
        return all(np.array_equal(getattr(self, f.name), getattr(other, f.name), equal_nan=True) for f in fields(self))


@dataclass(frozen=True, eq=False)
class Observations(Ragged):
    """What was measured. A row is one time of one patient.

    Attributes:
        times: In the cohort's unit, since the patient's time zero; increasing within a patient.
        values: One column per outcome and covariate; NaN where not recorded, level numbers for categories.
    """

    times: Float64[np.ndarray, " rows"]
    values: Float64[np.ndarray, "rows variables"]


@dataclass(frozen=True, eq=False)
class TreatmentEvents(Ragged):
    """What was given: single doses, and intervals with a rate.

    Attributes:
        treatment: Number of the treatment in the schema.
        start: Time of the dose, or start of the interval.
        stop: End of the interval; NaN for a single dose; infinite where the interval is still running.
        amount: The dose, or the rate.
    """

    treatment: Int64[np.ndarray, " rows"]
    start: Float64[np.ndarray, " rows"]
    stop: Float64[np.ndarray, " rows"]
    amount: Float64[np.ndarray, " rows"]

    @property
    def is_dose(self) -> Bool[np.ndarray, " rows"]:
        """True for single doses, false for intervals."""
        return np.isnan(self.stop)

    @classmethod
    def from_rows(
        cls,
        patient: Int64[np.ndarray, " rows"],
        treatment: Int64[np.ndarray, " rows"],
        start: Float64[np.ndarray, " rows"],
        stop: Float64[np.ndarray, " rows"],
        amount: Float64[np.ndarray, " rows"],
        *,
        patients: int,
    ) -> TreatmentEvents:
        """Rows in any order, sorted by patient, time and treatment."""
        order = np.lexsort((amount, stop, treatment, start, patient))
        columns: Sequence[np.ndarray] = (treatment, start, stop, amount)
        return cls(offsets_from(patient[order], patients), *(column[order] for column in columns))
