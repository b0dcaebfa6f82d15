"""Each patient's own linear response: how an outcome moves by itself, and with what is given.

    dy = (a + c y) dt + Σ_k b_k dE_k + noise

E_k is what treatment k has done so far, in usual doses: a dose unfolds with a half-life that belongs to the treatment.
Where c is negative the outcome returns to where it belongs. (a, b, c) of a patient are normal about what is usual
for their static covariates. Every record of a patient moves them, unless it looks like an outlier. They start the
forecast which a network corrects.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from jaxtyping import Float64

from counterpath.cohort import Cohort, Scaler, TreatmentEvents
from counterpath.cohort.records import Observations
from counterpath.cohort.rounding import rounded, rounded_down, rounded_up
from counterpath.cohort.scaling import Scale
from counterpath.paths.coefficient_law import (
    Coefficients,
    Law,
    done_by_treatments,
    fit_law,
    follow,
    step_from,
    with_everybody,
)
from counterpath.paths.ragged_search import QueryTimes
from counterpath.paths.response_noise import ResponseNoise
from counterpath.paths.static_columns import static_columns
from counterpath.paths.unfolding import unfolded

PATIENTS = 1_000  # say well enough what is usual
ROUNDS = 40  # of expectation and maximisation, at most
QUICK_ROUNDS = 4  # from a law that is near, enough to tell half-lives apart
HALF_LIVES = (0.0, *(0.25 * 2.0**k for k in range(9)))  # candidates, in usual gaps between records
DIGITS = 2  # of what would otherwise be a patient's value
TINY = 1e-9  # beside any coefficient's noise
ROUNDING = 1e-6  # of a correlation
BEYOND = 0.1  # of the range of training outcomes: so far beyond it may lead


class Led(NamedTuple):
    """Where an outcome is expected at some times after a cut, on the model's scale.

    Attributes:
        last: It was there when it was last seen.
        there: Expected.
        off: How far from there it may well be.
        unsure: With standard normal numbers, how `there` would differ had the patient's records had other noise; as a
            share of `off`.
    """

    last: Float64[np.ndarray, "patients cuts horizons"]
    there: Float64[np.ndarray, "patients cuts horizons"]
    off: Float64[np.ndarray, "patients cuts horizons"]
    unsure: Float64[np.ndarray, "patients cuts horizons coefficients"]


@dataclass(frozen=True, eq=False)
class LinearResponse:
    """What is usual for the responses of patients, of each outcome to time and to each treatment.

    Attributes:
        half_lives: Of what a treatment does; 0 where all is done at once.
        mean: Of (a, b, c), by static covariates; the first column is everybody's.
        covariance: Likewise.
        noise_measured: Variance of a change, whatever the gap.
        noise_rates: Variance per usual gap, at each level.
        noise_shares: Of the square of what each treatment does.
        noise_levels: Values of the outcome, in ascending order.
        usual_gap: Between two records of an outcome.
        lowest: No forecast lies below.
        highest: Nor above.
    """

    half_lives: Float64[np.ndarray, "outcomes treatments"]
    mean: Float64[np.ndarray, "outcomes coefficients columns"]
    covariance: Float64[np.ndarray, "outcomes coefficients coefficients"]
    noise_measured: Float64[np.ndarray, " outcomes"]
    noise_rates: Float64[np.ndarray, "outcomes levels"]
    noise_shares: Float64[np.ndarray, "outcomes treatments"]
    noise_levels: Float64[np.ndarray, "outcomes levels"]
    usual_gap: Float64[np.ndarray, " outcomes"]
    lowest: Float64[np.ndarray, " outcomes"]
    highest: Float64[np.ndarray, " outcomes"]

    def terms(
        self, outcome: int, scaler: Scaler, events: TreatmentEvents, times: QueryTimes
    ) -> Float64[np.ndarray, "patients queries terms"]:
        """Time, and what each treatment has done up to then; what counts is their change."""
        return _terms(scaler, events, times, self.usual_gap[outcome], self.half_lives[outcome])

    def coefficients(
        self,
        outcome: int,
        records: Observations,
        values: Float64[np.ndarray, " rows"],
        terms: np.ndarray,
        static: Float64[np.ndarray, "patients static"],
    ) -> Coefficients:
        """What (a, b, c) of a patient is thought to be after each record, from that and those before.

        Args:
            outcome: Its number.
            records: Those that hold it.
            values: On the model's scale.
            terms: At the records.
            static: Covariates of the patients.
        """
        law = Law(self.mean[outcome], self.covariance[outcome], self.noise(outcome))
        return follow(law, records, values, terms, with_everybody(static)).known

    def noise(self, outcome: int) -> ResponseNoise:
        """About what is expected of an outcome."""
        return ResponseNoise(
            float(self.noise_measured[outcome]),
            self.noise_rates[outcome],
            self.noise_shares[outcome],
            self.noise_levels[outcome],
        )

    def hints(self, outcome: int, led: Led) -> Float64[np.ndarray, "patients cuts horizons 2"]:
        """How far it leads, and how far that may be off, both in sizes that a network can take in."""
        noise = self.noise(outcome).usual_std
        return np.stack(
            [0.5 * np.arcsinh(0.1 * (led.there - led.last) / noise), 0.5 * np.log(led.off / noise)], axis=-1
        )

    def lead(
        self,
        outcome: int,
        last: Float64[np.ndarray, "patients cuts"],
        moved: Float64[np.ndarray, "patients cuts horizons terms"],
        known: Coefficients,
    ) -> Led:
        """Where it leads from the last outcome, and how far the outcome may well be from there.

        The one leaves the range of training outcomes by a little at most, and never what is possible; the other is at
        most their standard deviation, which is 1.

        Args:
            outcome: Its number.
            last: Its last value, on the model's scale.
            moved: How the terms change from then on.
            known: Of the patient, at the cut.
        """
        mean, covariance = known.mean[:, :, None], known.covariance[:, :, None]
        last = last[..., None]
        step = step_from(moved, last, mean)
        reached = last + (step * mean).sum(axis=-1)
        told = (covariance * step[..., None, :]).sum(axis=-1)
        noise = self.noise(outcome).variance(moved[..., 0], last, done_by_treatments(step, mean))
        std = np.sqrt(noise + (told * step).sum(axis=-1))
        unsure = (step[..., None, :] * self._noise_in(outcome, known)[:, :, None]).sum(axis=-1) / std[..., None]
        lowest, highest = np.minimum(last, self.lowest[outcome]), np.maximum(last, self.highest[outcome])
        there = np.clip(reached, lowest, highest)
        return Led(np.broadcast_to(last, there.shape), there, np.minimum(std, 1.0), unsure)

    def _noise_in(
        self, outcome: int, known: Coefficients
    ) -> Float64[np.ndarray, "patients cuts coefficients coefficients"]:
        """Rows whose products with the coefficients' steps have the variance that comes from the records' noise.

        Of a normal law with covariance P, records that tell J leave C = (P⁻¹ + J)⁻¹. The estimate is off by what is not
        known, C, of which the records' own noise is C J C = C − C P⁻¹ C: nothing without records, almost all with many.
        """
        size = np.sqrt(np.diagonal(self.covariance[outcome])) + TINY
        usual = np.linalg.cholesky(self.covariance[outcome] / np.outer(size, size) + ROUNDING * np.eye(len(size)))
        usual = size[:, None] * usual
        inverse = np.linalg.inv(usual)
        left, axes = np.linalg.eigh(inverse @ known.covariance @ inverse.T)  # of what was not known, the share left
        std = np.sqrt(np.maximum(left * (1 - left), 0.0))
        return (axes * std[..., None, :]) @ axes.swapaxes(-1, -2) @ usual.T


def fit_linear_response(train: Cohort, scaler: Scaler) -> LinearResponse:
    """What is usual, from training patients: as likely as possible, with half-lives that are tried one by one.

    Args:
        train: The training patients.
        scaler: Fitted on them.
    """
    scaled = scaler.values(train.records.values)
    outcomes = range(len(train.schema.outcomes))
    columns = with_everybody(static_columns(train, scaler))
    found = [
        (
            *_fit_outcome(train.records, scaled[:, j], train.events, scaler, columns),
            *_range(scaled[:, j], scaler.variables[j]),
        )
        for j in outcomes
    ]
    return LinearResponse(*(np.stack(parts) for parts in zip(*found, strict=True)))


def _range(values: np.ndarray, scale: Scale) -> tuple[np.ndarray, np.ndarray]:
    """A little more than that of the training outcomes, but never beyond what an outcome can be."""
    lowest, highest = float(np.nanmin(values)), float(np.nanmax(values))
    beyond = BEYOND * (highest - lowest)
    lowest, highest = rounded_down(lowest - beyond, DIGITS), rounded_up(highest + beyond, DIGITS)
    if scale.lower is not None:
        lowest = max(lowest, float(scale.forward(np.array(scale.lower))))
    if scale.upper is not None:
        highest = min(highest, float(scale.forward(np.array(scale.upper))))
    return np.array(lowest), np.array(highest)


def _fit_outcome(
    records: Observations, values: np.ndarray, events: TreatmentEvents, scaler: Scaler, columns: np.ndarray
) -> tuple[np.ndarray, ...]:
    present = ~np.isnan(values)
    own, values = records.keep(present), values[present]
    chosen = np.linspace(0, own.patients - 1, min(own.patients, PATIENTS)).astype(np.int64)
    numbered = Observations(own.offsets, own.times, values[:, None]).take(chosen)
    own, values, events = numbered, numbered.values[:, 0], events.take(chosen)
    columns = columns[chosen]
    gaps = np.diff(own.times)[np.diff(own.patient_of_row) == 0]
    usual_gap = rounded(float(np.median(gaps)), DIGITS) if len(gaps) else 1.0
    treatments = len(scaler.doses)

    def law_with(half_lives: np.ndarray, start: Law | None, rounds: int) -> Law:
        terms = at_rows(own, lambda times: _terms(scaler, events, times, usual_gap, half_lives))
        return fit_law(own, values, terms, columns, start, rounds)

    half_lives = np.zeros(treatments)
    best = law_with(half_lives, None, 3 * QUICK_ROUNDS)
    for k in range(treatments):
        worse = 0
        for candidate in HALF_LIVES[1:]:
            tried = np.where(np.arange(treatments) == k, usual_gap * candidate, half_lives)
            law = law_with(tried, best, QUICK_ROUNDS)
            if law.log_density > best.log_density:
                best, half_lives, worse = law, tried, 0
            else:
                worse += 1
            if worse == 2:  # what is longer still fits worse still
                break
    law = law_with(half_lives, best, ROUNDS)
    noise = law.noise
    amounts = np.array(noise.measured), noise.rates, noise.shares, noise.levels
    return half_lives, law.mean, law.covariance, *amounts, np.array(usual_gap)


def _terms(
    scaler: Scaler, events: TreatmentEvents, times: QueryTimes, usual_gap: float, half_lives: np.ndarray
) -> np.ndarray:
    columns = [times / usual_gap]
    for code, half_life in enumerate(half_lives):
        usual = scaler.doses[code], scaler.rates[code] * usual_gap
        columns.append(unfolded(events.keep(events.treatment == code), usual, float(half_life), times))
    return np.stack(columns, axis=-1)


def at_rows(records: Observations, of_times: Callable[[QueryTimes], np.ndarray]) -> np.ndarray:
    """A function of each patient's times, at their records."""
    place = np.arange(records.rows) - np.repeat(records.offsets[:-1], records.per_patient)
    times = np.zeros((records.patients, int(records.per_patient.max(initial=0))))
    times[records.patient_of_row, place] = records.times
    return of_times(times)[records.patient_of_row, place]
