"""How outcomes answered to treatments, against a loop over patients, records and treatments."""

from dataclasses import replace

import numpy as np
import polars as pl
from hypothesis import given
from hypothesis import strategies as st
from small_cohorts import QUARTERS, given_to_one

from counterpath.cohort import Cohort, Grid, TreatmentEvents, fit_scaler
from counterpath.cohort.records import Observations, offsets_from
from counterpath.paths import control_path
from counterpath.paths.answers import answers

VALUES = st.floats(-50, 50, width=32)
TREATMENTS = 2


@st.composite
def studies(draw) -> tuple[Observations, TreatmentEvents]:
    """One to four patients, with or without records, doses and intervals."""
    patients = draw(st.integers(1, 4))
    times = [sorted(draw(st.lists(QUARTERS, max_size=7, unique=True))) for _ in range(patients)]
    events = [(p, *row) for p in range(patients) for code in range(TREATMENTS) for row in draw(given_to_one(code))]
    patient = np.repeat(np.arange(patients), [len(own) for own in times])
    values = draw(st.lists(VALUES, min_size=len(patient), max_size=len(patient)))
    flat = np.array([time for own in times for time in own], dtype=np.float64)
    return Observations(offsets_from(patient, patients), flat, np.array(values, dtype=np.float64)[:, None]), events_of(
        events, patients
    )


def events_of(rows: list, patients: int) -> TreatmentEvents:
    """Rows of patient, treatment, start, stop and amount."""
    patient, treatment, *rest = np.array(rows, dtype=np.float64).reshape(-1, 5).T
    return TreatmentEvents.from_rows(patient.astype(np.int64), treatment.astype(np.int64), *rest, patients=patients)


def acts_between(start: float, stop: float, before: float, now: float) -> bool:
    """A dose at a record comes after it; an interval is [start, stop)."""
    return before <= start < now if np.isnan(stop) else start < now and stop > before


def by_hand(times, values, events) -> np.ndarray:
    """Of one patient: for each record and treatment, begun before it, total change, total time."""
    rows = []
    for last in range(len(times)):
        row = []
        for treatment in range(TREATMENTS):
            mine = [(start, stop) for code, start, stop in events if code == treatment]
            change = gap = 0.0
            for i in range(1, last + 1):
                if any(acts_between(*each, times[i - 1], times[i]) for each in mine):
                    change += values[i] - values[i - 1]
                    gap += times[i] - times[i - 1]
            row += [float(sum(start < times[last] for start, _ in mine)), change, gap]
        rows.append(row)
    return np.array(rows).reshape(len(times), 3 * TREATMENTS)


def of_patient(records, events, patient):
    """Times, values and events of one, as lists."""
    own, mine = (table.patient_of_row == patient for table in (records, events))
    given_ = zip(events.treatment[mine], events.start[mine], events.stop[mine], strict=True)
    return records.times[own], records.values[own, 0], list(given_)


def found_in(records, events):
    return answers(records, records.values[:, 0], events, TREATMENTS)


def one_patient(times, values, *events):
    records = Observations(np.array([0, len(times)]), np.array(times), np.array(values)[:, None])
    return records, events_of([(0, *event, 1.0) for event in events], 1)


def test_a_dose_belongs_to_the_pair_of_records_around_it():
    """At a record it comes after it: the change up to that record is not its effect."""
    records, events = one_patient([0.0, 2.0, 3.0, 7.0], [5.0, 4.0, 8.0, 9.0], (0, 2.0, np.nan), (0, 2.5, np.nan))
    np.testing.assert_array_equal(found_in(records, events)[:, :3], [[0, 0, 0], [0, 0, 0], [2, 4, 1], [2, 4, 1]])


def test_an_interval_belongs_to_every_pair_that_it_touches():
    """From 1 to 3, with an end at a record; then from 8 on, for good."""
    records, events = one_patient(
        [0.0, 2.0, 3.0, 7.0, 9.0, 12.0], [1.0, 2.0, 4.0, 8.0, 16.0, 32.0], (1, 1.0, 3.0), (1, 8.0, np.inf)
    )
    expected = [[0, 0, 0], [1, 1, 2], [1, 3, 3], [1, 3, 3], [2, 11, 5], [2, 27, 8]]
    np.testing.assert_array_equal(found_in(records, events)[:, 3:], expected)
    np.testing.assert_array_equal(found_in(records, events)[:, :3], 0.0)


def test_what_was_given_before_the_first_record_is_counted_and_has_no_answer():
    records, events = one_patient([4.0, 6.0], [1.0, 3.0], (0, 1.0, np.nan), (1, 0.0, 4.0))
    np.testing.assert_array_equal(found_in(records, events), [[1, 0, 0, 1, 0, 0], [1, 0, 0, 1, 0, 0]])


def test_without_treatments_in_the_schema_there_is_no_column():
    records, events = one_patient([0.0, 1.0], [1.0, 2.0])
    assert answers(records, records.values[:, 0], events, 0).shape == (2, 0)


@given(studies())
def test_they_are_those_of_a_loop_over_everything(study):
    records, events = study
    expected = [by_hand(*of_patient(records, events, patient)) for patient in range(records.patients)]
    np.testing.assert_array_equal(found_in(records, events), np.concatenate(expected))


@given(studies())
def test_patients_do_not_enter_each_others_answers(study):
    """To the bit, alone or in another order."""
    records, events = study
    together = found_in(records, events)
    for patient in range(records.patients):
        chosen = np.array([patient])
        own = found_in(records.take(chosen), events.take(chosen))
        np.testing.assert_array_equal(own, together[records.patient_of_row == patient])
    backwards = np.arange(records.patients)[::-1]
    turned = found_in(records.take(backwards), events.take(backwards))
    rows = [np.flatnonzero(records.patient_of_row == patient) for patient in backwards]
    np.testing.assert_array_equal(turned, together[np.concatenate(rows)])


@given(studies(), QUARTERS)
def test_nothing_later_changes_an_answer(study, now):
    """Whatever is recorded after `now`, begun from then on, or stopped then or later."""
    records, events = study
    past = records.times <= now
    known = events.keep(events.start < now)
    known = replace(known, stop=np.where(known.stop >= now, np.inf, known.stop))
    np.testing.assert_array_equal(found_in(records.keep(past), known), found_in(records, events)[past])
    other = replace(records, values=np.where(past[:, None], records.values, 99.0))
    np.testing.assert_array_equal(found_in(other, events)[past], found_in(records, events)[past])


# As channels of the path


GRID = Grid(np.array([0.0, 5.0, 11.0, 40.0]))
MAYBE = st.none() | VALUES


@st.composite
def two_outcomes(draw) -> tuple[list, list, bool]:
    """Tables of two outcomes that are missing here and there, or always; and whether the last patient has nothing."""
    observed, treated = [], []
    for patient in range(draw(st.integers(1, 3))):
        for time in sorted(draw(st.lists(QUARTERS, min_size=1, max_size=7, unique=True))):
            observed.append((patient, time, draw(MAYBE), draw(MAYBE), time))
        for code, name in enumerate(("drip", "pill")):
            for _, start, stop, amount in draw(given_to_one(code)):
                end = None if np.isinf(stop) else stop
                rest = (None, amount, None) if np.isnan(stop) else (end, None, amount)
                treated.append((patient, name, start, *rest))
    observed += [(99, 0.0, 1.0, 2.0, 0.0), (99, 30.0, 3.0, 5.0, 30.0)]
    for name in ("drip", "pill"):
        treated += [(99, name, 1.0, None, 1.0, None), (99, name, 2.0, 3.0, None, 2.0)]
    return observed, treated, draw(st.booleans())


def cohort_of(observed: list, treated: list) -> Cohort:
    kinds = dict.fromkeys(("start", "stop", "dose", "rate"), pl.Float64)
    return Cohort.from_tables(
        pl.DataFrame(observed, schema=["patient", "time", "y", "z", "x"], orient="row", strict=False),
        pl.DataFrame(treated, schema={"patient": pl.Int64, "treatment": pl.String} | kinds, orient="row"),
        outcome=["y", "z"],
        time_unit="day",
        time_zero="as given",
    )


def without_anything_of_the_last(cohort: Cohort) -> Cohort:
    records, events = (t.keep(t.patient_of_row < len(cohort) - 1) for t in (cohort.records, cohort.events))
    return replace(cohort, records=records, events=events)


@given(two_outcomes(), st.lists(QUARTERS, min_size=1, max_size=4))
def test_channels_hold_each_outcomes_own_answers_since_its_last_record(rows, times):
    """Records without an outcome say nothing about it; before its first all is zero, and so for who has no record."""
    observed, treated, last_has_nothing = rows
    cohort = cohort_of(observed, treated)
    scaler = fit_scaler(cohort, transform="standard")
    if last_has_nothing:
        cohort = without_anything_of_the_last(cohort)
    path = control_path(cohort, scaler, GRID, window_start=np.zeros(len(cohort)))
    queries = np.tile(np.sort(times), (len(cohort), 1))
    found, scaled = path.values(queries), scaler.values(cohort.records.values)
    for j, outcome in enumerate(("y", "z")):
        own = [
            path.channels.index(f"{outcome}:{treatment.name}:{role}")
            for treatment in cohort.schema.treatments
            for role in ("answered", "response", "exposure")
        ]
        seen: np.ndarray = ~np.isnan(scaled[:, j])
        records = replace(cohort.records.keep(seen), values=scaled[seen, j][:, None])
        for patient in range(len(cohort)):
            when, values, given_ = of_patient(records, cohort.events, patient)
            totals = by_hand(when, values, given_)
            totals[:, 2::3] /= GRID.lookback
            at = np.searchsorted(when, queries[patient], side="right")
            expected = np.concatenate([np.zeros((1, totals.shape[1])), totals])[at]
            np.testing.assert_array_equal(found[patient][:, own], expected)
