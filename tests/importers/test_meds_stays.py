"""Which stay a record belongs to: by its number, else by its time; and where a stay ends."""

from functools import partial

import numpy as np
import polars as pl
import pytest
from small_meds import SPEC, person, row, stay, write_meds

import counterpath as cp

WITHOUT_NUMBER = SPEC | {"stay": {"begins": "re:IN//.*", "ends": "OUT"}}
WITHOUT_STAYS = {name: part for name, part in SPEC.items() if name != "stay"}
BY_ORDER = {"treatments": {"drug": SPEC["treatments"]["drug"] | {"pair_by": ["order"]}}}


@pytest.fixture
def write(tmp_path):
    return partial(write_meds, tmp_path / "meds")


def read(folder, spec=SPEC, **options):
    return cp.read_meds(folder, spec, progress=False, **options)


def counts(cohort):
    return {repair.code: repair.count for repair in cohort.repairs}


# The number of a stay


@pytest.mark.parametrize("kind", [pl.String, pl.Float64, pl.Int32, pl.UInt64])
def test_the_number_of_a_stay_may_be_of_any_type(write, kind):
    plain = read(write(person() + stay()))
    other = read(write(person() + stay(), stay=kind))
    assert other.patients.to_list() == ["1/7"]
    assert other.equals(plain)


def test_the_number_of_a_stay_may_be_a_word(write):
    folder = write(person() + stay())
    (path,) = (folder / "data").rglob("*.parquet")
    table = pl.read_parquet(path)
    table.with_columns(stay="ward-" + pl.col("stay").cast(pl.String)).write_parquet(path)
    cohort = read(folder)
    assert cohort.patients.to_list() == ["1/ward-7"]
    np.testing.assert_array_equal(cohort.records.times, [1.0, 2.0, 5.0])


def test_numbers_that_are_missing_as_nan_are_missing(write):
    """As a data set has them that went through pandas."""
    folder = write(person() + stay())
    (path,) = (folder / "data").rglob("*.parquet")
    table = pl.read_parquet(path)
    table.with_columns(pl.col("stay").cast(pl.Float64).fill_null(float("nan"))).write_parquet(path)
    assert read(folder).patients.to_list() == ["1/7"]


def test_a_stay_that_begins_without_its_number_is_left_out_and_counted(write):
    rows = person() + stay(number=7) + stay(number=8, begin=20.0)
    rows[12] = row(1, 20.0, "IN//ward")
    with pytest.warns(cp.CohortWarning) as said:
        cohort = read(write(rows))
    assert any("1 stay begins without a number and was left out" in str(warning.message) for warning in said)
    assert cohort.patients.to_list() == ["1/7"]
    assert counts(cohort)["meds-no-number"] == 1


# Where a stay ends


def test_a_stay_without_a_number_does_not_take_the_end_of_the_next(write):
    rows = person() + stay()[:-1] + stay(number=8, begin=20.0)
    with pytest.warns(cp.CohortWarning, match="1 stay has no end and lasts until the next begins, if there is one"):
        cohort = read(write(rows), WITHOUT_NUMBER)
    np.testing.assert_array_equal(cohort.follow_up_end, [20.0, 10.0])
    assert counts(cohort) == {"meds-unended": 1}


def test_a_stay_with_a_number_that_has_no_end_stays_open(write):
    rows = person() + stay()[:-1] + stay(number=8, begin=20.0)
    with pytest.warns(cp.CohortWarning, match="1 stay has no end and lasts as long as there are records"):
        cohort = read(write(rows))
    np.testing.assert_array_equal(cohort.follow_up_end, [np.nan, 10.0])
    assert counts(cohort) == {"meds-open-ended": 1}


def test_a_stay_may_begin_at_the_instant_at_which_the_one_before_ends(write):
    for new_first in (True, False):
        rows = person() + stay() + stay(number=8, begin=10.0)
        if new_first:
            rows[11], rows[12] = rows[12], rows[11]
        cohort = read(write(rows), WITHOUT_NUMBER | BY_ORDER)
        np.testing.assert_array_equal(cohort.follow_up_end, [10.0, 10.0])
        np.testing.assert_array_equal(cohort.records.times, [1.0, 2.0, 5.0] * 2)


def test_death_ends_follow_up(write):
    rows = [*person(), *stay()[:-2], row(1, 5.5, "MEDS_DEATH"), *stay()[-2:]]
    cohort = read(write(rows))
    np.testing.assert_array_equal(cohort.follow_up_end, [5.5])
    assert cohort.treatments["stop"].max() == 5.5
    of_another_code = read(write(rows), SPEC | {"death": ["DIED"]})
    np.testing.assert_array_equal(of_another_code.follow_up_end, [10.0])


@pytest.mark.parametrize("what", ["OUT", "MEDS_DEATH"])
@pytest.mark.parametrize("hour", [-1.0, 0.0])
def test_a_stay_that_is_over_when_it_begins_is_named(write, what, hour):
    """Not only its records, as outside of any stay: they say which stay is theirs."""
    rows = [own for own in stay() if own[2] != "OUT"]
    before = row(1, hour, what, stay=7 if what == "OUT" else None)
    with pytest.warns(cp.CohortWarning) as said:
        cohort = read(write([*person(), before, *rows], person(2) + stay(2, 8)))
    expected = "1 stay is over, by end or death, when it begins: nothing that comes later counts. (patient 1/7)"
    assert expected in [str(warning.message) for warning in said]
    assert cohort.patients.to_list() == ["2/8"]


# Intervals that name no stay


def numberless(start, stop):
    """Stays from 0 to 10 and from 20 to 30, and a drug that names none of them."""
    on, off = row(1, start, "DRUG//ON", 2.0, order=5), row(1, stop, "DRUG//OFF", 0.0, order=5)
    plain = {"IN//ward", "LAB//art", "OUT"}
    rows = [own for own in stay() + stay(number=8, begin=20.0) if own[2] in plain]
    return sorted([*rows, on, off], key=lambda own: own[1])


@pytest.mark.parametrize(
    ("start", "stop", "expected"),
    [
        (-3.0, 4.0, [(0, 0.0, 4.0)]),  # begins before the stay
        (8.0, 15.0, [(0, 8.0, 10.0)]),  # ends after it
        (15.0, 25.0, [(1, 0.0, 5.0)]),  # begins between two
        (8.0, 22.0, [(0, 8.0, 10.0), (1, 0.0, 2.0)]),  # runs through both
        (-1.0, 40.0, [(0, 0.0, 10.0), (1, 0.0, 10.0)]),
    ],
)
@pytest.mark.parametrize(
    ("spec", "numbers"), [(SPEC, "78"), (WITHOUT_NUMBER, "12")], ids=["stays with numbers", "stays without"]
)
def test_an_interval_belongs_to_every_stay_in_which_it_runs(write, spec, numbers, start, stop, expected):
    names = ("time_unit", "outcome", "stay")
    cohort = read(write(numberless(start, stop)), {name: spec[name] for name in names} | BY_ORDER)
    found = cohort.treatments.sort("patient").select("patient", "start", "stop").rows()
    assert found == [(f"1/{numbers[which]}", *hours) for which, *hours in expected]
    assert not cohort.repairs


def test_an_interval_between_two_stays_is_outside_of_any(write):
    with pytest.warns(cp.CohortWarning) as said:
        cohort = read(write(numberless(12.0, 18.0)), SPEC | BY_ORDER | {"covariates": {}, "static": {}})
    expected = "1 record of drug lies outside of any stay and was left out."
    assert any(expected in str(warning.message) for warning in said)
    assert counts(cohort)["meds-outside-stay"] == 1


# Without stays


def test_where_the_spec_has_no_stays_none_is_spoken_of(write):
    rows = [*person(), row(1, 0.5, "PILL", 5.0), *stay()[1:]]
    with pytest.warns(cp.CohortWarning, match="1 record of pill lies before the first measurement or after follow-up"):
        cohort = read(write(rows), WITHOUT_STAYS)
    assert counts(cohort) == {"meds-outside-record": 1}
    assert not any("stay" in str(repair) for repair in cohort.repairs)
