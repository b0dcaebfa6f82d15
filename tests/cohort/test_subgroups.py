"""Patients in groups: by a static covariate, or as the user says."""

import numpy as np
import polars as pl
import pytest

import counterpath as cp
from counterpath.cohort.subgroups import MOST_SUBGROUPS, subgroups

PATIENTS = 60


def cohort_with(**static):
    """Two records each; every patient has these values."""
    names = [f"P{i:02}" for i in range(PATIENTS)]
    observations = pl.DataFrame({"patient": np.repeat(names, 2), "time": [0.0, 1.0] * PATIENTS, "y": 1.0})
    return cp.Cohort.from_tables(
        observations, static=pl.DataFrame({"patient": names, **static}), outcome="y", time_unit="day"
    )


def test_a_few_values_are_a_group_each():
    sexes = ["f", "m", None] * (PATIENTS // 3)
    masks = subgroups(cohort_with(sex=sexes), "sex")
    assert list(masks) == ["sex unknown", "sex f", "sex m"]
    np.testing.assert_array_equal(masks["sex f"], [sex == "f" for sex in sexes])


def test_many_numbers_come_in_thirds_and_nobody_is_lost():
    ages = [None, *range(20, 79)]
    masks = subgroups(cohort_with(age=ages), "age")
    assert list(masks) == ["age below 39.3", "age 39.3 to 58.7", "age above 58.7", "age unknown"]
    np.testing.assert_array_equal(sum(masks.values()), np.ones(PATIENTS))
    np.testing.assert_array_equal(masks["age above 58.7"], [age is not None and age > 58.7 for age in ages])
    assert all(19 <= mask.sum() <= 21 for name, mask in masks.items() if name != "age unknown")


def test_where_most_have_the_same_number_there_are_fewer_groups():
    doses = np.where(np.arange(PATIENTS) < 30, 0.0, np.arange(PATIENTS))
    masks = subgroups(cohort_with(smoked=doses), "smoked")
    assert list(masks) == ["smoked 0 to 39.3", "smoked above 39.3"]
    np.testing.assert_array_equal(sum(masks.values()), np.ones(PATIENTS))


def test_a_text_with_too_many_values_is_refused_with_a_remedy():
    wards = [f"ward {i}" for i in range(MOST_SUBGROUPS + 1)] + ["ward 0"] * (PATIENTS - MOST_SUBGROUPS - 1)
    cohort = cohort_with(ward=wards)
    with pytest.raises(cp.CohortError, match=r"'ward' has 21 different values.* at most 20, or make one in your table"):
        subgroups(cohort, "ward")
