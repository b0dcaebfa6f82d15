"""Cohorts with one schema become one; patients keep what is theirs."""

import numpy as np
import polars as pl
import pytest

import counterpath as cp


def test_parts_of_a_cohort_make_it_up_again():
    ward = cp.load_example_ward()
    again = cp.Cohort.joined([ward[:4], ward[4:5], ward[5:]])
    assert again.patients.equals(ward.patients)
    assert again.records.equals(ward.records)
    assert again.events.equals(ward.events)
    np.testing.assert_array_equal(again.follow_up_end, ward.follow_up_end)
    np.testing.assert_array_equal(again.static_values, ward.static_values)


def test_a_patient_can_be_there_twice_under_two_names():
    one = cp.load_example_ward()[:1]
    twice = cp.Cohort.joined([one, one.renamed(pl.Series(["other"]))])
    assert twice.patients[1] == "other"
    assert twice[1:].records.equals(one.records)
    with pytest.raises(cp.CohortError, match="would be in the cohort more than once"):
        cp.Cohort.joined([one, one])


def test_other_schemas_are_refused():
    ward, study = cp.load_example_ward(), cp.load_tumor_growth(patients=5)
    with pytest.raises(cp.CohortError, match="different schemas"):
        cp.Cohort.joined([ward, study])


def test_tables_are_read_as_a_schema_alone_says():
    ward = cp.load_example_ward()
    observations, treatments, static = ward[:3].observations, ward[:3].treatments, ward[:3].static
    by_cohort, by_schema = (
        cp.Cohort.from_tables(observations, treatments, static, like=like) for like in (ward, ward.schema)
    )
    assert by_schema.equals(by_cohort)
    assert by_schema.schema == ward.schema
