from datetime import UTC, datetime

import narwhals as nw
import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest

import counterpath as cp

OBSERVATIONS = {
    "patient": [1, 1, 2],
    "time": [0.0, 1.0, 0.0],
    "y": [1.0, None, 3.0],
    "n": [1, 2, 3],
    "rhythm": ["sinus", None, "flutter"],
}
TREATMENTS = {"patient": [1], "time": [0.5], "treatment": ["pill"], "dose": [2.0]}
STATIC = {"patient": [1, 2], "age": [40, None], "smoker": [True, None]}
OPTIONS = {"outcome": "y", "time_unit": "day"}

MAKERS = {
    "polars": pl.DataFrame,
    "pandas": pd.DataFrame,
    "pyarrow": pa.table,
}
TYPES = {"polars": pl.DataFrame, "pandas": pd.DataFrame, "pyarrow": pa.Table}


def cohort_of(kind):
    make = MAKERS[kind]
    return cp.Cohort.from_tables(make(OBSERVATIONS), make(TREATMENTS), make(STATIC), **OPTIONS)


@pytest.mark.parametrize("kind", MAKERS)
def test_every_table_comes_back_as_the_kind_that_was_given(kind):
    cohort = cohort_of(kind)
    tables = (cohort.observations, cohort.treatments, cohort.static, cohort.describe(), cohort.check().to_frame())
    assert all(isinstance(table, TYPES[kind]) for table in tables)
    assert isinstance(cohort.cut(0.0).outcomes(), TYPES[kind])


@pytest.mark.parametrize("kind", ["pandas", "pyarrow"])
def test_kinds_hold_the_same_records(kind):
    other, polars = cohort_of(kind), cohort_of("polars")
    assert other.records.equals(polars.records)
    assert other.events.equals(polars.events)
    assert other.patients.equals(polars.patients)


@pytest.mark.parametrize("kind", MAKERS)
def test_a_cohort_can_be_read_from_its_own_frames(kind):
    cohort = cohort_of(kind)
    static = nw.from_native(cohort.static).drop("time_origin").to_native()
    again = cp.Cohort.from_tables(
        cohort.observations, cohort.treatments, static, follow_up_end="follow_up_end", **OPTIONS
    )
    assert again.records.equals(cohort.records)
    assert again.events.equals(cohort.events)
    np.testing.assert_array_equal(again.static_values, cohort.static_values)


def test_a_polars_lazy_frame_is_collected():
    cohort = cp.Cohort.from_tables(pl.LazyFrame(OBSERVATIONS), **OPTIONS)
    assert cohort.records.equals(cohort_of("polars").records)


def test_pandas_gaps_of_every_kind_are_gaps():
    frame = pd.DataFrame(
        {
            "patient": [1, 1, 1, 1],
            "time": [0.0, 1.0, 2.0, 3.0],
            "y": [1.0, 2.0, 3.0, 4.0],
            "nullable": pd.array([1, None, 3, None], dtype="Int64"),
            "category": pd.Categorical(["a", None, "b", "a"]),
            "objects": pd.Series([1, pd.NA, 2.5, None], dtype=object),
            "flag": pd.array([True, None, False, True], dtype="boolean"),
        }
    )
    cohort = cp.Cohort.from_tables(frame, **OPTIONS)
    back = cohort.observations
    assert back["nullable"].dtype == "Int64"
    assert back["nullable"].isna().tolist() == [False, True, False, True]
    assert back["category"].isna().tolist() == [False, True, False, False]
    np.testing.assert_array_equal(back["objects"], [1.0, np.nan, 2.5, np.nan])
    assert back["flag"].dtype == "boolean"


def test_pandas_integer_ids_with_gaps_elsewhere_stay_integers():
    frame = pd.DataFrame({"patient": [1.0, 2.0], "time": [0, 0], "y": [1.0, 2.0]})
    assert cp.Cohort.from_tables(frame, **OPTIONS).patients.to_list() == [1, 2]


def test_pandas_column_names_may_be_numbers():
    frame = pd.DataFrame({"patient": [1], "time": [0.0], 7: [1.0]})
    assert cp.Cohort.from_tables(frame, outcome="7", time_unit="day").schema.outcomes[0].name == "7"


def test_pandas_datetimes_with_a_zone():
    moments = pd.date_range("2024-03-30 12:00", periods=3, freq="D", tz="Europe/Berlin")
    frame = pd.DataFrame({"patient": [1, 1, 1], "time": moments, "y": [1.0, 2.0, 3.0]})
    cohort = cp.Cohort.from_tables(frame, outcome="y", time_unit="hour")
    assert cohort.records.times.tolist() == [0.0, 23.0, 47.0]  # clocks went forward in the night to the 31st
    assert cohort.origins.to_list() == [datetime(2024, 3, 30, 11, tzinfo=UTC)]


def test_writing_into_a_frame_leaves_the_cohort_as_it_is():
    cohort = cohort_of("pandas")
    frame = cohort.observations
    frame.loc[0, "y"] = 99.0
    frame.loc[0, "time"] = 99.0
    assert cohort.records.values[0, 0] == 1.0
    assert cohort.records.times[0] == 0.0


def test_pandas_text_is_read_where_pyarrow_is_not_installed(monkeypatch):
    def not_installed(self):
        raise ModuleNotFoundError("No module named 'pyarrow'")

    monkeypatch.setattr(nw.Series, "to_polars", not_installed)
    cohort = cp.Cohort.from_tables(pd.DataFrame(OBSERVATIONS), **OPTIONS)
    assert cohort.observations["rhythm"].tolist()[::2] == ["sinus", "flutter"]
    assert cohort.records.equals(cohort_of("polars").records)
