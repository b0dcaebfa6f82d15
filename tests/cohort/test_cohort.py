from dataclasses import FrozenInstanceError
from datetime import UTC, date, datetime, timedelta, timezone

import numpy as np
import pandas as pd
import polars as pl
import pytest

import counterpath as cp
from counterpath.cohort import fit_scaler

VISITS = {
    "patient": ["a", "a", "a", "b", "b", "c"],
    "time": [0.0, 2.0, 5.0, 0.0, 3.0, 0.0],
    "y": [1.0, 2.0, 3.0, 4.0, None, 6.0],
    "x": [None, 1.0, None, 2.0, 5.0, None],
}
GIVEN = {
    "patient": ["a", "a", "b", "c"],
    "treatment": ["pill", "drip", "drip", "pill"],
    "start": [2.0, 1.0, 0.0, 0.0],
    "stop": [None, 4.0, 3.0, None],
    "dose": [5.0, None, None, 1.0],
    "rate": [None, 0.5, 0.25, None],
}


@pytest.fixture
def trio(read):
    return read(VISITS, GIVEN, {"patient": ["a", "b", "c"], "age": [30, None, 50]})


def test_nothing_can_be_set(trio):
    with pytest.raises(FrozenInstanceError):
        trio.patients = pl.Series(["z"])
    with pytest.raises(FrozenInstanceError):
        trio.records.times = np.zeros(6)
    with pytest.raises(ValueError, match="frozen"):
        trio.schema.time_unit = "hour"


@pytest.mark.parametrize(
    "array",
    [
        lambda c: c.records.times,
        lambda c: c.records.values,
        lambda c: c.records.offsets,
        lambda c: c.events.start,
        lambda c: c.events.stop,
        lambda c: c.events.amount,
        lambda c: c.events.treatment,
        lambda c: c.follow_up_end,
        lambda c: c.static_values,
    ],
)
@pytest.mark.parametrize(
    "derive", [lambda c: c, lambda c: c[:2], lambda c: c.until(0.5)], ids=["all", "slice", "until"]
)
def test_arrays_are_read_only(trio, array, derive):
    with pytest.raises(ValueError, match="read-only"):
        array(derive(trio))[...] = 0


def test_repr_says_who_what_and_how_long(read):
    cohort = read(
        VISITS,
        GIVEN,
        {"patient": ["a", "b", "c"], "sex": ["f", "m", "f"]},
        units={"y": "mmHg", "pill": "mg"},
        randomised=True,
    )
    assert repr(cohort).splitlines() == [
        "Cohort of 3 patients, 6 records, time in days, randomised",
        "  follow-up   median 3 days, longest 5",
        "  outcomes    y (mmHg) 5 times",
        "  covariates  x",
        "  static      sex [2 levels]",
        "  treatments  drip 2 times, pill (mg) 2 times",
    ]


def test_repr_shows_repairs(read):
    twice = {"patient": [1, 1], "time": [0.0, 0.0], "y": [1.0, 3.0]}
    assert "repaired    1 duplicate value in y replaced by the mean." in repr(read(twice, duplicates="mean"))


def test_describe_by_hand(trio):
    table = trio.describe()
    y, x, age, drip, pill = table.iter_rows(named=True)
    assert (y["role"], y["values"], y["patients"], y["per_patient"]) == ("outcome", 5, 1.0, 1.0)
    assert (y["mean"], y["lowest"], y["median"], y["highest"]) == (pytest.approx(16 / 5), 1.0, 3.0, 6.0)
    assert y["std"] == pytest.approx(np.std([1, 2, 3, 4, 6]))
    assert (x["role"], x["values"], x["patients"]) == ("covariate", 3, pytest.approx(2 / 3))
    assert (age["role"], age["values"], age["mean"]) == ("static", 2, 40.0)
    assert (drip["role"], drip["kind"], drip["values"], drip["highest"]) == ("treatment", "rate", 2, 0.5)
    assert (pill["kind"], pill["values"], pill["per_patient"], pill["mean"]) == ("dose", 2, 1.0, 3.0)


def test_describe_names_the_most_common_category(read):
    cohort = read({"patient": [1, 1, 1], "time": [0, 1, 2], "y": [1.0, 2.0, 3.0], "rhythm": ["b", "a", "b"]})
    assert cohort.describe()["most_common"].to_list() == [None, "b"]


# --- choosing patients


def test_slices_go_by_position(trio):
    assert trio[1:].patients.to_list() == ["b", "c"]
    assert trio[::-1].patients.to_list() == ["c", "b", "a"]
    assert len(trio[:0]) == 0


@pytest.mark.parametrize(
    "mask",
    [
        [True, False, True],
        np.array([True, False, True]),
        pl.Series([True, False, True]),
        pd.Series([True, False, True]),
    ],
    ids=["list", "numpy", "polars", "pandas"],
)
@pytest.mark.parametrize("ids", [["a", "b", "c"], [1, 0, 2]], ids=["text", "integers"])
def test_masks_go_by_position(read, mask, ids):
    cohort = read({"patient": ids, "time": [0, 0, 0], "y": [1.0, 2.0, 3.0]})
    assert cohort[mask].patients.to_list() == [ids[0], ids[2]]


def test_everything_else_goes_by_id(read, trio):
    assert trio["b"].patients.to_list() == ["b"]
    assert trio[["c", "a"]].patients.to_list() == ["c", "a"]
    numbers = read({"patient": [20, 10], "time": [0, 0], "y": [1.0, 2.0]})
    assert numbers[10].patients.to_list() == [10]
    assert numbers[np.array([10, 20])].patients.to_list() == [10, 20]
    assert numbers[pl.Series([10])].patients.to_list() == [10]


def test_a_choice_keeps_each_patients_own_rows(trio):
    chosen = trio[["c", "a"]]
    assert chosen.records.times.tolist() == [0.0, 0.0, 2.0, 5.0]
    assert chosen.records.values[:, 0].tolist() == [6.0, 1.0, 2.0, 3.0]
    assert chosen.treatments["patient"].to_list() == ["c", "a", "a"]
    assert chosen.static["age"].to_list() == [50, 30]
    assert chosen[["a", "c"]].equals(trio[["a", "c"]])


@pytest.mark.parametrize(
    ("which", "error", "message"),
    [
        ("z", cp.CohortError, "Patient z is not in this cohort of 3"),
        (["y", "z", "a"], cp.CohortError, "Patients y, z are not in this cohort of 3"),
        (7, cp.CohortError, "7 names no patients: ids of this cohort are text"),
        (["a", "a"], cp.CohortError, "holds each patient once"),
        (np.array([True]), IndexError, "The mask has 1 values; the cohort has 3 patients"),
    ],
)
def test_a_choice_that_cannot_be_made_says_why(trio, which, error, message):
    with pytest.raises(error, match=message):
        trio[which]


# --- splitting


def test_a_split_is_disjoint_and_complete(ward):
    parts = ward.split((0.5, 0.2, 0.3), seed=3)
    assert [len(part) for part in parts] == [15, 6, 9]
    everybody = [patient for part in parts for patient in part.patients]
    assert sorted(everybody) == sorted(ward.patients)
    assert sum(part.records.rows for part in parts) == ward.records.rows
    assert sum(part.events.rows for part in parts) == ward.events.rows


def test_a_split_depends_on_its_seed_alone(ward):
    first, again, other = (ward.split((0.5, 0.5), seed=seed)[0] for seed in (0, 0, 1))
    assert first.equals(again)
    assert first.patients.to_list() != other.patients.to_list()


@pytest.mark.parametrize("shares", [(0.5, 0.4), (1.2, -0.2), ()])
def test_shares_must_sum_to_one(ward, shares):
    with pytest.raises(cp.CohortError, match="not positive numbers with sum 1"):
        ward.split(shares, seed=0)


def test_too_few_patients_to_split(trio):
    with pytest.raises(cp.CohortError, match="3 patients are too few"):
        trio.split((0.01, 0.99), seed=0)


# --- until


def test_until_keeps_observations_up_to_it_and_treatments_before_it(trio):
    history = trio[["a"]].until(2.0)
    assert history.records.times.tolist() == [0.0, 2.0]  # the record at the time itself is known
    assert history.treatments["treatment"].to_list() == ["drip"]  # the pill at the time itself is not
    assert history.events.stop.tolist() == [np.inf]
    assert history.history_end.tolist() == [2.0]


def test_an_interval_that_stops_at_the_very_time_is_open(trio):
    assert trio[["a"]].until(4.0).events.stop[0] == np.inf
    assert trio[["a"]].until(4.5).events.stop[0] == 4.0


def test_until_takes_a_time_per_patient(trio):
    by_position = trio.until([2.0, 0.5, 0.0])
    by_id = trio.until({"c": 0.0, "b": 0.5, "a": 2.0})
    assert by_position.equals(by_id)
    assert by_position.history_end.tolist() == [2.0, 0.5, 0.0]
    assert by_position.equals(trio.until(np.array([2.0, 0.5, 0.0])))
    assert by_position.equals(trio.until(pl.Series([2.0, 0.5, 0.0])))
    assert trio.until(np.int64(1)).equals(trio.until(1.0))


def dated(read, zone=None):
    times = pl.Series([datetime(2024, 1, 1), datetime(2024, 1, 3), datetime(2024, 1, 2)]).dt.replace_time_zone(zone)
    return read({"patient": ["a", "a", "b"], "time": times, "y": [1.0, 2.0, 3.0]})


def test_until_takes_a_date_on_the_users_clock(read):
    cohort = dated(read)
    assert cohort.until(date(2024, 1, 2)).history_end.tolist() == [1.0, 0.0]
    assert cohort.until(datetime(2024, 1, 2, 12)).history_end.tolist() == [1.5, 0.5]
    by_id = cohort.until({"a": date(2024, 1, 3), "b": date(2024, 1, 4)})
    assert by_id.history_end.tolist() == [2.0, 2.0]


def test_until_takes_an_instant_of_another_zone(read):
    instant = datetime(2024, 1, 2, 1, tzinfo=timezone(timedelta(hours=2)))  # midnight in Berlin
    assert dated(read, "Europe/Berlin").until(instant).history_end.tolist() == [1.0, 0.0]


@pytest.mark.parametrize(("zone", "moment"), [(None, "with"), ("Europe/Berlin", "without")])
def test_until_refuses_a_moment_that_is_on_another_kind_of_clock(read, zone, moment):
    time = datetime(2024, 1, 2, tzinfo=UTC if moment == "with" else None)
    with pytest.raises(cp.CohortError, match="a time zone"):
        dated(read, zone).until(time)


@pytest.mark.parametrize(
    ("time", "message"),
    [
        (date(2024, 1, 1), "counts time in numbers"),
        (float("nan"), "missing or infinite"),
        ([1.0, 2.0], "2 times for 3 patients"),
        ({"a": 1.0}, "No time was given for patients b, c"),
        (-1.0, r"Patients a, b, c were not under observation .*\(0 ended before, 3 began later\)"),
    ],
)
def test_until_refuses_times_that_make_no_sense(trio, time, message):
    with pytest.raises(cp.CohortError, match=message):
        trio.until(time)


def test_until_leaves_out_who_had_ended_only_if_asked(read):
    cohort = read(
        {"patient": ["a", "b"], "time": [0.0, 0.0], "y": [1.0, 2.0]},
        static={"patient": ["a", "b"], "end": [5.0, 10.0]},
        follow_up_end="end",
    )
    with pytest.raises(cp.CohortError, match=r"Patient a was not under observation .*ended='drop'"):
        cohort.until(7.0)
    assert cohort.until(7.0, ended="drop").patients.to_list() == ["b"]
    assert cohort.until(5.0).patients.to_list() == ["a", "b"]


def test_the_example_ward_is_ready_to_use(ward):
    assert len(ward) == 30
    assert [t.name for t in ward.schema.treatments] == ["fluid", "norepinephrine"]
    assert ward.repairs == ()
    assert ward.check().ok
    pandas = cp.load_example_ward(frames="pandas")
    assert isinstance(pandas.observations, pd.DataFrame)
    assert pandas.records.equals(ward.records)


@pytest.fixture
def january():
    frame = pd.DataFrame(
        {
            "patient": ["B", "B", "A", "A"],
            "time": pd.to_datetime(["2024-01-01", "2024-01-05", "2024-01-02", "2024-01-05"]),
            "y": [1.0, 2.0, 3.0, 4.0],
        }
    )
    return cp.Cohort.from_tables(frame, outcome="y", time_unit="day")


@pytest.mark.parametrize(
    "moment",
    [
        np.datetime64("2024-01-03"),
        pd.Timestamp("2024-01-03"),
        "2024-01-03",
        np.array(["2024-01-03", "2024-01-03"], dtype="datetime64[ns]"),
        pd.Series(pd.to_datetime(["2024-01-03", "2024-01-03"]), index=["A", "B"]),
    ],
    ids=lambda moment: type(moment).__name__,
)
def test_dates_of_every_library_are_dates(january, moment):
    assert january.until(moment).history_end.tolist() == [2.0, 1.0]


def test_a_labelled_series_goes_by_its_labels(january):
    """`groupby` sorts by id, and a cohort keeps the order of its table."""
    assert january.until(pd.Series({"A": 1.0, "B": 2.0})).history_end.tolist() == [2.0, 1.0]
    with pytest.raises(cp.CohortError, match="No time was given for patients B, A"):
        january.until(pd.Series([1.0, 2.0]))


@pytest.mark.parametrize(
    ("time", "message"),
    [
        ("soon", "'soon' is no time"),
        (pd.Timedelta("1D"), "is a Timedelta, not a time"),
        ([1.0, pd.Timestamp("2024-01-03")], "Give one kind"),
        (np.datetime64("NaT", "us"), "missing"),
    ],
)
def test_what_is_no_time_is_refused(january, time, message):
    with pytest.raises(cp.CohortError, match=message):
        january.until(time)


def test_rounding_does_not_lose_an_outcome_at_the_longest_horizon(read):
    cohort = read({"patient": [1] * 3, "time": [0.0, 12.1, 18.1], "y": [1.0, 2.0, 3.0]}, time_unit="hour")
    later = cohort.cut(12.1, max_horizon=6.0).outcomes()
    assert later["elapsed"].to_list() == [6.0]


def test_new_patients_are_read_like_the_training_patients(ward):
    """Whatever levels, treatments and doses the new table happens to hold."""
    new = pl.DataFrame(
        {
            "patient": ["N1", "N1"],
            "time": [datetime(2032, 1, 1, 8), datetime(2032, 1, 1, 10)],
            "pressure": [60, 65],
            "heart_rate": [100, 98],
            "rhythm": ["sinus", None],
        }
    )
    static = pl.DataFrame({"patient": ["N1"], "age": [50], "sex": ["male"]})
    cohort = cp.Cohort.from_tables(new, static=static, like=ward)
    assert cohort.schema == ward.schema
    assert cohort.observations["rhythm"].to_list() == ["sinus", None]
    assert cp.Plan.dose("fluid").resolve(cohort).amount.tolist() == [500.0]
    fit_scaler(ward).require_same(cohort.schema)
    with pytest.raises(cp.CohortError, match="'flutter' is not a level of 'rhythm'"):
        cp.Cohort.from_tables(new.with_columns(rhythm=pl.lit("flutter")), static=static, like=ward)
    alone = cp.Cohort.from_tables(new, static=static, outcome="pressure", time_unit="hour")
    with pytest.raises(cp.CohortError, match="like=train"):
        fit_scaler(ward).require_same(alone.schema)


def test_either_roles_or_a_cohort_to_be_like(ward):
    with pytest.raises(cp.CohortError, match=r"or like=…"):
        cp.Cohort.from_tables(ward.observations)
    with pytest.raises(cp.CohortError, match="`like` predicts pressure"):
        cp.Cohort.from_tables(ward.observations, outcome="heart_rate", like=ward)


def test_what_a_cohort_gives_back_can_be_read_again(ward):
    again = cp.Cohort.from_tables(ward.observations, ward.treatments, ward.static, like=ward, time_zero="as given")
    assert again.equals(ward)
    edited = ward.observations.with_columns(pl.col("pressure") + 1)
    changed = cp.Cohort.from_tables(edited, ward.treatments, ward.static, like=ward, time_zero="as given")
    assert changed.origins.equals(ward.origins)
    np.testing.assert_array_equal(changed.follow_up_end, ward.follow_up_end)
