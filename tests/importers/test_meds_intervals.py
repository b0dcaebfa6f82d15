"""Starts and ends become intervals: which end is whose, and what runs at once."""

from datetime import timedelta
from functools import partial
from itertools import pairwise

import numpy as np
import polars as pl
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from small_meds import SPEC, ZERO, person, row, stay, write_meds

import counterpath as cp
from counterpath.importers.meds_intervals import stacked, united


@pytest.fixture
def write(tmp_path):
    return partial(write_meds, tmp_path / "meds")


def drug(*events):
    """A stay of ten hours in which only these happened: (hour, on or off, rate, order)."""
    rows = [row(1, hour, f"DRUG//{kind}", rate, stay=7, order=order) for hour, kind, rate, order in events]
    return [row(1, 0.0, "IN//ward", stay=7), row(1, 0.5, "LAB//art", 80.0, stay=7), *rows, row(1, 10.0, "OUT", stay=7)]


SPEC_OF_DRUG = {name: SPEC[name] for name in ("time_unit", "stay", "outcome")}
BY_ORDER = {"starts": "DRUG//ON", "ends": "DRUG//OFF", "pair_by": ["stay", "order"]}
BY_TIME = {"starts": "DRUG//ON", "ends": "DRUG//OFF"}


def intervals(folder, own):
    cohort = cp.read_meds(folder, SPEC_OF_DRUG | {"treatments": {"drug": own}}, progress=False)
    return cohort.treatments.sort("start").select("start", "stop", "rate").rows(), cohort.repairs


def at(hours):
    return None if hours is None else ZERO + timedelta(hours=hours)


def table(*rows):
    return pl.DataFrame(
        [("a", "drug", at(start), at(stop), rate) for start, stop, rate in rows],
        schema={
            "patient": pl.String,
            "treatment": pl.String,
            "start": pl.Datetime("us"),
            "stop": pl.Datetime("us"),
            "rate": pl.Float64,
        },
        orient="row",
    )


def in_hours(frame):
    def hour(name):
        return (pl.col(name) - ZERO).dt.total_microseconds() / 3_600_000_000

    return frame.select(hour("start"), hour("stop"), "rate").rows()


# An end belongs to the latest start that is open


def test_a_lost_end_costs_only_the_interval_that_lost_it(write):
    """Without numbers of orders; the end of the first is missing."""
    rows = drug((1.0, "ON", 2.0, None), (3.0, "ON", 4.0, None), (6.0, "OFF", 0.0, None), (7.0, "ON", 1.0, None))
    rows.insert(-1, row(1, 8.0, "DRUG//OFF", 0.0, stay=7))
    with pytest.warns(cp.CohortWarning):
        found, repairs = intervals(write(rows), BY_TIME)
    assert found == [(1.0, 3.0, 2.0), (3.0, 6.0, 6.0), (6.0, 7.0, 2.0), (7.0, 8.0, 3.0), (8.0, 10.0, 2.0)]
    counts = {repair.code: repair.count for repair in repairs}
    assert counts == {"meds-no-end": 1, "meds-several-starts": 2}


def test_a_lost_start_costs_only_its_own_end(write):
    rows = drug((2.0, "OFF", 0.0, None), (3.0, "ON", 4.0, None), (6.0, "OFF", 0.0, None))
    with pytest.warns(cp.CohortWarning, match="1 end of drug comes without a start before it"):
        found, _ = intervals(write(rows), BY_TIME)
    assert found == [(3.0, 6.0, 4.0)]


def test_numbers_of_orders_say_which_end_is_whose(write):
    rows = drug((1.0, "ON", 2.0, 1), (2.0, "ON", 4.0, 2), (3.0, "OFF", 0.0, 1), (5.0, "OFF", 0.0, 2))
    found, repairs = intervals(write(rows), BY_ORDER)
    assert found == [(1.0, 2.0, 2.0), (2.0, 3.0, 6.0), (3.0, 5.0, 4.0)]
    assert not repairs


@pytest.mark.parametrize("own", [BY_TIME, BY_ORDER], ids=["by time", "by order"])
@pytest.mark.parametrize("new_first", [True, False], ids=["new rate first", "old end first"])
def test_ten_titrations_in_a_row_leave_no_gap(write, own, new_first):
    """Whichever of the two a file lists first at the same instant."""
    events = [(0.0, "ON", 1.0, 0)]
    for step in range(1, 10):
        both = [(float(step), "ON", 1.0 + step, step), (float(step), "OFF", 0.0, step - 1)]
        events += both if new_first else both[::-1]
    rows = sorted(drug(*events, (9.5, "OFF", 0.0, 9)), key=lambda event: event[1])
    found, repairs = intervals(write(rows), own)
    assert found == [(float(k), float(k + 1) if k < 9 else 9.5, 1.0 + k) for k in range(10)]
    assert not repairs


def test_an_interval_of_no_length_is_left_out_and_counted(write):
    rows = drug((3.0, "ON", 2.0, 1), (3.0, "OFF", 0.0, 1))
    with pytest.warns(cp.CohortWarning):
        found, repairs = intervals(write(rows), BY_ORDER)
    assert found == []
    assert "1 interval of drug has no length within the stay and was left out." in str(repairs[0])


# What runs at once


def test_rates_add_up_while_they_run_and_leave_nothing_behind():
    """0.1 + 0.2 − 0.2 is not 0.1, and 0.1 + 0.2 − 0.3 is not 0: rates are summed anew."""
    found = in_hours(stacked(table((0, 4, 0.1), (1, 2, 0.2), (1, 3, 0.7))))
    assert found == [(0, 1, 0.1), (1, 2, pytest.approx(1.0)), (2, 3, pytest.approx(0.8)), (3, 4, 0.1)]
    gone = in_hours(stacked(table((0, 2, 0.1), (1, 2, 0.2), (3, 4, 0.3))))
    assert gone == [(0, 1, 0.1), (1, 2, 0.1 + 0.2), (3, 4, 0.3)]


def test_an_interval_that_never_ends_runs_beside_others():
    found = in_hours(stacked(table((0, None, 1.0), (2, 3, 0.5))))
    assert found == [(0, 2, 1.0), (2, 3, 1.5), (3, None, 1.0)]


RUNS = st.lists(
    st.tuples(st.integers(0, 12), st.integers(1, 6), st.floats(0.001, 5.0)).map(lambda r: (r[0], r[0] + r[1], r[2])),
    min_size=1,
    max_size=8,
)


@settings(max_examples=40, deadline=None)
@given(RUNS)
def test_at_any_time_the_rate_is_the_sum_of_what_runs(rows):
    found = in_hours(stacked(table(*rows)))
    assert all(rate > 0 for *_, rate in found)
    assert all(one[1] <= other[0] for one, other in pairwise(found))
    for time in np.arange(0.5, 19.0):
        running = [rate for start, stop, rate in rows if start < time < stop]
        known = [rate for start, stop, rate in found if start < time < stop]
        assert len(known) == bool(running)
        assert sum(known) == pytest.approx(sum(running))


def test_what_was_given_or_not_is_given_once():
    """A second ventilator beside the first is no double ventilation."""
    assert in_hours(united(table((0, 4, 1.0), (2, 6, 1.0), (8, 9, 1.0)))) == [(0, 6, 1.0), (8, 9, 1.0)]


def test_overlapping_intervals_without_a_number_are_one(write):
    rows = drug((1.0, "ON", None, 1), (3.0, "ON", None, 2), (5.0, "OFF", None, 1), (8.0, "OFF", None, 2))
    found, repairs = intervals(write(rows), BY_ORDER)
    assert found == [(1.0, 8.0, 1.0)]
    assert not repairs


def test_the_made_up_stay_is_as_it_was(write):
    """A titration of two rates, as a whole data set has it."""
    cohort = cp.read_meds(write(person() + stay()), SPEC, progress=False)
    of_drug = cohort.treatments.filter(pl.col("treatment") == "drug").sort("start")
    assert of_drug.select("start", "stop", "rate").rows() == [(1.0, 3.0, 2.0), (3.0, 6.0, 4.0)]
