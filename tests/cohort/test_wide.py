import numpy as np
import pandas as pd
import polars as pl
import pytest

import counterpath as cp

FRAME = pl.DataFrame(
    {
        "id": ["a"] * 4 + ["b"] * 2,
        "hour": [0.0, 1.0, 2.0, 4.0, 0.0, 3.0],
        "y": [1.0, None, 3.0, 4.0, 5.0, 6.0],
        "dose": [None, 250.0, 0.0, None, 100.0, None],
        "flag": [False, True, False, None, False, True],
        "rate": [0.5, 0.5, 0.75, 0.0, None, 0.25],
        "weight": [60, 60, 61, 61, 80, 80],
        "sex": ["f", None, "f", "f", "m", "m"],
        "end": [9.0, 9.0, 9.0, 9.0, None, None],
    }
)


def wide(frame=FRAME, **options):
    options = {"patient": "id", "time": "hour", "outcome": "y", "time_unit": "hour"} | options
    return cp.Cohort.from_frame(frame, **options)


def test_doses_are_where_the_column_is_neither_empty_nor_zero():
    cohort = wide(treatments={"drug": "dose", "surgery": "flag"})
    table = cohort.treatments.sort("treatment", "id")
    assert table.select("id", "treatment", "start", "dose").rows() == [
        ("a", "drug", 1.0, 250.0),
        ("b", "drug", 0.0, 100.0),
        ("a", "surgery", 1.0, 1.0),
        ("b", "surgery", 3.0, 1.0),
    ]


def test_a_rate_holds_until_it_changes_and_is_open_in_the_last_row():
    cohort = wide(infusions={"drip": "rate"})
    assert cohort.treatments.select("id", "start", "stop", "rate").rows() == [
        ("a", 0.0, 2.0, 0.5),
        ("a", 2.0, 4.0, 0.75),
        ("b", 3.0, None, 0.25),
    ]
    assert np.isinf(cohort.events.stop[2])


def test_static_columns_and_end_of_follow_up():
    cohort = wide(static="sex", covariates="weight", follow_up_end="end")
    assert cohort.static["sex"].to_list() == ["f", "m"]
    np.testing.assert_array_equal(cohort.follow_up_end, [9.0, np.nan])
    assert cohort.observations["weight"].to_list() == [60, 60, 61, 61, 80, 80]


def test_repeated_values_are_carried_forward_only_if_said():
    cohort = wide(covariates=["weight"], changes_only=["weight"])
    assert cohort.observations["weight"].to_list() == [60, 61, None, 80, None]
    (repair,) = cohort.repairs
    assert (repair.code, repair.count) == ("carried_forward", 3)
    assert wide(covariates=["weight"]).repairs == ()


def test_changes_only_must_name_a_variable():
    with pytest.raises(cp.CohortError, match="changes_only names 'dose', which is no outcome and no covariate"):
        wide(changes_only="dose")


def test_columns_called_variable_and_value_are_variables(tmp_path):
    frame = FRAME.rename({"weight": "value", "sex": "variable"})
    cohort = wide(frame, covariates=["variable", "value"])
    assert [v.name for v in cohort.schema.covariates] == ["variable", "value"]
    cohort.save(tmp_path / "c")
    assert cp.read_cohort(tmp_path / "c").equals(cohort)


def test_rows_may_come_in_any_order():
    order = [3, 5, 0, 4, 2, 1]
    with pytest.warns(cp.CohortWarning, match="Times run backwards"):
        shuffled = wide(FRAME[order], infusions="rate", treatments="dose", covariates="weight")
    assert shuffled[["a", "b"]].events.equals(wide(infusions="rate", treatments="dose", covariates="weight").events)


def test_pandas_in_pandas_out():
    cohort = wide(FRAME.to_pandas(), treatments="dose", static="sex")
    assert isinstance(cohort.observations, pd.DataFrame)
    assert cohort.records.equals(wide().records)


def test_options_of_from_tables_work_here():
    cohort = wide(bounds={"y": (0.0, None)}, units={"y": "mg/L"}, randomised=True, time_zero="as given")
    assert cohort.schema.outcomes[0].label == "y (mg/L)"
    assert cohort.schema.randomised


def test_a_missing_column_is_named():
    with pytest.raises(cp.CohortError, match=r"The wide table has no column 'rat'. Did you mean 'rate'\?"):
        wide(infusions={"drip": "rat"})


def test_times_as_text_are_numbers_before_they_are_sorted():
    frame = pl.DataFrame(
        {"id": [1] * 3, "t": ["9", "10", "11"], "y": ["1", "2", "3"], "w": [70.0, 71.0, 70.0], "r": ["2", "2", "0"]}
    )
    cohort = cp.Cohort.from_frame(
        frame, patient="id", time="t", outcome="y", time_unit="hour", covariates="w", changes_only="w", infusions="r"
    )
    assert cohort.observations["w"].to_list() == [70.0, 71.0, 70.0]
    assert cohort.treatments.select("start", "stop", "rate").rows() == [(0.0, 2.0, 2.0)]


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"outcome": "conc", "covariates": ["conc"]}, "'conc' is named twice"),
        ({"time": "dose"}, "Rename it"),
        ({"infusions": ["sex"]}, "text"),
    ],
)
def test_roles_that_clash_are_named(options, message):
    frame = pl.DataFrame({"id": [1, 1], "day": [0.0, 1.0], "dose": [1.0, 2.0], "conc": [1.0, 2.0], "sex": ["f", "f"]})
    settings = {"patient": "id", "time": "day", "outcome": "conc", "time_unit": "day"} | options
    with pytest.raises(cp.CohortError, match=message):
        cp.Cohort.from_frame(frame, **settings)


def test_a_row_that_only_records_a_dose_is_no_visit_and_no_repair():
    frame = pl.DataFrame(
        {"id": [1, 1, 1], "day": [0.0, 1.0, 2.0], "dose": [5.0, None, None], "conc": [None, 2.0, None]}
    )
    cohort = cp.Cohort.from_frame(frame, patient="id", time="day", outcome="conc", time_unit="day", treatments="dose")
    assert cohort.records.times.tolist() == [1.0]
    assert [(r.code, r.count) for r in cohort.repairs] == [("row_without_value", 1)]
