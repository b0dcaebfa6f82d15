"""The law of linear coefficients (a, b, c) over patients, and what records tell about a patient's own.

A linear mixed model: coefficients are normal about a mean that depends linearly on static covariates. It is learned by
expectation and maximisation, and followed record by record as in a Kalman filter.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import NamedTuple

import numpy as np
from jaxtyping import Float64

from counterpath.cohort.records import Observations
from counterpath.cohort.rounding import rounded
from counterpath.paths.response_noise import LEVELS, SMALLEST, ResponseNoise

OUTLIERS = 0.05  # share of records that are far from what was expected, and count little
FURTHER = 10.0  # times as far as others
ENOUGH = 1e-4  # of a round: what a record's log density gains
NOTICED = 1e-6  # of a return: what is less is none
NOISE_ROUNDS = 3  # of what each source of noise adds, in a round
DIGITS = 2  # of what would otherwise be a patient's value
BY_STATIC = 0.5  # of a coefficient's spread: how much of it a covariate is thought to say, before it is seen


class Coefficients(NamedTuple):
    """A normal law of (a, b, c).

    Attributes:
        mean: Of each.
        covariance: Of all.
    """

    mean: Float64[np.ndarray, "*known coefficients"]
    covariance: Float64[np.ndarray, "*known coefficients coefficients"]


@dataclass(frozen=True, eq=False)
class Law:
    """Of (a, b, c) of patients, and of what they leave.

    Attributes:
        mean: Of a patient, whose static covariates it is multiplied by; the first column is everybody's.
        covariance: About that mean.
        noise: About what they lead to.
        log_density: Of the records that it was learned from.
    """

    mean: Float64[np.ndarray, "coefficients columns"]
    covariance: Float64[np.ndarray, "coefficients coefficients"]
    noise: ResponseNoise
    log_density: float = -np.inf


class Followed(NamedTuple):
    """After each row.

    Attributes:
        known: The patient's coefficients.
        step: What they were multiplied by, to get there from the row before.
        log_density: Of the row.
    """

    known: Coefficients
    step: Float64[np.ndarray, "rows coefficients"]
    log_density: Float64[np.ndarray, " rows"]


def with_everybody(static: Float64[np.ndarray, "patients static"]) -> Float64[np.ndarray, "patients columns"]:
    """Static covariates after a column of ones."""
    return np.concatenate([np.ones((len(static), 1)), static], axis=1)


def step_from(
    moved: Float64[np.ndarray, "*#rows terms"],
    value: Float64[np.ndarray, "*#rows"],
    mean: Float64[np.ndarray, "*#rows coefficients"],
) -> Float64[np.ndarray, "*rows coefficients"]:
    """What the coefficients are multiplied by while terms move on from a value.

    An outcome that returns is on its way less and less: of the equation's solution without a dose, time is what a and
    c y are multiplied by.

    Args:
        moved: Time in usual gaps, and what each treatment has done meanwhile.
        value: Of the outcome, before.
        mean: Of the coefficients.
    """
    time, returns = np.broadcast_arrays(moved[..., 0], np.minimum(mean[..., -1], 0.0))
    passed = returns * time
    acting = np.where(passed < -NOTICED, np.expm1(passed) / np.where(returns < 0, returns, 1.0), time)
    return np.concatenate([acting[..., None], moved[..., 1:], (value * acting)[..., None]], axis=-1)


def done_by_treatments(
    step: Float64[np.ndarray, "*#rows coefficients"], mean: Float64[np.ndarray, "*#rows coefficients"]
) -> Float64[np.ndarray, "*rows treatments"]:
    """Of what the coefficients lead to, what comes from each treatment."""
    return step[..., 1:-1] * mean[..., 1:-1]


def follow(
    law: Law, records: Observations, values: Float64[np.ndarray, " rows"], terms: np.ndarray, columns: np.ndarray
) -> Followed:
    """Row after row, for all patients at once; sums are elementwise, so that nobody depends on who else is there.

    Args:
        law: What is usual.
        records: Of one outcome.
        values: On the model's scale.
        terms: At the records.
        columns: Of the patients: static covariates after a 1.
    """
    usual = (columns[:, None, :] * law.mean).sum(axis=-1)
    size = usual.shape[1]
    means = usual[records.patient_of_row]
    covariances = np.broadcast_to(law.covariance, (records.rows, size, size)).copy()
    steps, log_density = np.zeros((records.rows, size)), np.zeros(records.rows)
    longest_first = np.argsort(-records.per_patient, kind="stable")
    first, count = records.offsets[:-1][longest_first], records.per_patient[longest_first]
    for number in range(1, int(count.max(initial=0))):
        row = first[: int(np.searchsorted(-count, -number, side="left"))] + number  # of patients who have so many
        mean, covariance = means[row - 1], covariances[row - 1]
        moved, change = terms[row] - terms[row - 1], values[row] - values[row - 1]
        step = step_from(moved, values[row - 1], mean)
        told = (covariance * step[:, None, :]).sum(axis=-1)
        noise = law.noise.variance(moved[:, 0], values[row - 1], done_by_treatments(step, mean))
        unknown = (told * step).sum(axis=-1)
        error, expected = change - (mean * step).sum(axis=-1), noise + unknown
        weight, of_size = _weight(error**2 / expected)
        gain = told / (unknown + noise / weight)[:, None]
        means[row] = mean + gain * error[:, None]
        covariances[row] = covariance - gain[:, :, None] * told[:, None, :]
        steps[row], log_density[row] = step, of_size - 0.5 * np.log(expected)
    return Followed(Coefficients(means, covariances), steps, log_density)


def fit_law(
    records: Observations,
    values: Float64[np.ndarray, " rows"],
    terms: np.ndarray,
    columns: np.ndarray,
    start: Law | None,
    rounds: int,
) -> Law:
    """As likely as possible, by expectation and maximisation.

    Args:
        records: Of one outcome.
        values: On the model's scale.
        terms: At the records.
        columns: Of the patients.
        start: A law that is near; None for one from the sizes of changes.
        rounds: At most.
    """
    patient = records.patient_of_row
    follows = np.flatnonzero(np.diff(patient, prepend=-1) == 0)
    size = terms.shape[1] + 1
    treatments = terms.shape[1] - 1
    if not len(follows):
        noise = ResponseNoise.before_learning(1.0, np.arange(len(LEVELS), dtype=np.float64), treatments)
        return Law(np.zeros((size, columns.shape[1])), np.eye(size), noise)
    moved, change = terms[follows] - terms[follows - 1], values[follows] - values[follows - 1]
    if start is None:
        squares = (step_from(moved, values[follows - 1], np.zeros(size)) ** 2).mean(axis=0)
        spread = max(float((change**2).mean()), SMALLEST)
        nothing = np.zeros((size, columns.shape[1]))
        levels = np.array([rounded(float(level), DIGITS) for level in np.quantile(values, LEVELS)])
        noise = ResponseNoise.before_learning(0.1 * spread, levels, treatments)
        start = Law(nothing, np.diag(spread / np.where(squares > 0, squares, 1.0)), noise)
    last = np.flatnonzero(np.diff(patient, append=records.patients))
    of_patient = np.cumsum(np.diff(patient, prepend=-1) > 0)[follows] - 1  # among those with records
    seen = columns[patient[last]]
    law, followed = start, follow(start, records, values, terms, columns)
    for _ in range(rounds):
        each, own, step = followed.known.mean[last], followed.known.covariance[last], followed.step[follows]
        mean = _regressed(each, seen)
        apart = each - seen @ mean.T
        covariance = apart.T @ apart / len(each) + own.mean(axis=0)
        left = (change - (each[of_patient] * step).sum(axis=1)) ** 2
        left += np.einsum("ri,rij,rj->r", step, own[of_patient], step)
        done, noise = done_by_treatments(step, followed.known.mean[follows - 1]), law.noise
        for _ in range(NOISE_ROUNDS):
            weight, _ = _weight(left / noise.variance(moved[:, 0], values[follows - 1], done))
            noise = noise.learned(moved[:, 0], values[follows - 1], done, weight * left)
        law = Law(mean, covariance, noise)
        before = followed.log_density.mean()
        followed = follow(law, records, values, terms, columns)
        if abs(followed.log_density.mean() - before) < ENOUGH:
            break
    return replace(law, log_density=float(followed.log_density.sum()))


def _regressed(each: np.ndarray, columns: np.ndarray) -> np.ndarray:
    """The mean by static covariates, so that a few patients do not invent what these say."""
    usual = each.mean(axis=0)
    centre = columns[:, 1:].mean(axis=0)
    apart = columns[:, 1:] - centre
    slopes = np.linalg.solve(apart.T @ apart + np.eye(apart.shape[1]) / BY_STATIC**2, apart.T @ (each - usual)).T
    return np.concatenate([(usual - slopes @ centre)[:, None], slopes], axis=1)


def _weight(surprise: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """How much a record counts whose squared error is so many times the expected; and its log density at size one."""
    usual = np.log1p(-OUTLIERS) - 0.5 * surprise
    far = np.log(OUTLIERS / FURTHER) - 0.5 * surprise / FURTHER**2
    either = np.logaddexp(usual, far)
    is_usual = np.exp(usual - either)
    return is_usual + (1 - is_usual) / FURTHER**2, either
