"""Every bad table gets one clear error, or one counted warning, that names patient or column and the remedy."""

import re
from datetime import datetime

import numpy as np
import pandas as pd
import polars as pl
import pytest

import counterpath as cp

VISITS = {"patient": ["W01", "W01", "W02"], "time": [0.0, 1.0, 0.0], "y": [1.0, 2.0, 3.0]}
SCHEMA = 'time_unit = "day"\noutcomes = [{ name = "y" }]\n'
CSV = "patient,time,y\nW01,0,1\nW01,1,2\n"


def doses(**columns):
    return {"patient": ["W01", "W02"], "treatment": ["drug", "drug"], "time": [0.0, 0.0]} | columns


def intervals(**columns):
    return {"patient": ["W01", "W02"], "treatment": ["drug", "drug"], "start": [0.0, 0.0], "stop": [1.0, 1.0]} | columns


def expect_refusal(call, *parts, code=None):
    """The one error, whose text holds all the parts."""
    with pytest.raises(cp.CohortError) as caught:
        call()
    for part in parts:
        assert part in str(caught.value)
    if code is not None:
        assert [finding.code for finding in caught.value.findings] == [code]
    return caught.value.findings[0]


def folder_with(tmp_path, schema=SCHEMA, **tables):
    for name, text in ({"observations": CSV} | tables).items():
        (tmp_path / f"{name}.csv").write_text(text, encoding="utf-8")
    if schema is not None:
        (tmp_path / "schema.toml").write_text(schema, encoding="utf-8")
    return tmp_path


# --- values


def test_text_in_a_numeric_column(read):
    finding = expect_refusal(
        lambda: read(VISITS | {"y": ["1", "high", "3"]}),
        "Patient W01: 1 value of 'y' is text (such as 'high').",
        "Leave the cell empty",
        code="text_in_numbers",
    )
    assert finding.patients == ("W01",)
    assert finding.columns == ("y",)


def test_text_in_a_covariate_that_is_mostly_numbers(read):
    expect_refusal(
        lambda: read(VISITS | {"x": ["1", "2", "n/a"]}),
        "Patient W02: 1 value of 'x' is text (such as 'n/a').",
        "categorical=['x']",
    )


def test_infinite_values(read):
    expect_refusal(
        lambda: read(VISITS | {"y": [1.0, np.inf, -np.inf]}),
        "Patients W01, W02: 2 infinite values in 'y'.",
        "Leave the cell empty",
        code="infinite_value",
    )


def test_integers_too_large_to_keep(read):
    expect_refusal(lambda: read(VISITS | {"code": [2**60, 1, 2]}), "'code' has integers above 2^53", "store it as text")


def test_a_value_out_of_bounds(read):
    finding = expect_refusal(
        lambda: read(VISITS, bounds={"y": (None, 2.5)}),
        "Patient W02: 1 value of 'y' above its bound 2.5 (such as 3).",
        "Mend the values, or widen the bound.",
        code="out_of_bounds",
    )
    assert finding.patients == ("W02",)
    expect_refusal(lambda: read(VISITS, bounds={"y": (1.5, None)}), "Patient W01: 1 value of 'y' below its bound 1.5")


def test_bounds_in_the_wrong_order(read):
    expect_refusal(lambda: read(VISITS, bounds={"y": (3.0, 1.0)}), "'y': lower bound 3 is not below upper bound 1")


def test_a_categorical_outcome(read):
    expect_refusal(lambda: read(VISITS, categorical="y"), "Outcome 'y' is declared categorical. Outcomes are numbers.")


def test_a_column_of_another_type(read):
    durations = pl.Series([1, 2, 3]).cast(pl.Duration("us"))
    expect_refusal(
        lambda: read(VISITS | {"x": durations}), "Column 'x' is of type Duration", "Make it numbers or text."
    )


def test_a_column_of_python_objects():
    frame = pd.DataFrame(VISITS | {"x": pd.Series([None, {1}, {2}], dtype=object)})
    expect_refusal(
        lambda: cp.Cohort.from_tables(frame, outcome="y", time_unit="day"),
        "Column 'x' of the observations table holds objects of type set. Convert it",
    )


# --- columns and roles


def test_a_missing_outcome_column(read):
    expect_refusal(
        lambda: read(VISITS, outcome="yy"),
        "The observations table has no column 'yy'. Did you mean 'y'?",
        code="missing_column",
    )


def test_a_missing_outcome_in_a_long_table(read):
    long = {"patient": [1], "time": [0.0], "variable": ["pressure"], "value": [1.0]}
    expect_refusal(lambda: read(long, outcome="presure"), "measures 'presure'. Did you mean 'pressure'?")


def test_a_long_table_with_an_unnamed_variable(read):
    long = {"patient": [1, 1], "time": [0.0, 1.0], "variable": ["y", None], "value": [1.0, 2.0]}
    expect_refusal(
        lambda: read(long), "1 row of the observations table without a name in column 'variable'. Fill it in"
    )


def test_a_missing_time_column(read):
    expect_refusal(lambda: read({"patient": [1], "tme": [0.0], "y": [1.0]}), "no column 'time'. Did you mean 'tme'?")


def test_a_name_in_two_roles(read):
    expect_refusal(lambda: read(VISITS, outcome=["y", "y"]), "'y' is named twice; give each column one role")


def test_a_variable_with_the_name_of_a_key(read):
    static = {"patient": ["W01", "W02"], "time": [1, 2]}
    expect_refusal(lambda: read(VISITS, static=static), "'time' is the name of a key column; rename the variable")


def test_no_outcome_named(read):
    expect_refusal(lambda: read(VISITS, outcome=[]), "name at least one outcome")


def test_an_unknown_unit_of_time(read, checker_off):
    expect_refusal(lambda: read(VISITS, time_unit="days"), "time_unit='days'", "'hour', 'day'")


def test_an_unknown_argument(read):
    with pytest.raises(TypeError, match="no argument 'colour'"):
        read(VISITS, colour="red")


@pytest.mark.parametrize("argument", [{"categorical": "z"}, {"bounds": {"z": (0, 1)}}, {"units": {"z": "mg"}}])
def test_an_argument_that_names_no_variable(read, argument):
    name = next(iter(argument))
    expect_refusal(lambda: read(VISITS, **argument), f"{name} names 'z', which is no variable of these tables.")


def test_two_columns_of_one_name():
    frame = pd.DataFrame([[1, 0.0, 2.0, 3.0]], columns=["patient", "time", "y", "y"])
    expect_refusal(
        lambda: cp.Cohort.from_tables(frame, outcome="y", time_unit="day"),
        "The observations table has two columns of one name",
        "'y'",
    )


def test_something_that_is_no_table():
    expect_refusal(
        lambda: cp.Cohort.from_tables([1, 2], outcome="y", time_unit="day"),
        "The observations table is a list. Pass a DataFrame",
    )


def test_an_empty_table(read):
    empty = pl.DataFrame(schema={"patient": pl.String, "time": pl.Float64, "y": pl.Float64})
    expect_refusal(lambda: read(empty), "The observations table is empty. Give at least one row.", code="empty_table")


def test_a_table_without_any_value(read):
    expect_refusal(lambda: read(VISITS | {"y": [None] * 3}), "No row of the observations table has a value")


# --- times


def test_unsorted_times(read):
    table = {"patient": ["W01"] * 3 + ["W02"] * 2, "time": [2.0, 1.0, 0.0, 0.0, 1.0], "y": [3.0, 2.0, 1.0, 4.0, 5.0]}
    with pytest.warns(cp.CohortWarning, match=r"Times run backwards 2 times .*\(patient W01\); rows were sorted"):
        cohort = read(table)
    assert cohort.records.values[:, 0].tolist() == [1.0, 2.0, 3.0, 4.0, 5.0]
    assert [(r.code, r.count, r.patients) for r in cohort.repairs] == [("unsorted_times", 2, ("W01",))]


def test_a_long_table_in_blocks_is_not_unsorted(read):
    long = {"patient": [1] * 4, "time": [0.0, 1.0, 0.0, 1.0], "variable": ["y", "y", "x", "x"], "value": [1.0, 2, 3, 4]}
    assert read(long).repairs == ()


def test_duplicates(read):
    table = {"patient": ["W01"] * 4, "time": [0.0, 0.0, 1.5, 1.5], "y": [1.0, 2.0, 3.0, 4.0]}
    finding = expect_refusal(
        lambda: read(table),
        "Patient W01 has two values of 'y' at day 0; 2 such cases in 1 patient.",
        "duplicates='mean'",
        code="duplicate_times",
    )
    assert finding.count == 2


def test_a_missing_time(read):
    expect_refusal(
        lambda: read(VISITS | {"time": [0.0, None, 0.0]}),
        "Patient W01: 1 row of the observations table with no time in column 'time'.",
        "Fill it in, or remove the row.",
    )


def test_a_time_that_is_not_a_number(read):
    expect_refusal(
        lambda: read(VISITS | {"time": [0.0, float("nan"), 0.0]}), "Patient W01: 1 row", "no time in column 'time'"
    )


def test_an_infinite_time(read):
    expect_refusal(
        lambda: read(VISITS | {"time": [0.0, 1.0, np.inf]}),
        "Patient W02: 1 row of the observations table with a time that is not finite",
    )


def test_a_time_that_cannot_be_read(read):
    finding = expect_refusal(
        lambda: read(VISITS | {"time": ["2024-03-31", "yesterday", "2024-04-01"]}),
        "Patient W01: 'yesterday' in column 'time' of the observations table is not a time.",
        "2024-03-31T14:05:00",
    )
    assert finding.count == 1


def test_one_word_among_numbers_of_time(read):
    finding = expect_refusal(lambda: read(VISITS | {"time": ["0", "1", "later"]}), "Patient W02: 'later'")
    assert finding.count == 1


def test_a_date_whose_month_nobody_knows(read):
    expect_refusal(
        lambda: read(VISITS | {"time": ["01/02/2024"] * 3}), "'01/02/2024'", "is not a time", "dates like 2024-03-31"
    )


@pytest.mark.parametrize("time", ["2024-99-99", "2024-02-30 10:00", "2024-03-01T99:00:00"])
def test_dates_that_no_calendar_has(read, time):
    expect_refusal(lambda: read(VISITS | {"time": [time] * 3}), f"{time!r}", "is not a time", "dates like 2024-03-31")


def test_times_of_another_type(read):
    expect_refusal(
        lambda: read(VISITS | {"time": [True, False, True]}), "Column 'time'", "Times are numbers or datetimes."
    )


def test_text_with_and_without_an_offset(read):
    times = ["2024-01-01T00:00:00Z", "2024-01-02T00:00:00", "2024-01-01T00:00:00Z"]
    expect_refusal(
        lambda: read(VISITS | {"time": times}),
        "Column 'time' of the observations table has times with and without a time zone.",
        "Give all of them a zone, or none.",
        code="mixed_time_zones",
    )


def test_observations_with_a_zone_and_treatments_without(read):
    aware = pl.Series([datetime(2024, 1, 1)] * 3).dt.replace_time_zone("Europe/Berlin")
    visits = {"patient": ["W01", "W02", "W03"], "time": aware, "y": [1.0, 2.0, 3.0]}
    expect_refusal(
        lambda: read(visits, doses(time=[datetime(2024, 1, 1)] * 2)),
        "Times in the observations table are datetimes with a time zone, in the treatments table datetimes without",
        "Give all of them a zone, or none.",
    )


def test_observations_in_numbers_and_treatments_in_dates(read):
    expect_refusal(
        lambda: read(VISITS, doses(time=[datetime(2024, 1, 1)] * 2)),
        "Times in the observations table are numbers, in the treatments table datetimes",
        "Use one kind in all tables.",
    )


def test_several_offsets_are_compared_as_instants(read):
    times = ["2024-01-01T00:00:00+01:00", "2024-01-01T12:00:00+0200", "2024-01-01 00:00+01:00"]
    with pytest.warns(cp.TimeZoneWarning, match=r"'time' .*times in 2 zones \(\+01:00, \+02:00\)"):
        cohort = read(VISITS | {"time": times}, time_unit="hour")
    assert cohort.records.times.tolist() == [0.0, 11.0, 0.0]


def test_one_offset_in_two_spellings_is_one_zone(read):
    times = ["2024-01-01T00:00:00Z", "2024-01-01T12:00:00+00:00", "2024-01-01T00:00:00+0000"]
    assert read(VISITS | {"time": times}, time_unit="hour").records.times.tolist() == [0.0, 12.0, 0.0]


def test_pandas_objects_of_several_zones():
    times = [pd.Timestamp("2024-01-01", tz="Europe/Berlin"), *[pd.Timestamp("2024-01-02", tz="UTC")] * 2]
    frame = pd.DataFrame(VISITS | {"time": pd.Series(times, dtype=object)})
    with pytest.warns(cp.TimeZoneWarning, match="2 zones"):
        cohort = cp.Cohort.from_tables(frame, outcome="y", time_unit="hour")
    assert cohort.records.times.tolist() == [0.0, 25.0, 0.0]


def test_pandas_objects_with_and_without_a_zone():
    times = [pd.Timestamp("2024-01-01", tz="UTC"), *[pd.Timestamp("2024-01-02")] * 2]
    frame = pd.DataFrame(VISITS | {"time": pd.Series(times, dtype=object)})
    expect_refusal(
        lambda: cp.Cohort.from_tables(frame, outcome="y", time_unit="day"), "'time'", "Give all of them a zone"
    )


def test_dates_cannot_be_taken_as_given(read):
    visits = VISITS | {"time": ["2024-01-01", "2024-01-02", "2024-01-01"]}
    expect_refusal(lambda: read(visits, time_zero="as given"), "time_zero='as given' is for times as numbers")


def test_a_gap_of_a_million_days(read):
    patients = [f"W{i:02}" for i in range(5) for _ in range(3)]
    times = [0.0, 1.0, 2.0] * 4 + [0.0, 1.0, 1_000_001.0]
    report = read({"patient": patients, "time": times, "y": [float(i) for i in range(15)]}).check()
    (gap,) = [f for f in report.findings if f.code == "long_gap"]
    assert gap.severity == "warning"
    assert str(gap).startswith("1 gap of up to 1,000,000 days between records (patient W04)")
    assert "wrong date" in gap.remedy


# --- patients


def test_ids_mixed_in_one_column():
    frame = pd.DataFrame(VISITS | {"patient": pd.Series(["W01", 7, 8], dtype=object)})
    expect_refusal(
        lambda: cp.Cohort.from_tables(frame, outcome="y", time_unit="day"),
        "Column 'patient' of the observations table mixes text ('W01') and numbers (7).",
        "astype(str)",
    )


def test_ids_mixed_between_tables(read):
    expect_refusal(
        lambda: read(VISITS, doses(patient=[1, 2])),
        "Patient ids are text in the observations table (such as 'W01') and integers in the treatments table "
        "(such as 1).",
        "Make them one kind",
        code="mixed_ids",
    )


def test_ids_that_are_neither_integers_nor_text(read):
    expect_refusal(
        lambda: read(VISITS | {"patient": [1.5, 1.5, 2.0]}), "Patients in column 'patient'", "Use integers or text"
    )
    expect_refusal(lambda: read(VISITS | {"patient": [1.0, np.inf, 2.0]}), "Patients in column 'patient'")


def test_a_row_without_a_patient(read):
    expect_refusal(
        lambda: read(VISITS | {"patient": ["W01", None, "W02"]}),
        "1 row of the observations table without a patient (the first is row 2).",
        "Fill in column 'patient', or remove the rows.",
        code="no_patient",
    )


def test_a_patient_without_records(read):
    table = VISITS | {"y": [1.0, 2.0, None]}
    with pytest.warns(cp.CohortWarning, match="1 patient without any measurement left out: patient W02"):
        cohort = read(table)
    assert cohort.patients.to_list() == ["W01"]
    assert [(r.code, r.count) for r in cohort.repairs] == [("row_without_value", 1), ("patient_without_records", 1)]


def test_a_patient_who_is_only_in_the_static_table(read):
    with pytest.warns(cp.CohortWarning, match="left out: patient W03"):
        cohort = read(VISITS, static={"patient": ["W01", "W02", "W03"], "age": [1, 2, 3]})
    assert cohort.static["age"].to_list() == [1, 2]


def test_a_patient_who_is_not_in_the_static_table(read):
    with pytest.warns(cp.CohortWarning, match=r"1 patient not in the static table \(patient W02\)"):
        cohort = read(VISITS, static={"patient": ["W01"], "age": [1]})
    assert cohort.static["age"].to_list() == [1, None]


def test_a_patient_without_time_zero(read):
    static = {"patient": ["W01"], "admission": [0.0]}
    expect_refusal(
        lambda: read(VISITS, static=static, time_zero="admission"),
        "Patient W02: no row in the static table, which gives 'admission'. Add the rows.",
    )


def test_static_given_twice(read):
    expect_refusal(
        lambda: read(VISITS, static={"patient": ["W01", "W02", "W02"], "age": [1, 2, 3]}),
        "Patient W02: more than one row in the static table.",
        "Keep one row per patient",
        code="static_twice",
    )


def test_static_that_changes():
    frame = pl.DataFrame(VISITS | {"weight": [60, 61, 80]})
    finding = expect_refusal(
        lambda: cp.Cohort.from_frame(
            frame, patient="patient", time="time", outcome="y", static="weight", time_unit="day"
        ),
        "'weight' changes within patient W01.",
        "covariates=['weight', …]",
        code="static_changes",
    )
    assert finding.patients == ("W01",)


def test_a_record_after_follow_up(read):
    static = {"patient": ["W01", "W02"], "end": [0.5, 9.0]}
    finding = expect_refusal(
        lambda: read(VISITS, static=static, follow_up_end="end"),
        "1 record after the end of follow-up (patient W01).",
        "after_follow_up='drop'",
        code="record_after_follow_up",
    )
    assert finding.count == 1


def test_follow_up_on_another_clock(read):
    static = {"patient": ["W01", "W02"], "end": ["2024-01-01"] * 2}
    expect_refusal(
        lambda: read(VISITS, static=static, follow_up_end="end"), "'end' does not count time as the observations do"
    )


def test_follow_up_without_a_static_table(read):
    expect_refusal(lambda: read(VISITS, follow_up_end="end"), "follow_up_end='end' is a column of the static table")


# --- treatments


def test_an_unknown_patient_in_the_treatments(read):
    finding = expect_refusal(
        lambda: read(VISITS, doses(patient=["W01", "W09"])),
        "1 row of the treatments table for patient W09, of whom nothing was observed.",
        "Correct the ids, or remove the rows.",
        code="unknown_patient",
    )
    assert finding.patients == ("W09",)


def test_a_negative_dose(read):
    expect_refusal(
        lambda: read(VISITS, doses(dose=[-1.0, 2.0])),
        "Patient W01: 1 row of the treatments table with a negative dose or rate. Amounts are zero or more.",
        code="negative_dose",
    )


def test_a_treatment_without_dose(read):
    expect_refusal(
        lambda: read(VISITS, doses(dose=[1.0, None])),
        "Patient W02: 1 row of the treatments table with no value in column 'dose' or 'rate'.",
        "leave all amounts of a treatment out",
        code="missing_dose",
    )


def test_a_treatment_without_name(read):
    expect_refusal(
        lambda: read(VISITS, doses(treatment=["drug", None])),
        "Patient W02: 1 row of the treatments table with no name in column 'treatment'. Fill it in.",
    )


def test_stop_before_start(read):
    expect_refusal(
        lambda: read(VISITS, intervals(start=[2.0, 3.0], stop=[1.0, 1.0])),
        "Patients W01, W02: 2 rows of the treatments table with a stop before the start. Swap or mend.",
        code="stop_before_start",
    )


def test_stop_at_start(read):
    expect_refusal(
        lambda: read(VISITS, intervals(stop=[1.0, 0.0])),
        "Patient W02: 1 row of the treatments table with a stop that equals the start.",
        "Leave 'stop' empty for a single dose.",
    )


def test_overlapping_intervals_of_one_treatment(read):
    nested = {"patient": ["W01"] * 3, "treatment": ["drug"] * 3, "start": [0.0, 1.0, 3.0], "stop": [10.0, 2.0, 4.0]}
    finding = expect_refusal(
        lambda: read(VISITS, nested),
        "Patient W01: 2 intervals of 'drug' while another still runs (the first starts at day 1).",
        "End the earlier interval where the later begins",
        code="overlapping_intervals",
    )
    assert finding.patients == ("W01",)


def test_intervals_that_touch_or_are_of_two_treatments_do_not_overlap(read):
    touching = {"patient": ["W01"] * 2, "treatment": ["drug"] * 2, "start": [0.0, 1.0], "stop": [1.0, 2.0]}
    assert read(VISITS, touching).events.rows == 2
    two = {"patient": ["W01"] * 2, "treatment": ["drug", "other"], "start": [0.0, 0.0], "stop": [1.0, 2.0]}
    assert read(VISITS, two).events.rows == 2


def test_an_interval_with_a_dose_in_place_of_a_rate(read):
    expect_refusal(
        lambda: read(VISITS, intervals(dose=[500.0, None])),
        "Patient W01: 1 row of the treatments table with a stop and a 'dose' but no 'rate'.",
        "add column 'rate'",
        code="interval_with_dose",
    )


# --- folders


def test_an_unknown_key_in_the_schema(tmp_path):
    folder = folder_with(tmp_path, SCHEMA + 'outcme = "y"\n')
    expect_refusal(lambda: cp.read_cohort(folder), "schema.toml, key 'outcme'", "Did you mean 'outcomes'?")


def test_a_wrong_value_in_the_schema(tmp_path):
    folder = folder_with(tmp_path, SCHEMA.replace("day", "fortnight"))
    expect_refusal(lambda: cp.read_cohort(folder), "schema.toml, key 'time_unit'", "'week'")


def test_a_schema_that_is_not_toml(tmp_path):
    folder = folder_with(tmp_path, "time_unit = day\n")
    expect_refusal(lambda: cp.read_cohort(folder), "schema.toml is not TOML", "line 1")


def test_a_folder_without_schema(tmp_path):
    folder = folder_with(tmp_path, None)
    expect_refusal(lambda: cp.read_cohort(folder), "There is no schema.toml in", "counterpath check --draft")


def test_no_folder(tmp_path):
    expect_refusal(lambda: cp.read_cohort(tmp_path / "nowhere"), "There is no folder", "nowhere")


def test_a_folder_without_observations(tmp_path):
    (tmp_path / "schema.toml").write_text(SCHEMA)
    expect_refusal(lambda: cp.read_cohort(tmp_path), "has no observations.csv and no observations.parquet")


def test_a_table_as_csv_and_as_parquet(tmp_path):
    folder = folder_with(tmp_path)
    pl.read_csv(folder / "observations.csv").write_parquet(folder / "observations.parquet")
    expect_refusal(lambda: cp.read_cohort(folder), "has observations.parquet and observations.csv. Keep one.")


def test_an_empty_csv_file(tmp_path):
    folder = folder_with(tmp_path, observations="")
    expect_refusal(lambda: cp.read_cohort(folder), "observations.csv is empty. Give it a header and rows")


def test_a_csv_file_of_another_encoding(tmp_path):
    folder = folder_with(tmp_path)
    (folder / "observations.csv").write_bytes("patient,time,y\nJosé,0,1\n".encode("latin1"))
    expect_refusal(lambda: cp.read_cohort(folder), "observations.csv is not UTF-8. Save it as UTF-8.")


def test_a_parquet_file_that_is_none(tmp_path):
    folder = folder_with(tmp_path)
    (folder / "static.parquet").write_text("not parquet")
    expect_refusal(lambda: cp.read_cohort(folder), "static.parquet cannot be read")


def test_an_unknown_level_on_load(tmp_path):
    covariate = 'covariates = [{ name = "rhythm", kind = "categorical", levels = ["sinus"] }]\n'
    table = "patient,time,y,rhythm\nW01,0,1,sinus\nW01,1,2,flutter\n"
    expect_refusal(
        lambda: cp.read_cohort(folder_with(tmp_path, SCHEMA + covariate, observations=table)),
        f"{tmp_path}: Patient W01: 'flutter' is not a level of 'rhythm' (sinus).",
        "add the level",
        code="unknown_level",
    )


def test_an_undeclared_treatment_on_load(tmp_path):
    folder = folder_with(
        tmp_path,
        SCHEMA + 'treatments = [{ name = "chemotherapy" }]\n',
        treatments="patient,treatment,time\nW01,chemoterapy,0\n",
    )
    expect_refusal(lambda: cp.read_cohort(folder), "'chemoterapy' is not declared. Did you mean 'chemotherapy'?")


def test_declared_static_variables_without_a_table(tmp_path):
    folder = folder_with(tmp_path, SCHEMA + 'static = [{ name = "age" }]\n')
    expect_refusal(lambda: cp.read_cohort(folder), "Static variables (age) are declared, and there is no static table.")


def test_offsets_in_a_csv_file_are_not_lost(tmp_path):
    table = "patient,time,y\n1,2024-01-01T00:00:00+01:00,1\n1,2024-01-02T00:00:00+02:00,2\n"
    with pytest.warns(cp.TimeZoneWarning, match="2 zones"):
        cohort = cp.read_cohort(folder_with(tmp_path, SCHEMA, observations=table))
    assert cohort.records.times[1] == pytest.approx(23 / 24)


def test_several_errors_are_numbered():
    frame = pl.DataFrame({"patient": [1], "time": [0.0]})
    with pytest.raises(cp.CohortError) as caught:
        cp.Cohort.from_frame(frame, patient="patient", time="time", outcome=["y", "z"], time_unit="day")
    assert re.match(r"1\. .*'y'.*\n2\. .*'z'", str(caught.value))


def test_a_dose_and_a_rate_in_one_row(read):
    """As infusions are exported: nobody can tell which of the two is meant."""
    for stop in (2.0, None):
        table = {
            "patient": ["W01"],
            "treatment": ["drug"],
            "start": [1.0],
            "stop": [stop],
            "dose": [50.0],
            "rate": [50.0],
        }
        expect_refusal(
            lambda table=table: read(VISITS, table | {"stop": pl.Series(table["stop"], dtype=pl.Float64)}),
            "Patient W01: 1 row of the treatments table with a 'dose' and a 'rate'.",
            code="dose_and_rate",
        )


def test_an_amount_missing_in_a_table_of_rates(read):
    table = {
        "patient": ["W01", "W01"],
        "treatment": ["drug"] * 2,
        "start": [1.0, 3.0],
        "stop": [2.0, None],
        "rate": [5.0, None],
    }
    expect_refusal(
        lambda: read(VISITS, table), "Patient W01", "no value in column 'dose' or 'rate'", code="missing_dose"
    )


def test_a_treatment_without_amounts_beside_one_with_them_is_given_or_not(read):
    table = {
        "patient": ["W01"] * 2,
        "treatment": ["drug", "mask"],
        "start": [1.0, 1.0],
        "stop": [None, 3.0],
        "dose": [5.0, None],
    }
    cohort = read(VISITS, table)
    assert cohort.events.amount.tolist() == [5.0, 1.0]
