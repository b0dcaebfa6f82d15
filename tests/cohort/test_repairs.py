"""Repairs happen only where asked, and are counted."""

import numpy as np
import pytest

import counterpath as cp

TWICE = {
    "patient": [1, 1, 1, 2],
    "time": [0.0, 0.0, 1.0, 0.0],
    "y": [1.0, 4.0, 5.0, 6.0],
    "rhythm": ["a", "b", "a", "b"],
}


@pytest.mark.parametrize(("choice", "y", "rhythm"), [("mean", 2.5, "b"), ("first", 1.0, "a"), ("last", 4.0, "b")])
def test_duplicates(read, choice, y, rhythm):
    cohort = read(TWICE, duplicates=choice)
    assert cohort.records.times.tolist() == [0.0, 1.0, 0.0]
    assert cohort.observations["y"].to_list() == [y, 5.0, 6.0]
    assert cohort.observations["rhythm"].to_list() == [rhythm, "a", "b"]
    (repair,) = cohort.repairs
    assert (repair.code, repair.count, repair.patients, repair.columns) == ("duplicate_times", 2, (1,), ("y", "rhythm"))
    rule = "the mean (of categories the last)" if choice == "mean" else f"the {choice}"
    assert repair.message == f"2 duplicate values in y, rhythm replaced by {rule}."


def test_a_lone_value_keeps_its_bits_beside_a_mean(read):
    value = 0.1 + 0.2
    cohort = read({"patient": [1, 1, 1], "time": [0.0, 0.0, 1.0], "y": [1.0, 2.0, value]}, duplicates="mean")
    assert cohort.records.values[1, 0] == value


def test_duplicates_in_a_long_table(read):
    long = {"patient": [1, 1], "time": [0.0, 0.0], "variable": ["y", "y"], "value": [1.0, 2.0]}
    assert read(long, duplicates="last").records.values.tolist() == [[2.0]]


def test_nothing_to_repair_is_nothing_reported(read):
    assert read({"patient": [1], "time": [0.0], "y": [1.0]}, duplicates="mean").repairs == ()


def test_merge_within_joins_records_at_the_time_of_the_last(read):
    cohort = read(
        {
            "patient": [1, 1, 1, 2],
            "time": [0.0, 1.0, 1.25, 1.0],
            "y": [0.0, 1.0, 2.0, 9.0],
            "x": [None, 3.0, None, 1.0],
        },
        merge_within=0.25,
    )
    assert cohort.records.times.tolist() == [0.0, 1.25, 0.0]
    np.testing.assert_array_equal(cohort.records.values, [[0.0, np.nan], [1.5, 3.0], [9.0, 1.0]])
    (repair,) = cohort.repairs
    assert (repair.code, repair.count, repair.patients) == ("merged_records", 1, (1,))
    assert repair.message == "1 record within 0.25 days of another joined it (by mean)."


def test_merged_records_follow_the_choice_for_duplicates(read):
    table = {"patient": [1, 1], "time": [1.0, 1.25], "y": [2.0, 4.0]}
    assert read(table, merge_within=0.25, duplicates="last").records.values.tolist() == [[4.0]]
    assert read(table, merge_within=0.25).records.values.tolist() == [[3.0]]


def test_a_chain_of_near_records_does_not_creep(read):
    times = [0.0, 1.0, 2.0, 3.0, 4.0]
    cohort = read({"patient": [1] * 5, "time": times, "y": times}, merge_within=1.0)
    assert cohort.records.times.tolist() == [1.0, 3.0, 4.0]
    assert cohort.records.values[:, 0].tolist() == [0.5, 2.5, 4.0]


def test_records_of_two_patients_never_merge(read):
    cohort = read({"patient": [1, 2], "time": [5.0, 5.0], "y": [1.0, 2.0]}, merge_within=10.0)
    assert cohort.records.rows == 2


def test_a_negative_merge_is_refused(read):
    with pytest.raises(cp.CohortError, match="merge_within=-1"):
        read({"patient": [1], "time": [5.0], "y": [1.0]}, merge_within=-1.0)


LATE = {"patient": [1, 1, 2], "time": [0.0, 5.0, 0.0], "y": [1.0, 2.0, 3.0]}
GIVEN = {
    "patient": [1, 1, 1, 2],
    "treatment": ["pill", "pill", "drip", "drip"],
    "start": [1.0, 4.0, 2.0, 2.0],
    "stop": [None, None, 6.0, 4.0],
    "dose": [1.0, 1.0, None, None],
    "rate": [None, None, 0.5, 0.5],
}
ENDS = {"patient": [1, 2], "end": [4.0, 4.0]}


def test_what_is_dated_after_follow_up_goes_if_asked(read):
    cohort = read(LATE, GIVEN, ENDS, follow_up_end="end", after_follow_up="drop")
    assert cohort.records.times.tolist() == [0.0, 0.0]
    assert cohort.treatments["start"].to_list() == [1.0, 2.0, 2.0]
    np.testing.assert_array_equal(cohort.events.stop, [np.nan, np.inf, 4.0])  # a drip that outlasts it is still running
    assert [(r.code, r.count) for r in cohort.repairs] == [
        ("record_after_follow_up", 1),
        ("treatment_after_follow_up", 1),
        ("treatment_after_follow_up", 1),
    ]
    assert all(f.severity == "note" for f in cohort.check().findings if f.code == "treatment_after_follow_up")


def test_a_patient_whose_every_record_goes_is_named(read):
    with pytest.warns(cp.CohortWarning, match="1 patient without any measurement left out: patient 1"):
        cohort = read(
            {"patient": [1, 2], "time": [0.0, 0.0], "y": [1.0, 2.0]},
            {"patient": [2], "treatment": ["pill"], "time": [0.0]},
            {"patient": [1, 2], "end": [-1.0, 5.0], "age": [30, 40]},
            follow_up_end="end",
            after_follow_up="drop",
        )
    assert cohort.patients.to_list() == [2]
    assert cohort.static["age"].to_list() == [40]
    assert cohort.events.rows == 1
