"""Patients who respond linearly, whose coefficients are known."""

from dataclasses import replace

import numpy as np
import polars as pl
import pytest

import counterpath as cp
from counterpath.cohort import Cohort, Grid, fit_scaler
from counterpath.cohort.cuts import events_until_and_from
from counterpath.paths import coefficient_law
from counterpath.paths.hold import HoldPath
from counterpath.paths.linear_response import at_rows, fit_linear_response
from counterpath.paths.static_columns import static_columns

PATIENTS, NOISE, HALF_LIFE = 400, 0.05, 2.0
MEAN = np.array([0.1, -1.0, -0.1])  # a per day, b per dose, c per day
SPREAD = np.array([[0.05, 0.0, 0.0], [-0.1, 0.5, 0.0], [0.0, 0.0, 0.03]])  # lower Cholesky factor of their covariance
GRID = Grid(np.array([0.0, 10.0, 20.0]))
FINE = 50  # steps of a day


def done_by(times, doses):
    return sum(np.where(times > dose, 1 - 0.5 ** ((times - dose) / HALF_LIFE), 0.0) for dose in doses)


@pytest.fixture(scope="module")
def study():
    """Visits each day or two, a dose now and then that takes effect with a half-life; coefficients of everybody."""
    rng = np.random.default_rng(0)
    truth = MEAN + rng.normal(size=(PATIENTS, 3)) @ SPREAD.T
    seen, given = [], []
    for patient, (drift, effect, back) in enumerate(truth):
        times = np.cumsum(rng.choice([1.0, 2.0], size=15))
        doses = np.sort(rng.choice(np.arange(1.0, 25.0, 0.5), size=4, replace=False))
        moved = effect * np.diff(done_by(np.arange(FINE * 30 + 1) / FINE, doses))
        moved += NOISE / np.sqrt(FINE) * rng.normal(size=len(moved))
        values = np.zeros(len(moved) + 1)
        for step in range(len(moved)):
            values[step + 1] = values[step] + (drift + back * values[step]) / FINE + moved[step]
        seen += [(patient, time, values[int(FINE * time)]) for time in times]
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
    values = scaler.values(cohort.records.values)[:, 0]
    return response.coefficients(0, cohort.records, values, terms, static_columns(cohort, scaler))


def in_days_and_doses(coefficients, scaler, response):
    """(a, b, c) of the outcome in its own unit, from those on the model's scale."""
    scale, (drift, effect, back) = scaler.variables[0], np.moveaxis(coefficients, -1, 0)
    back = back / response.usual_gap[0]
    return np.stack([scale.std * drift / response.usual_gap[0] - back * scale.mean, scale.std * effect, back], axis=-1)


def last_coefficients(cohort, scaler, response):
    found = coefficients(cohort, scaler, response).mean[cohort.records.offsets[1:] - 1]
    return in_days_and_doses(found, scaler, response)


def test_what_is_usual_is_learned_from_the_patients(study, fitted):
    """Half-life, means, spreads and noise."""
    _, truth = study
    scaler, response = fitted
    assert response.half_lives[0, 0] == HALF_LIFE
    mean = in_days_and_doses(response.mean[0, :, 0], scaler, response)
    # Within a day or two an outcome has moved on, and is still taken to return from where it was: a few per cent.
    np.testing.assert_allclose(mean, truth.mean(axis=0), rtol=0.1)
    spread = np.sqrt(np.diag(response.covariance[0])) * [1.0, scaler.variables[0].std, 1 / response.usual_gap[0]]
    # A spread of 400 is known to 1/√800, which is 3.5%; 15% is four times that, and c is hardest to tell.
    np.testing.assert_allclose(spread[1], truth[:, 1].std(), rtol=0.15)
    assert 0.5 < spread[2] / truth[:, 2].std() < 1.5
    noise = response.noise(0).usual_std * scaler.variables[0].std
    assert 0.8 * NOISE < noise < 1.5 * NOISE


def test_a_record_tells_what_is_a_patients_own(study, fitted):
    cohort, truth = study
    error = last_coefficients(cohort, *fitted) - truth
    assert np.all(np.sqrt((error**2).mean(axis=0)) < [0.03, 0.15, 0.025])  # of spreads of 0.05, 0.51 and 0.03
    # Between visits what a dose has done is taken to stay, although it also returns: of an effect of 1, 0.08.
    assert np.all(np.abs(error.mean(axis=0)) < [0.01, 0.1, 0.01])


def test_static_covariates_say_what_is_usual(study):
    """Whether b is above its mean, as a category, and another that says nothing."""
    cohort, truth = study
    strong, coin = truth[:, 1] < MEAN[1], np.arange(PATIENTS) % 2
    told = Cohort.from_tables(
        cohort.observations,
        cohort.treatments,
        static=pl.DataFrame({"patient": np.arange(PATIENTS), "strong": strong.astype(str), "coin": coin.astype(str)}),
        outcome="y",
        time_unit="day",
        time_zero="as given",
    )
    scaler = fit_scaler(told, transform="standard")
    response = fit_linear_response(told, scaler)
    by_level = scaler.variables[0].std * (static_columns(told, scaler) @ response.mean[0, 1, 1:])
    apart = truth[strong, 1].mean() - truth[~strong, 1].mean()
    # All of b comes out a twelfth too small, as above, and what a covariate says a little less than it does.
    assert by_level[strong].mean() - by_level[~strong].mean() == pytest.approx(apart, rel=0.15)
    # The means of 200 differ by chance by a tenth of a standard deviation.
    assert abs(by_level[coin == 0].mean() - by_level[coin == 1].mean() - _chance(strong, coin, apart)) < 0.1
    spread = np.sqrt(response.covariance[0, 1, 1]) * scaler.variables[0].std
    assert spread == pytest.approx(
        truth[strong, 1].std(), rel=0.25
    )  # within a level, and not of all: 0.3 instead of 0.5


def _chance(strong, coin, apart):
    """How much more of one side of the coin are strong, in the effect."""
    return apart * (strong[coin == 0].mean() - strong[coin == 1].mean())


def test_with_normal_noise_and_no_return_it_is_conjugate_bayes(study, fitted, monkeypatch):
    """Where c is surely positive, time counts as it is, and all is linear."""
    cohort, _ = study
    scaler, response = fitted
    monkeypatch.setattr(coefficient_law, "OUTLIERS", 1e-300)
    covariance = response.covariance * np.outer([1, 1, 0], [1, 1, 0]) + np.diag([0, 0, 0.01**2])
    mean = np.array([*response.mean[0, :2, 0], 0.2])
    response = replace(
        response, mean=mean[None, :, None], covariance=covariance, noise_shares=0.0 * response.noise_shares
    )
    records, values = cohort.records, scaler.values(cohort.records.values)[:, 0]
    terms = at_rows(records, lambda times: response.terms(0, scaler, cohort.events, times))
    found = coefficients(cohort, scaler, response)
    for patient in (0, 7, 399):
        rows = slice(*records.offsets[patient : patient + 2])
        moved, change = np.diff(terms[rows], axis=0), np.diff(values[rows])
        step = np.column_stack([moved, values[rows][:-1] * moved[:, 0]])
        precision = np.linalg.inv(response.covariance[0])
        weight = 1 / response.noise(0).variance(moved[:, 0], values[rows][:-1], np.zeros((len(change), 1)))
        expected = np.linalg.inv(precision + (step.T * weight) @ step)
        np.testing.assert_allclose(found.covariance[rows][-1], expected, rtol=1e-6)
        told = precision @ mean + (step.T * weight) @ change
        np.testing.assert_allclose(found.mean[rows][-1], expected @ told, rtol=1e-6)


def test_an_outlier_hardly_counts(study, fitted):
    """One record that is off by a hundred times the noise, and the next that is back."""
    cohort, _ = study
    values = cohort.records.values.copy()
    values[cohort.records.offsets[:-1] + 7] += 100 * NOISE
    wrong = replace(cohort, records=replace(cohort.records, values=values))
    moved = last_coefficients(wrong, *fitted) - last_coefficients(cohort, *fitted)
    # 5.0 was added, which is 100 usual daily changes by itself.
    # A record that comes back looks like a return: of 1, were it believed.
    assert np.all(np.quantile(np.abs(moved), 0.9, axis=0) < [0.04, 0.15, 0.08])


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
    return led.there[:, 0], led.off[:, 0], led.off[:, 0, :, None] * led.unsure[:, 0]


def test_it_leads_on_from_the_last_outcome_with_what_is_still_to_come_and_what_is_planned(study, fitted):
    cohort, _ = study
    scaler, response = fitted
    today, plan = cohort.until(10.0), cp.Plan.dose("pill", at=0.5)
    events = events_until_and_from(today.events, today.history_end, plan.resolve(today))
    start, unit, unsure = led_to(today, fitted, 10.0, events, [1.0, 3.0])
    last = today.records.offsets[1:] - 1
    known = coefficients(today, scaler, response)
    for patient in (0, 5, 50):
        row, seen = last[patient], today.records.times[last[patient]]
        doses = [*today.events.start[slice(*today.events.offsets[patient : patient + 2])], 10.5]
        for number, later in enumerate((11.0, 13.0)):
            done = [done_by(time, doses) for time in (seen, later)]
            value, back = scaler.values(today.records.values)[row, 0], known.mean[row, 2]
            gaps = (later - seen) / response.usual_gap[0]
            acting = (np.exp(back * gaps) - 1) / back
            step = np.array([acting, done[1] - done[0], value * acting])
            np.testing.assert_allclose(start[patient, number], value + step @ known.mean[row])
            by_dose = np.array([[step[1] * known.mean[row, 1]]])
            noise = response.noise(0).variance(np.array([gaps]), np.array([value]), by_dose)[0]
            variance = noise + step @ known.covariance[row] @ step
            np.testing.assert_allclose(unit[patient, number], np.sqrt(variance))
            left = known.covariance[row]
            from_noise = left - left @ np.linalg.solve(response.covariance[0], left)
            np.testing.assert_allclose((unsure[patient, number] ** 2).sum(), step @ from_noise @ step, rtol=1e-3)


def test_outcomes_are_about_as_far_from_it_as_it_says(study, fitted):
    """Of changes between visits: about as many within its unit as a normal law has within its standard deviation."""
    cohort, _ = study
    at, elapsed = cohort.records.times[cohort.records.offsets[1:] - 2], np.array([1.0, 2.0])
    start, unit, _ = led_to(cohort, fitted, at, cohort.events, elapsed)
    last = cohort.records.offsets[1:] - 1
    gap = (cohort.records.times[last] - at).astype(int) - 1
    scaled = fitted[0].values(cohort.records.values)[last, 0]
    off = (scaled - start[np.arange(len(cohort)), gap]) / unit[np.arange(len(cohort)), gap]
    assert 0.5 < np.mean(np.abs(off) < 1) < 0.8  # 68%
    assert abs(np.median(off)) < 0.2


def test_it_says_how_other_noise_would_have_changed_what_a_dose_is_thought_to_do():
    """Six hundred times the same patient, whose records differ in their noise."""
    rng, times, doses = np.random.default_rng(1), np.arange(0.0, 21.0), [3.5, 8.5, 14.5]
    usual = np.array([[0.1, -1.0]]) + rng.normal(size=(600, 2)) * [0.05, 0.5]
    cohorts = []
    for own in (usual, np.array([[0.15, -1.4]])):  # of everybody; of one patient, again and again
        done = np.array([sum(time > dose for dose in doses) for time in times])
        walk = NOISE * np.cumsum(rng.normal(size=(600, len(times))), axis=1)
        values = own[:, :1] * times + own[:, 1:] * done + walk
        frame = {"patient": np.repeat(np.arange(600), len(times)), "time": np.tile(times, 600), "y": values.ravel()}
        given = {
            "patient": np.repeat(np.arange(600), 3),
            "treatment": "pill",
            "start": np.tile(doses, 600),
            "dose": 1.0,
        }
        tables = pl.DataFrame(frame), pl.DataFrame(given)
        cohorts.append(Cohort.from_tables(*tables, outcome="y", time_unit="day", time_zero="as given"))
    scaler = fit_scaler(cohorts[0], transform="standard")
    fitted = scaler, fit_linear_response(cohorts[0], scaler)
    today = cohorts[1].until(20.0)
    plans = [
        events_until_and_from(today.events, today.history_end, plan.resolve(today))
        for plan in (cp.Plan.dose("pill", at=0.5), cp.Plan.none())
    ]
    (one, _, unsure_of_one), (other, _, unsure_of_other) = (
        led_to(today, fitted, 20.0, events, [1.0]) for events in plans
    )
    said = np.sqrt(((unsure_of_one - unsure_of_other) ** 2).sum(axis=-1))
    # A standard deviation of 600 is known to 3%; the noise is learned, to a few per cent.
    np.testing.assert_allclose(said.mean(), (one - other).std(), rtol=0.15)


def test_it_does_not_leave_the_range_of_the_outcomes(study, fitted):
    cohort, _ = study
    scaler, response = fitted
    start, unit, _ = led_to(cohort, fitted, cohort.history_end, cohort.events, [1.0, 1e6])
    held = scaler.values(cohort.records.values)[cohort.records.offsets[1:] - 1, 0]
    assert np.all(start <= np.maximum(held, response.highest[0])[:, None])
    assert np.all(start >= np.minimum(held, response.lowest[0])[:, None])
    assert np.isin(start[:, 1], [response.lowest[0], response.highest[0]]).any()  # some would have
    np.testing.assert_array_equal(unit[:, 1], 1.0)


def test_an_outcome_that_returns_goes_where_it_belongs_and_stays_there(study, fitted):
    """At -a/c, where nothing moves."""
    cohort, _ = study
    scaler, response = fitted
    untreated = replace(cohort, events=cohort.events.keep(np.zeros(cohort.events.rows, dtype=bool)))
    start, _, _ = led_to(untreated, fitted, cohort.history_end, untreated.events, [1e3, 1e6])
    known = coefficients(untreated, scaler, response).mean[cohort.records.offsets[1:] - 1]
    returns = known[:, 2] < -0.02
    assert returns.mean() > 0.9
    there = np.clip(-known[:, 0] / known[:, 2], response.lowest[0], response.highest[0])[returns]
    np.testing.assert_allclose(start[returns], np.stack([there, there], axis=1), rtol=1e-6)


def test_without_a_response_the_last_outcome_stays(study, fitted):
    cohort, _ = study
    start, unit, unsure = led_to(cohort, (fitted[0], None), cohort.history_end, cohort.events, [1.0, 3.0])
    held = fitted[0].values(cohort.records.values)[cohort.records.offsets[1:] - 1, 0]
    np.testing.assert_array_equal(start, np.stack([held, held], axis=1))
    np.testing.assert_array_equal(unit, 1.0)
    np.testing.assert_array_equal(unsure, 0.0)


def test_an_outcome_that_was_never_seen_stands_at_the_mean(study, fitted):
    cohort, _ = study
    values = np.full_like(cohort.records.values, np.nan)
    nothing = replace(cohort, records=replace(cohort.records, values=values))
    start, unit, unsure = led_to(nothing, fitted, cohort.history_end, cohort.events, [1.0, 3.0])
    np.testing.assert_array_equal(start, 0.0)
    np.testing.assert_array_equal(unit, 1.0)
    np.testing.assert_array_equal(unsure, 0.0)


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
