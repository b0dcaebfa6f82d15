"""What treatments have done, against a loop over everything that was given."""

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from small_cohorts import QUARTERS, given_to_one

from counterpath.cohort import TreatmentEvents
from counterpath.paths.unfolding import unfolded

USUAL_DOSE, USUAL_INFUSED = 0.5, 4.0


def events_of(patients):
    rows = [(number, *row) for number, own in enumerate(patients) for row in own]
    columns = [np.array(column) for column in zip(*rows, strict=True)] if rows else [np.zeros(0)] * 5
    patient, treatment, *others = columns
    return TreatmentEvents.from_rows(
        patient.astype(np.int64), treatment.astype(np.int64), *(o.astype(float) for o in others), patients=len(patients)
    )


def by_hand(rows, half_life, time):
    """Each dose for itself, each infusion as its integral."""
    total = 0.0
    for _, start, stop, amount in rows:
        if start >= time:
            continue
        left = 0.0 if half_life == 0 else 0.5 ** ((time - start) / half_life)
        if math.isnan(stop):
            total += amount / USUAL_DOSE * (1 - left)
            continue
        until = min(stop, time)
        still = 0.0
        if half_life > 0:
            still = half_life / math.log(2) * (0.5 ** ((time - until) / half_life) - left)
        total += amount / USUAL_INFUSED * (until - start - still)
    return total


PATIENTS = st.lists(given_to_one(0), min_size=1, max_size=3)


@given(PATIENTS, st.lists(QUARTERS, min_size=1, max_size=5), st.sampled_from([0.0, 0.25, 1.0, 30.0]))
def test_it_is_the_sum_of_what_each_dose_and_infusion_has_done(patients, times, half_life):
    asked = np.tile(np.array(times), (len(patients), 1))
    found = unfolded(events_of(patients), (USUAL_DOSE, USUAL_INFUSED), half_life, asked)
    expected = [[by_hand(rows, half_life, time) for time in times] for rows in patients]
    np.testing.assert_allclose(found, expected, rtol=1e-9, atol=1e-9)


@pytest.mark.parametrize("half_life", [0.0, 2.0])
def test_nothing_is_done_at_the_time_of_a_dose_itself(half_life):
    """Records precede doses of the same time."""
    dose = events_of([[(0, 3.0, np.nan, 1.0)]])
    at, later = unfolded(dose, (1.0, 1.0), half_life, np.array([[3.0, 5.0]]))[0]
    assert at == 0.0
    assert later == (1.0 if half_life == 0 else pytest.approx(0.5))


@given(PATIENTS, st.integers(0, 2))
def test_who_else_is_there_and_what_comes_later_does_not_matter_to_the_bit(patients, which):
    which %= len(patients)
    times = np.arange(11.0)
    together = unfolded(events_of(patients), (1.0, 1.0), 1.5, np.tile(times, (len(patients), 1)))[which]
    before = [(c, start, stop, amount) for c, start, stop, amount in patients[which] if start < 5.0]
    alone = unfolded(events_of([before]), (1.0, 1.0), 1.5, times[None])[0]
    np.testing.assert_array_equal(together[:6], alone[:6])
