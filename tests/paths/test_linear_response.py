"""Patients who respond linearly, whose coefficients are known."""

from dataclasses import replace

import numpy as np
import polars as pl
import pytest

import counterpath as cp
from counterpath.cohort import Cohort, Grid, fit_scaler
from counterpath.cohort.cuts import events_until_and_from
from counterpath.paths import linear_response
from counterpath.paths.hold import HoldPath
from counterpath.paths.linear_response import at_rows, fit_linear_response

PATIENTS, NOISE, HALF_LIFE = 400, 0.05, 2.0
MEAN = np.array([0.1, -1.0])  # a per day, b per dose
SPREAD = np.array([[0.05, -0.1], [-0.1, 0.5]])  # lower Cholesky factor of their covariance
GRID = Grid(np.array([0.0, 10.0, 20.0]))


@pytest.fixture(scope="module")
def study():
    """Visits each day or two, a dose now and then that takes effect with a half-life; coefficients of everybody."""
    rng = np.random.default_rng(0)
    truth = MEAN + rng.normal(size=(PATIENTS, 2)) @ SPREAD.T
    seen, given = [], []
    for patient, (drift, effect) in enumerate(truth):
        times = np.cumsum(rng.choice([1.0, 2.0], size=15))
        doses = np.sort(rng.choice(np.arange(1.0, 25.0, 0.5), size=4, replace=False))
        done = sum(np.where(times > d, 1 - 0.5 ** ((times - d) / HALF_LIFE), 0.0) for d in doses)
        noise = np.cumsum(NOISE * np.sqrt(np.diff(times, prepend=times[0])) * rng.normal(size=len(times)))
        values = drift * times + effect * done + noise
        seen += [(patient, time, value) for time, value in zip(times, values, strict=True)]
        given += [(patient, "pill", dose, 1.0) for dose in doses]
    cohort = Cohort.from_tables(
        pl.DataFrame(seen, schema=["patient", "time", "y"], orient="row"),
        pl.DataFrame(given, schema=["patient", "treatment", "start", "dose"], orient="row"),
        outcome="y",
        time_unit="day",
        time_zero="as given",
    )
    return cohort, truth


@pytest.fixture(scope="module")
def fitted(study):
    cohort, _ = study
    scaler = fit_scaler(cohort, transform="standard")
    return scaler, fit_linear_response(cohort, scaler)


def coefficients(cohort, scaler, response):
    """After each record."""
    terms = at_rows(cohort.records, lambda times: response.terms(0, scaler, cohort.events, times))
    return response.coefficients(0, cohort.records, scaler.values(cohort.records.values)[:, 0], terms)


def last_coefficients(cohort, scaler, response):
    """In the outcome's unit, per day and per dose."""
    found = coefficients(cohort, scaler, response).mean[cohort.records.offsets[1:] - 1]
    return found * scaler.variables[0].std / [response.usual_gap[0], 1.0]


def test_what_is_usual_is_learned_from_the_patients(study, fitted):
    """Half-life, means, spreads and noise."""
    _, truth = study
    scaler, response = fitted
    unit = scaler.variables[0].std / np.array([response.usual_gap[0], 1.0])
    assert response.half_lives[0, 0] == HALF_LIFE
    # Coefficients of a patient are told to 0.02 and 0.1; of 400, means to a twentieth of that, and 0.01 is twice it.
    np.testing.assert_allclose(response.mean[0] * unit, truth.mean(axis=0), atol=0.01)
    covariance = response.covariance[0] * unit * unit[:, None]
    # A spread of 400 is known to 1/√800, which is 3.5%; 10% is three times that.
    np.testing.assert_allclose(np.sqrt(np.diag(covariance)), truth.std(axis=0), rtol=0.1)
    correlation = covariance[0, 1] / np.sqrt(covariance[0, 0] * covariance[1, 1])
    assert correlation == pytest.approx(np.corrcoef(truth.T)[0, 1], abs=0.1)
    spread = response.noise_std[0] * scaler.variables[0].std
    assert 0.5 * NOISE < spread < 1.5 * NOISE  # of a t with three degrees, whose scale is below its std


def test_a_record_tells_what_is_a_patients_own(study, fitted):
    cohort, truth = study
    error = last_coefficients(cohort, *fitted) - truth
    assert np.all(np.sqrt((error**2).mean(axis=0)) < [0.025, 0.12])  # of spreads of 0.05 and 0.51
    assert np.all(np.abs(error.mean(axis=0)) < [0.005, 0.02])


def test_with_normal_noise_it_is_conjugate_bayes(study, fitted, monkeypatch):
    cohort, _ = study
    scaler, response = fitted
    monkeypatch.setattr(linear_response, "DEGREES", 1e12)
    records, values = cohort.records, scaler.values(cohort.records.values)[:, 0]
    terms = at_rows(records, lambda times: response.terms(0, scaler, cohort.events, times))
    found = coefficients(cohort, scaler, response)
    for patient in (0, 7, 399):
        rows = slice(*records.offsets[patient : patient + 2])
        step, change = np.diff(terms[rows], axis=0), np.diff(values[rows])
        precision = np.linalg.inv(response.covariance[0])
        weight = 1 / (response.noise_std[0] ** 2 * (0.5 + 0.5 * step[:, 0]))
        expected = np.linalg.inv(precision + (step.T * weight) @ step)
        np.testing.assert_allclose(found.covariance[rows][-1], expected, rtol=1e-6)
        told = precision @ response.mean[0] + (step.T * weight) @ change
        np.testing.assert_allclose(found.mean[rows][-1], expected @ told, rtol=1e-6)


def test_an_outlier_hardly_counts(study, fitted):
    """One record that is off by a hundred times the noise, and the next that is back."""
    cohort, _ = study
    values = cohort.records.values.copy()
    values[cohort.records.offsets[:-1] + 7] += 100 * NOISE
    wrong = replace(cohort, records=replace(cohort.records, values=values))
    moved = last_coefficients(wrong, *fitted) - last_coefficients(cohort, *fitted)
    assert np.quantile(np.abs(moved), 0.9, axis=0)[0] < 0.02
    assert np.quantile(np.abs(moved), 0.9, axis=0)[1] < 0.1  # 5.0 was added


def test_what_comes_later_and_who_else_is_there_do_not_matter_to_the_bit(study, fitted):
    cohort, _ = study
    some = cohort[4:7]
    known = some.until(9.0)
    whole, few = (coefficients(part, *fitted) for part in (cohort, known))
    rows = [
        np.arange(*part.records.offsets[first : first + 2])[: known.records.per_patient[i]]
        for i in range(3)
        for part, first in ((cohort, 4 + i), (known, i))
    ]
    for all_of_them, own in zip(rows[::2], rows[1::2], strict=True):
        for a, b in zip(whole, few, strict=True):
            np.testing.assert_array_equal(a[all_of_them], b[own])


# Where it leads


def led_to(cohort, fitted, cuts, events, elapsed):
    scaler, response = fitted
    each = np.full((len(cohort), 1), cuts) if np.isscalar(cuts) else cuts[:, None]
    path = HoldPath.of(cohort, scaler, GRID, np.zeros(len(cohort)), response)
    led = path.led_to(0, each, events, np.tile(np.asarray(elapsed), (len(cohort), 1, 1)))
    return led.there[:, 0], led.off[:, 0]


def test_it_leads_on_from_the_last_outcome_with_what_is_still_to_come_and_what_is_planned(study, fitted):
    cohort, _ = study
    scaler, response = fitted
    today, plan = cohort.until(10.0), cp.Plan.dose("pill", at=0.5)
    events = events_until_and_from(today.events, today.history_end, plan.resolve(today))
    start, unit = led_to(today, fitted, 10.0, events, [1.0, 3.0])
    last = today.records.offsets[1:] - 1
    known = coefficients(today, scaler, response)
    for patient in (0, 5, 50):
        row, seen = last[patient], today.records.times[last[patient]]
        doses = [*today.events.start[slice(*today.events.offsets[patient : patient + 2])], 10.5]
        for number, later in enumerate((11.0, 13.0)):
            done = [sum(1 - 0.5 ** ((t - d) / HALF_LIFE) for d in doses if d < t) for t in (seen, later)]
            moved = np.array([(later - seen) / response.usual_gap[0], done[1] - done[0]])
            expected = scaler.values(today.records.values)[row, 0] + moved @ known.mean[row]
            np.testing.assert_allclose(start[patient, number], expected)
            variance = response.noise_std[0] ** 2 * (0.5 + 0.5 * moved[0]) + moved @ known.covariance[row] @ moved
            np.testing.assert_allclose(unit[patient, number], np.sqrt(variance))


def test_outcomes_are_about_as_far_from_it_as_it_says(study, fitted):
    """Of changes between visits: about as many within its unit as a t with three degrees has within its scale."""
    cohort, _ = study
    at, elapsed = cohort.records.times[cohort.records.offsets[1:] - 2], np.array([1.0, 2.0])
    start, unit = led_to(cohort, fitted, at, cohort.events, elapsed)
    last = cohort.records.offsets[1:] - 1
    gap = (cohort.records.times[last] - at).astype(int) - 1
    scaled = fitted[0].values(cohort.records.values)[last, 0]
    off = (scaled - start[np.arange(len(cohort)), gap]) / unit[np.arange(len(cohort)), gap]
    assert 0.5 < np.mean(np.abs(off) < 1) < 0.75  # 61%
    assert abs(np.median(off)) < 0.2


def test_it_does_not_leave_the_range_of_the_outcomes(study, fitted):
    cohort, _ = study
    scaler, response = fitted
    start, unit = led_to(cohort, fitted, cohort.history_end, cohort.events, [1.0, 1e6])
    held = scaler.values(cohort.records.values)[cohort.records.offsets[1:] - 1, 0]
    assert np.all(start <= np.maximum(held, response.highest[0])[:, None])
    assert np.all(start >= np.minimum(held, response.lowest[0])[:, None])
    assert np.isin(start[:, 1], [response.lowest[0], response.highest[0]]).mean() > 0.9  # it would have
    np.testing.assert_array_equal(unit[:, 1], 1.0)


def test_without_a_response_the_last_outcome_stays(study, fitted):
    cohort, _ = study
    start, unit = led_to(cohort, (fitted[0], None), cohort.history_end, cohort.events, [1.0, 3.0])
    held = fitted[0].values(cohort.records.values)[cohort.records.offsets[1:] - 1, 0]
    np.testing.assert_array_equal(start, np.stack([held, held], axis=1))
    np.testing.assert_array_equal(unit, 1.0)


def test_an_outcome_that_was_never_seen_stands_at_the_mean(study, fitted):
    cohort, _ = study
    values = np.full_like(cohort.records.values, np.nan)
    nothing = replace(cohort, records=replace(cohort.records, values=values))
    start, unit = led_to(nothing, fitted, cohort.history_end, cohort.events, [1.0, 3.0])
    np.testing.assert_array_equal(start, 0.0)
    np.testing.assert_array_equal(unit, 1.0)


def test_it_does_not_leave_the_bounds_of_an_outcome():
    """Tumours that are nearly gone and get more of what they respond to."""
    cohort = cp.simulate_tumor_growth(200, seed=0).cohort
    scaler = fit_scaler(cohort)
    response = fit_linear_response(cohort, scaler)
    path = HoldPath.of(cohort, scaler, GRID, np.zeros(len(cohort)), response)
    daily = cp.Plan.repeat("radiotherapy", every=1.0, times=5).resolve(cohort)
    events = events_until_and_from(cohort.events, cohort.history_end, daily)
    led = path.led_to(0, cohort.history_end[:, None], events, np.full((len(cohort), 1, 1), 5.0))
    nothing = scaler.variables[0].forward(np.array([0.0]))[0]
    assert led.there.min() == pytest.approx(nothing)
    assert (led.there < nothing + 0.1).mean() > 0.1  # many would be below
