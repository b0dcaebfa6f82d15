import numpy as np
import polars as pl
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import counterpath as cp


def small(read):
    return read(
        {"patient": ["a"] * 5 + ["b"] * 2, "time": [0.0, 1, 2, 3, 4, 0, 4], "y": [0.0, 1, 2, None, 4, 10, 14]},
        {
            "patient": ["a", "a", "a", "a"],
            "treatment": ["drip", "pill", "pill", "drip"],
            "start": [0.0, 2.0, 3.0, 3.0],
            "stop": [2.0, None, None, 4.0],
            "rate": [0.5, None, None, 0.75],
            "dose": [None, 1.0, 2.0, None],
        },
    )


def test_a_cut_holds_history_plan_and_later_outcomes(read):
    cohort = small(read)
    cut = cohort.cut(2.0)
    assert cut.history.equals(cohort.until(2.0))
    assert cut.later.times.tolist() == [2.0, 2.0]  # the record of day 3 has no outcome
    assert cut.later.values[:, 0].tolist() == [4.0, 14.0]
    assert cut.outcomes().to_dict(as_series=False) == {"patient": ["a", "b"], "elapsed": [2.0, 2.0], "y": [4.0, 14.0]}
    plan = cut.plan.resolve(cut.history)
    # the dose at the cut is the decision taken then; the interval that stops at it does not go on
    assert plan.start.tolist() == [0.0, 1.0, 1.0]
    np.testing.assert_array_equal(plan.stop, [np.nan, 2.0, np.nan])
    assert plan.amount.tolist() == [1.0, 0.75, 2.0]


def test_an_interval_that_runs_over_the_cut_is_in_both_parts(read):
    cut = small(read).cut(1.0)
    assert cut.history.events.start.tolist() == [0.0]
    assert cut.history.events.stop.tolist() == [np.inf]
    plan = cut.plan.resolve(cut.history)
    assert (plan.start[0], plan.stop[0], plan.amount[0]) == (0.0, 1.0, 0.5)


def test_the_horizon_limits_later_outcomes(read):
    later = small(read).cut(0.0, max_horizon=2.0).later
    assert later.times.tolist() == [1.0, 2.0]


def test_a_cut_with_a_time_per_patient_and_with_patients_gone(read):
    cohort = read(
        {"patient": [1, 1, 2, 2], "time": [0.0, 4.0, 0.0, 2.0], "y": [1.0, 2.0, 3.0, 4.0]},
        static={"patient": [1, 2], "end": [9.0, 2.0]},
        follow_up_end="end",
    )
    assert cohort.cut([4.0, 1.0]).later.values[:, 0].tolist() == [4.0]
    gone = cohort.cut(3.0, ended="drop")
    assert gone.history.patients.to_list() == [1]
    assert gone.later.times.tolist() == [1.0]


# Halves are exact in binary, and so few of them that cuts often fall on a record or a dose.
HALVES = st.integers(0, 12).map(lambda n: n / 2)


@st.composite
def tables(draw):
    rows, doses = [], []
    for patient in range(draw(st.integers(1, 3))):
        for time in draw(st.lists(HALVES, min_size=1, max_size=6, unique=True)):
            missing = draw(st.booleans())
            rows.append((patient, time, None if missing else draw(st.integers(0, 9)) * 1.0, 1.0))
        for time in draw(st.lists(HALVES, max_size=4)):
            doses.append((patient, "pill", time, None, draw(st.integers(1, 3)) * 1.0, None))
        bounds = sorted(draw(st.lists(HALVES, max_size=6, unique=True)))
        for start, stop in zip(bounds[::2], bounds[1::2], strict=False):
            doses.append((patient, "drip", start, stop, None, draw(st.integers(1, 3)) * 0.5))
    observations = pl.DataFrame(rows, schema=["patient", "time", "y", "x"], orient="row").sort("patient", "time")
    types = {"patient": pl.Int64, "treatment": pl.String, "start": float, "stop": float, "dose": float, "rate": float}
    treatments = pl.DataFrame(doses, schema=types, orient="row")
    return observations.with_columns(pl.col("y").cast(pl.Float64)), treatments


def cohort_of(frames):
    return cp.Cohort.from_tables(*frames, outcome="y", time_unit="day", time_zero="as given")


def infused(events, end):
    """Amount given by intervals up to `end`, per patient."""
    mine = ~events.is_dose
    length = np.clip(np.minimum(events.stop, end[events.patient_of_row]) - events.start, 0, None)
    given = np.where(mine, events.amount * length, 0.0)
    return np.bincount(events.patient_of_row, weights=given, minlength=events.patients)


@settings(max_examples=150)  # tables are built and read for each
@given(tables(), HALVES)
def test_a_cut_keeps_every_outcome_and_every_dose_exactly_once(frames, time):
    cohort = cohort_of(frames)
    cut = cohort.cut(time, ended="drop")
    source, history = cohort[cut.history.patients.to_list()], cut.history
    if not len(history):
        assert cut.later.rows == 0
        return
    plan = cut.plan.resolve(history)

    known = ~np.isnan(history.records.values[:, 0])
    before = [*zip(history.records.patient_of_row[known], history.records.times[known], strict=True)]
    after = [*zip(cut.later.patient_of_row, cut.later.times + time, strict=True)]
    assert not {t for _, t in after if t <= time}
    recorded = ~np.isnan(source.records.values[:, 0])
    everything = [*zip(source.records.patient_of_row[recorded], source.records.times[recorded], strict=True)]
    assert sorted(before + after) == sorted(everything)

    def doses(events, shift):
        pill = events.is_dose
        return [*zip(events.patient_of_row[pill], events.start[pill] + shift, events.amount[pill], strict=True)]

    assert sorted(doses(history.events, 0.0) + doses(plan, time)) == sorted(doses(source.events, 0.0))

    cut_at = np.full(len(history), time)
    forever = np.full(len(history), np.inf)
    total = infused(history.events, cut_at) + infused(plan, forever)
    np.testing.assert_array_equal(total, infused(source.events, forever))


@settings(max_examples=100)  # tables are built and read for each
@given(tables(), HALVES, HALVES)
def test_until_later_and_then_until_earlier_is_until_earlier(frames, one, other):
    cohort = cohort_of(frames)
    first, second = max(one, other), min(one, other)
    twice = cohort.until(first, ended="drop").until(second, ended="drop")
    once = cohort.until(second, ended="drop")
    assert twice.equals(once)


@settings(max_examples=100)  # tables are built and read for each
@given(tables(), HALVES)
def test_a_history_knows_nothing_of_the_future(frames, time):
    history = cohort_of(frames).until(time, ended="drop")
    assert (history.records.times <= time).all()
    assert (history.events.start < time).all()
    closed = history.events.stop[np.isfinite(history.events.stop)]
    assert (closed < time).all()


def test_what_follows_can_be_asked_of_part_of_the_patients(read):
    cohort = small(read)
    plan = cp.Plan.observed(cohort).resolve(cohort[["b", "a"]].until(1.0))
    assert plan.per_patient.tolist() == [0, 4]


def test_observed_needs_a_cohort_of_the_same_kind(read):
    cohort = small(read)
    hours = read(
        {"patient": ["a", "b"], "time": [0.0, 0.0], "y": [1.0, 2.0]},
        {"patient": ["a"] * 2, "treatment": ["drip", "pill"], "time": [0.0, 0.0]},
        time_unit="hour",
    )
    with pytest.raises(cp.PlanError, match="another time unit or other treatments"):
        cp.Plan.observed(hours).resolve(cohort)
    with pytest.raises(cp.PlanError, match="patient b, not in this cohort of 1"):
        cp.Plan.observed(cohort[["a"]]).resolve(cohort)
