"""Each patient's own linear response: how an outcome moves by itself, and with what is given.

    dy = (a + c y) dt + Σ_k b_k dE_k + noise

E_k is what treatment k has done so far, in usual doses: a dose unfolds with a half-life that belongs to the treatment.
Where c is negative the outcome returns to where it belongs. (a, b, c) of a patient are normal about those of training
patients. Every record of a patient moves them, unless it looks like an outlier. They start the forecast which a network
corrects.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import NamedTuple

import numpy as np
from jaxtyping import Float64

from counterpath.cohort import Cohort, Scaler, TreatmentEvents
from counterpath.cohort.records import Observations
from counterpath.cohort.rounding import rounded, rounded_down, rounded_up
from counterpath.cohort.scaling import Scale
from counterpath.paths.ragged_search import QueryTimes
from counterpath.paths.unfolding import unfolded

OUTLIERS = 0.05  # share of records that are far from what was expected, and count little
FURTHER = 10.0  # times as far as others
PATIENTS = 1_000  # say well enough what is usual
ROUNDS = 40  # of expectation and maximisation, at most
ENOUGH = 1e-4  # of a round: what a record's log density gains
QUICK_ROUNDS = 4  # from a law that is near, enough to tell half-lives apart
HALF_LIVES = (0.0, *(0.25 * 2.0**k for k in range(9)))  # candidates, in usual gaps between records
NOTICED = 1e-6  # of a return: what is less is none
SMALLEST = 1e-12  # variance of noise, on a scale where outcomes have 1
DIGITS = 2  # of what would otherwise be a patient's value
BEYOND = 0.1  # of the range of training outcomes: so far beyond it may lead


class Coefficients(NamedTuple):
    """A normal law of (a, b, c).

    Attributes:
        mean: Of each.
        covariance: Of all.
    """

    mean: Float64[np.ndarray, "*known coefficients"]
    covariance: Float64[np.ndarray, "*known coefficients coefficients"]


class Led(NamedTuple):
    """Where an outcome is expected at some times after a cut, on the model's scale.

    Attributes:
        last: It was there when it was last seen.
        there: Expected.
        off: How far from there it may well be.
    """

    last: Float64[np.ndarray, "patients cuts horizons"]
    there: Float64[np.ndarray, "patients cuts horizons"]
    off: Float64[np.ndarray, "patients cuts horizons"]


@dataclass(frozen=True, eq=False)
class LinearResponse:
    """What is usual for the responses of patients, of each outcome to time and to each treatment.

    Attributes:
        half_lives: Of what a treatment does; 0 where all is done at once.
        mean: Of (a, b, c).
        covariance: Likewise.
        noise_std: Of a change over the usual gap.
        usual_gap: Between two records of an outcome.
        lowest: No forecast lies below.
        highest: Nor above.
    """

    half_lives: Float64[np.ndarray, "outcomes treatments"]
    mean: Float64[np.ndarray, "outcomes coefficients"]
    covariance: Float64[np.ndarray, "outcomes coefficients coefficients"]
    noise_std: Float64[np.ndarray, " outcomes"]
    usual_gap: Float64[np.ndarray, " outcomes"]
    lowest: Float64[np.ndarray, " outcomes"]
    highest: Float64[np.ndarray, " outcomes"]

    def terms(
        self, outcome: int, scaler: Scaler, events: TreatmentEvents, times: QueryTimes
    ) -> Float64[np.ndarray, "patients queries terms"]:
        """Time, and what each treatment has done up to then; what counts is their change."""
        return _terms(scaler, events, times, self.usual_gap[outcome], self.half_lives[outcome])

    def coefficients(
        self, outcome: int, records: Observations, values: Float64[np.ndarray, " rows"], terms: np.ndarray
    ) -> Coefficients:
        """What (a, b, c) of a patient is thought to be after each record, from that and those before.

        Args:
            outcome: Its number.
            records: Those that hold it.
            values: On the model's scale.
            terms: At the records.
        """
        law = _Law(self.mean[outcome], self.covariance[outcome], float(self.noise_std[outcome]) ** 2)
        return _follow(law, records, values, terms).known

    def hints(self, outcome: int, led: Led) -> Float64[np.ndarray, "patients cuts horizons 2"]:
        """How far it leads, and how far that may be off, both in sizes that a network can take in."""
        noise = self.noise_std[outcome]
        return np.stack(
            [0.5 * np.arcsinh(0.1 * (led.there - led.last) / noise), 0.5 * np.log(led.off / noise)], axis=-1
        )

    def lead(
        self,
        outcome: int,
        last: Float64[np.ndarray, "patients cuts"],
        moved: Float64[np.ndarray, "patients cuts horizons terms"],
        known: Coefficients,
    ) -> tuple[Float64[np.ndarray, "patients cuts horizons"], Float64[np.ndarray, "patients cuts horizons"]]:
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
        step = _step(moved, last, mean)
        reached = last + (step * mean).sum(axis=-1)
        told = (covariance * step[..., None, :]).sum(axis=-1)
        variance = self.noise_std[outcome] ** 2 * _of_gaps(moved[..., 0]) + (told * step).sum(axis=-1)
        lowest, highest = np.minimum(last, self.lowest[outcome]), np.maximum(last, self.highest[outcome])
        return np.clip(reached, lowest, highest), np.minimum(np.sqrt(variance), 1.0)


def fit_linear_response(train: Cohort, scaler: Scaler) -> LinearResponse:
    """What is usual, from training patients: as likely as possible, with half-lives that are tried one by one.

    Args:
        train: The training patients.
        scaler: Fitted on them.
    """
    scaled = scaler.values(train.records.values)
    outcomes = range(len(train.schema.outcomes))
    found = [
        (*_fit_outcome(train.records, scaled[:, j], train.events, scaler), *_range(scaled[:, j], scaler.variables[j]))
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
    records: Observations, values: np.ndarray, events: TreatmentEvents, scaler: Scaler
) -> tuple[np.ndarray, ...]:
    present = ~np.isnan(values)
    own, values = records.keep(present), values[present]
    chosen = np.linspace(0, own.patients - 1, min(own.patients, PATIENTS)).astype(np.int64)
    numbered = Observations(own.offsets, own.times, values[:, None]).take(chosen)
    own, values, events = numbered, numbered.values[:, 0], events.take(chosen)
    gaps = np.diff(own.times)[np.diff(own.patient_of_row) == 0]
    usual_gap = rounded(float(np.median(gaps)), DIGITS) if len(gaps) else 1.0
    treatments = len(scaler.doses)

    def law_with(half_lives: np.ndarray, start: _Law | None, rounds: int) -> _Law:
        terms = at_rows(own, lambda times: _terms(scaler, events, times, usual_gap, half_lives))
        return _fit_law(own, values, terms, start, rounds)

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
    return half_lives, law.mean, law.covariance, np.array(law.variance**0.5), np.array(usual_gap)


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


# --- a normal law of (a, b, c), and what a record tells about a patient's


@dataclass(frozen=True, eq=False)
class _Law:
    """Normal (a, b, c), the variance of what they leave over a usual gap, and how likely records are under all that."""

    mean: np.ndarray
    covariance: np.ndarray
    variance: float
    log_density: float = -np.inf


def _of_gaps(gaps: np.ndarray) -> np.ndarray:
    """The variance of noise over a gap, where that over a usual one is 1: half is measured, half grows with time."""
    return 0.5 + 0.5 * gaps


def _weight(surprise: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """How much a record counts whose squared error is so many times the expected; and its log density at size one."""
    usual = np.log1p(-OUTLIERS) - 0.5 * surprise
    far = np.log(OUTLIERS / FURTHER) - 0.5 * surprise / FURTHER**2
    either = np.logaddexp(usual, far)
    is_usual = np.exp(usual - either)
    return is_usual + (1 - is_usual) / FURTHER**2, either


def _step(moved: np.ndarray, value: np.ndarray, mean: np.ndarray) -> np.ndarray:
    """What the coefficients are multiplied by while terms move on from a value.

    An outcome that returns is on its way less and less: of the equation's solution without a dose, time is what a and
    c y are multiplied by.
    """
    time, returns = np.broadcast_arrays(moved[..., 0], np.minimum(mean[..., -1], 0.0))
    passed = returns * time
    acting = np.where(passed < -NOTICED, np.expm1(passed) / np.where(returns < 0, returns, 1.0), time)
    return np.concatenate([acting[..., None], moved[..., 1:], (value * acting)[..., None]], axis=-1)


class _Followed(NamedTuple):
    """After each row: coefficients, the step that led there, and how likely the row was."""

    known: Coefficients
    step: np.ndarray
    log_density: np.ndarray


def _follow(law: _Law, records: Observations, values: np.ndarray, terms: np.ndarray) -> _Followed:
    """Row after row, for all patients at once; sums are elementwise, so that nobody depends on who else is there."""
    size = len(law.mean)
    means = np.broadcast_to(law.mean, (records.rows, size)).copy()
    covariances = np.broadcast_to(law.covariance, (records.rows, size, size)).copy()
    steps, log_density = np.zeros((records.rows, size)), np.zeros(records.rows)
    longest_first = np.argsort(-records.per_patient, kind="stable")
    first, count = records.offsets[:-1][longest_first], records.per_patient[longest_first]
    for number in range(1, int(count.max(initial=0))):
        row = first[: int(np.searchsorted(-count, -number, side="left"))] + number  # of patients who have so many
        mean, covariance = means[row - 1], covariances[row - 1]
        moved, change = terms[row] - terms[row - 1], values[row] - values[row - 1]
        step = _step(moved, values[row - 1], mean)
        told = (covariance * step[:, None, :]).sum(axis=-1)
        noise, unknown = law.variance * _of_gaps(moved[:, 0]), (told * step).sum(axis=-1)
        error, expected = change - (mean * step).sum(axis=-1), noise + unknown
        weight, of_size = _weight(error**2 / expected)
        gain = told / (unknown + noise / weight)[:, None]
        means[row] = mean + gain * error[:, None]
        covariances[row] = covariance - gain[:, :, None] * told[:, None, :]
        steps[row], log_density[row] = step, of_size - 0.5 * np.log(expected)
    return _Followed(Coefficients(means, covariances), steps, log_density)


def _fit_law(records: Observations, values: np.ndarray, terms: np.ndarray, start: _Law | None, rounds: int) -> _Law:
    """As likely as possible, by expectation and maximisation."""
    patient = records.patient_of_row
    follows = np.flatnonzero(np.diff(patient, prepend=-1) == 0)
    size = terms.shape[1] + 1
    if not len(follows):
        return _Law(np.zeros(size), np.eye(size), 1.0)
    moved, change = terms[follows] - terms[follows - 1], values[follows] - values[follows - 1]
    if start is None:
        squares = (_step(moved, values[follows - 1], np.zeros(size)) ** 2).mean(axis=0)
        spread = max(float((change**2).mean()), SMALLEST)
        start = _Law(np.zeros(size), np.diag(spread / np.where(squares > 0, squares, 1.0)), 0.1 * spread)
    last = np.flatnonzero(np.diff(patient, append=records.patients))
    of_patient = np.cumsum(np.diff(patient, prepend=-1) > 0)[follows] - 1  # among those with records
    law, followed = start, _follow(start, records, values, terms)
    for _ in range(rounds):
        each, own, step = followed.known.mean[last], followed.known.covariance[last], followed.step[follows]
        mean = each.mean(axis=0)
        covariance = (each - mean).T @ (each - mean) / len(each) + own.mean(axis=0)
        left = (change - (each[of_patient] * step).sum(axis=1)) ** 2
        left += np.einsum("ri,rij,rj->r", step, own[of_patient], step)
        left /= _of_gaps(moved[:, 0])
        weight, _ = _weight(left / law.variance)
        law = _Law(mean, covariance, max(float((weight * left).mean()), SMALLEST))
        before = followed.log_density.mean()
        followed = _follow(law, records, values, terms)
        if abs(followed.log_density.mean() - before) < ENOUGH:
            break
    return replace(law, log_density=float(followed.log_density.sum()))
