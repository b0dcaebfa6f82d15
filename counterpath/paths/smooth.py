"""Paths that run smoothly through the records: linear, and cubic Hermite with backward differences (the paper's).

Between two records such a path moves towards the later one. It can therefore be cut only where the past is complete: at
the end of the history, or at a record where every variable was recorded.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache
from typing import Literal

import numpy as np
from jaxtyping import Bool, Float64

from counterpath.cohort import Finding
from counterpath.cohort.findings import name_patients
from counterpath.paths.control_path import ControlPath, PathError
from counterpath.paths.hold import HoldPath
from counterpath.paths.ragged_search import PathValues, QueryTimes

# Records closer than this share of a typical cell are one knot: a cubic through both would swing without end.
NEAREST_KNOTS = 1e-3
PATIENTS_AT_ONCE = 1024


@dataclass(frozen=True, eq=False)
class SmoothPath(ControlPath):
    """An interpolation through knots: the records, and the end of the history.

    Attributes:
        hold: The records, and what is derived from them.
        kind: `linear` or `hermite`.
        knots: On the model's clock, padded with later times.
        heights: X at the knots; NaN where a variable was not recorded.
        may_be_cut: Knots where the past is complete: every variable was recorded, or nothing follows.
    """

    hold: HoldPath
    kind: Literal["linear", "hermite"]
    knots: Float64[np.ndarray, "patients knots"]
    heights: Float64[np.ndarray, "patients knots channels"]
    may_be_cut: Bool[np.ndarray, "patients knots"]

    @property
    def channels(self) -> tuple[str, ...]:
        """As for `hold`."""
        return self.hold.channels

    @property
    def time_scale(self) -> float:
        """As for `hold`."""
        return self.hold.time_scale

    @classmethod
    def through(cls, hold: HoldPath, kind: Literal["linear", "hermite"]) -> SmoothPath:
        """Knots at the records and at the end of the history, where nothing new is seen."""
        records, patients = hold.cohort.records, len(hold.cohort)
        end = hold.cohort.history_end
        patient = np.concatenate([records.patient_of_row, np.arange(patients)])
        times = np.concatenate([records.times, end])
        recorded = np.concatenate([~np.isnan(records.values), np.zeros((patients, records.values.shape[1]), bool)])
        order = np.lexsort((np.arange(len(times)), times, patient))
        patient, times, recorded = patient[order], times[order], recorded[order]

        # Of times that nearly coincide the last is the knot, and what was recorded at any of them counts.
        keep = np.ones(len(times), bool)
        keep[:-1] = (np.diff(patient) != 0) | (np.diff(times) >= NEAREST_KNOTS * hold.grid.typical_width)
        knot = np.cumsum(keep) - keep
        seen = np.zeros((int(keep.sum()), recorded.shape[1]), bool)
        np.logical_or.at(seen, knot, recorded)
        patient, times = patient[keep], times[keep]

        number = np.bincount(patient, minlength=patients)
        place = np.arange(len(times)) - np.repeat(np.cumsum(number) - number, number)
        longest = max(int(np.max(number, initial=0)), 2)
        padding = end[:, None] + hold.time_scale * np.arange(1, longest + 1)  # any later times
        padding[patient, place] = times
        heights = hold.values(np.minimum(padding, end[:, None]))
        known = np.ones((patients, longest, seen.shape[1]), bool)
        known[patient, place] = seen
        may_be_cut = known.all(axis=-1) & (np.arange(longest) < number[:, None])
        may_be_cut[np.arange(patients), number - 1] = True  # nothing follows the end
        # A gap between two measurements is bridged; before the first and after the last the value is held.
        known[:, 0] = True
        measured = np.where(known & (np.arange(longest) < number[:, None])[:, :, None], np.arange(longest)[:, None], 0)
        known |= np.arange(longest)[:, None] > measured.max(axis=1, keepdims=True)
        for channels, j in _channels_of_variables(hold):
            heights[:, :, channels] = np.where(known[:, :, j, None], heights[:, :, channels], np.nan)
        return cls(hold, kind, hold.clock(padding), heights, may_be_cut)

    def require_causal(self, cuts: Float64[np.ndarray, "patients cuts"]) -> None:
        """A cut must be at a knot where the past is complete."""
        clock = self.hold.clock(cuts)
        allowed = ((self.knots[:, None, :] == clock[:, :, None]) & self.may_be_cut[:, None, :]).any(axis=-1)
        if allowed.all():
            return
        patient, cut = np.argwhere(~allowed)[0]
        who = self.hold.cohort.patients.gather(np.unique(np.argwhere(~allowed)[:, 0]))
        raise PathError(
            [
                Finding(
                    "sees_the_future",
                    "error",
                    f"{self.kind!r} interpolation cannot be cut at {self.hold.cohort.schema.time_unit} "
                    f"{cuts[patient, cut]:g} of patient {self.hold.cohort.patients[int(patient)]} "
                    f"({name_patients(who)} in all): it would see the next record.",
                    "Cut at a record with every variable, or use interpolation='hold'.",
                    count=int((~allowed).sum()),
                    patients=tuple(who),
                )
            ]
        )

    def values(self, times: QueryTimes) -> PathValues:
        """X at each time; outside the knots it stays where it is at the nearest."""
        clock = self.hold.clock(times)
        pieces = [
            _interpolate(self.kind, self.knots[i:j], self.heights[i:j], clock[i:j])
            for i in range(0, len(clock), PATIENTS_AT_ONCE)
            for j in (i + PATIENTS_AT_ONCE,)
        ]
        return np.concatenate(pieces) if pieces else np.empty((0, times.shape[1], len(self.channels)))


def _channels_of_variables(hold: HoldPath) -> list[tuple[list[int], int]]:
    """The channels that hold a variable's own value, with the variable's number."""
    schema, names = hold.cohort.schema, hold.channels
    found = []
    for j, variable in enumerate(schema.variables):
        own = [f"{variable.name}={level}" for level in variable.levels] or [variable.name]
        found.append(([names.index(name) for name in own], j))
    return found


def _interpolate(kind: str, knots: np.ndarray, heights: np.ndarray, clock: np.ndarray) -> np.ndarray:
    """Evaluate in float64: when the clock spans years, two visits of one day are one moment in float32."""
    import jax

    patients, queries = clock.shape
    more = [_bucket(n) - n for n in (patients, knots.shape[1], queries)]
    later = knots[:, -1:] + np.arange(1, more[1] + 1)
    knots = np.pad(np.concatenate([knots, later], axis=1), ((0, more[0]), (0, 0)), mode="edge")
    heights = np.pad(heights, ((0, more[0]), (0, more[1]), (0, 0)), mode="edge")
    clock = np.pad(clock, ((0, more[0]), (0, more[2])), mode="edge")
    with jax.enable_x64(True):
        return np.asarray(_compiled(kind)(knots, heights, clock))[:patients, :queries]


def _bucket(number: int) -> int:
    """The next power of two: ragged data then compile a few shapes, not one each."""
    return 1 << max(number - 1, 0).bit_length()


@cache
def _compiled(kind: str):
    import diffrax
    import jax
    import jax.numpy as jnp

    def one_patient(knots, heights, clock):
        if kind == "linear":
            filled = diffrax.linear_interpolation(knots, heights)
            path = diffrax.LinearInterpolation(knots, filled)
        else:
            cubics = diffrax.backward_hermite_coefficients(knots, heights)
            path = diffrax.CubicInterpolation(knots, cubics)
        return jax.vmap(path.evaluate)(jnp.clip(clock, knots[0], knots[-1]))

    return jax.jit(jax.vmap(one_patient))
