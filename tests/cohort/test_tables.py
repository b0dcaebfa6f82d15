from datetime import UTC, date, datetime, timedelta

import numpy as np
import polars as pl
import pytest

import counterpath as cp

WIDE = {
    "patient": ["a", "a", "b", "a"],
    "time": [1.0, 2.5, 4.0, 6.0],
    "y": [1.0, None, 3.0, 4.0],
    "x": [None, 7.0, 8.0, 9.0],
}


def test_a_wide_table_becomes_sorted_ragged_records(read):
    cohort = read(WIDE)
    assert cohort.patients.to_list() == ["a", "b"]
    assert cohort.records.offsets.tolist() == [0, 3, 4]
    assert cohort.records.times.tolist() == [0.0, 1.5, 5.0, 0.0]
    np.testing.assert_array_equal(cohort.records.values[:, 0], [1.0, np.nan, 4.0, 3.0])
    np.testing.assert_array_equal(cohort.records.values[:, 1], [np.nan, 7.0, 9.0, 8.0])
    assert cohort.origins.to_list() == [1.0, 4.0]


def test_the_same_measurements_in_a_long_table_are_the_same_cohort(read):
    wide = pl.DataFrame(WIDE)
    long = wide.unpivot(index=["patient", "time"]).drop_nulls()
    assert read(long).equals(read(wide))


def test_a_long_table_may_name_its_columns_otherwise(read):
    long = pl.DataFrame(WIDE).unpivot(index=["patient", "time"], variable_name="item", value_name="result")
    long = long.drop_nulls().rename({"patient": "who", "time": "when"})
    cohort = read(long, patient="who", time="when", variable="item", value="result")
    assert cohort.observations.columns == ["who", "when", "y", "x"]
    assert cohort.records.equals(read(WIDE).records)


def test_a_long_table_holds_categories_beside_numbers(read):
    long = {
        "patient": [1, 1, 1, 1],
        "time": [0, 0, 1, 1],
        "variable": ["y", "rhythm", "y", "rhythm"],
        "value": ["1.5", "sinus", "2", "flutter"],
    }
    cohort = read(long)
    rhythm = cohort.schema.covariates[0]
    assert (rhythm.kind, rhythm.levels) == ("categorical", ("flutter", "sinus"))
    assert cohort.observations["rhythm"].to_list() == ["sinus", "flutter"]
    assert cohort.observations["y"].to_list() == [1.5, 2.0]


DAYS = [0, 1, 3]
NOON = datetime(2024, 3, 30, 12)


@pytest.mark.parametrize(
    "times",
    [
        [float(d) for d in DAYS],
        DAYS,
        [str(d) for d in DAYS],
        [NOON + timedelta(days=d) for d in DAYS],
        [NOON.date() + timedelta(days=d) for d in DAYS],
        [(NOON + timedelta(days=d)).replace(tzinfo=UTC) for d in DAYS],
        [(NOON + timedelta(days=d)).isoformat() for d in DAYS],
        [str(NOON.date() + timedelta(days=d)) for d in DAYS],
        [(NOON + timedelta(days=d)).isoformat() + "+02:00" for d in DAYS],
    ],
    ids=["floats", "integers", "number text", "datetimes", "dates", "aware", "ISO text", "ISO dates", "ISO offset"],
)
def test_every_kind_of_time_counts_from_the_first_record(read, times):
    cohort = read({"patient": [7, 7, 7], "time": times, "y": [1.0, 2.0, 3.0]})
    assert cohort.records.times.tolist() == [0.0, 1.0, 3.0]


@pytest.mark.parametrize(
    ("text", "moment"),
    [
        ("2024-03-31", datetime(2024, 3, 31)),
        ("2024-03-31 14:05", datetime(2024, 3, 31, 14, 5)),
        ("2024-03-31T14:05:10", datetime(2024, 3, 31, 14, 5, 10)),
        ("2024-03-31 14:05:10.25", datetime(2024, 3, 31, 14, 5, 10, 250_000)),
    ],
)
def test_iso_text_may_be_of_several_precisions_in_one_column(read, text, moment):
    cohort = read({"patient": [1, 2, 3], "time": ["2024-01-01", text, "2024-01-01T01:00:00"], "y": [1.0, 2.0, 3.0]})
    assert cohort.origins.to_list()[1] == moment


@pytest.mark.parametrize(
    ("unit", "length"),
    [
        ("second", 86_400.0),
        ("minute", 1440.0),
        ("hour", 24.0),
        ("day", 1.0),
        ("week", 1 / 7),
        ("month", 12 / 365.2425),
        ("year", 1 / 365.2425),
    ],
)
def test_datetimes_are_converted_to_the_unit(read, unit, length):
    table = {"patient": [1, 1], "time": [date(2024, 2, 28), date(2024, 2, 29)], "y": [1.0, 2.0]}
    cohort = read(table, time_unit=unit)
    assert cohort.records.times[1] == pytest.approx(length, rel=1e-15)


def test_a_datetime_keeps_its_microseconds(read):
    late = datetime(2031, 1, 1, 0, 0, 0, 1)
    cohort = read({"patient": [1, 1], "time": [datetime(2031, 1, 1), late], "y": [1.0, 2.0]}, time_unit="second")
    assert cohort.records.times[1] == 1e-6
    assert cohort.origins.to_list() == [datetime(2031, 1, 1)]


def test_time_zero_is_the_first_record_or_treatment(read):
    cohort = read(
        {"patient": [1, 2], "time": [5.0, 5.0], "y": [1.0, 2.0]},
        {"patient": [1], "time": [3.0], "treatment": ["drug"]},
    )
    assert cohort.origins.to_list() == [3.0, 5.0]
    assert cohort.records.times.tolist() == [2.0, 0.0]
    assert cohort.events.start.tolist() == [0.0]


def test_a_row_without_a_value_is_no_first_record(read):
    cohort = read({"patient": ["a", "a", "a"], "time": [1.0, 3.0, 4.0], "y": [None, 5.0, 6.0]})
    assert cohort.records.times.tolist() == [0.0, 1.0]
    assert cohort.origins.to_list() == [3.0]


def test_time_zero_as_given(read):
    cohort = read({"patient": [1, 1], "time": [-2.0, 5.0], "y": [1.0, 2.0]}, time_zero="as given")
    assert cohort.records.times.tolist() == [-2.0, 5.0]
    assert cohort.origins.to_list() == [0.0]


def test_time_zero_from_a_static_column(read):
    cohort = read(
        {"patient": [1, 2], "time": [date(2024, 1, 3), date(2024, 1, 9)], "y": [1.0, 2.0]},
        static={"patient": [2, 1], "admission": [date(2024, 1, 8), date(2024, 1, 1)], "age": [30, 40]},
        time_zero="admission",
    )
    assert cohort.records.times.tolist() == [2.0, 1.0]
    assert cohort.origins.to_list() == [datetime(2024, 1, 1), datetime(2024, 1, 8)]
    assert [v.name for v in cohort.schema.static] == ["age"]


def test_several_outcomes_with_bounds_and_units(read):
    cohort = read(
        WIDE, outcome=["x", "y"], bounds={"x": (0.0, None), "y": (None, 50.0)}, units={"x": "mmHg"}, covariates=[]
    )
    x, y = cohort.schema.outcomes
    assert (x.name, x.lower, x.upper, x.unit, x.label) == ("x", 0.0, None, "mmHg", "x (mmHg)")
    assert (y.name, y.lower, y.upper) == ("y", None, 50.0)
    assert cohort.schema.covariates == ()


def test_only_the_named_covariates_are_read(read):
    table = WIDE | {"note": ["fine", "", "bad", "fine"], "z": [1, 2, 3, 4]}
    assert [v.name for v in read(table, covariates="z").schema.covariates] == ["z"]


def test_numbers_are_codes_where_the_user_says_so(read):
    cohort = read(
        WIDE | {"ward": [3, 1, 3, None]},
        static={"patient": ["a", "b"], "arm": [True, False]},
        categorical=["ward", "arm"],
    )
    ward = cohort.schema.covariates[1]
    assert (ward.kind, ward.levels, ward.dtype) == ("categorical", ("1", "3"), "integer")
    assert cohort.observations["ward"].to_list() == [3, 1, None, 3]
    assert cohort.observations["ward"].dtype == pl.Int64
    assert cohort.static["arm"].to_list() == [True, False]
    assert cohort.schema.static[0].levels == ("false", "true")


def test_integers_and_booleans_come_back_as_they_were(read):
    cohort = read(WIDE | {"n": [1, 2, None, 4], "flag": [True, None, False, True]})
    assert cohort.observations["n"].to_list() == [1, 2, 4, None]
    assert cohort.observations["flag"].to_list() == [True, None, True, False]
    assert cohort.observations.schema["n"] == pl.Int64
    assert cohort.observations.schema["flag"] == pl.Boolean


def test_single_doses_and_intervals_in_one_table(read):
    cohort = read(
        WIDE,
        {
            "patient": ["b", "a", "a", "a"],
            "treatment": ["pill", "drip", "pill", "drip"],
            "start": [4.0, 2.0, 2.0, 3.0],
            "stop": [None, 3.0, None, None],
            "dose": [5.0, None, 2.0, None],
            "rate": [None, 0.5, None, 0.7],
        },
        units={"pill": "mg"},
    )
    assert [t.label for t in cohort.schema.treatments] == ["drip", "pill (mg)"]
    drip, pill = cohort.schema.treatments
    assert drip.dose is None
    assert (drip.rate.lowest, drip.rate.usual, drip.rate.highest) == (0.5, 0.5, 0.7)
    assert (pill.dose.lowest, pill.dose.usual, pill.dose.highest) == (2.0, 2.0, 5.0)
    assert pill.rate is None
    assert cohort.events.start.tolist() == [1.0, 1.0, 2.0, 0.0]
    np.testing.assert_array_equal(cohort.events.stop, [2.0, np.nan, np.inf, np.nan])
    assert cohort.events.amount.tolist() == [0.5, 2.0, 0.7, 5.0]
    table = cohort.treatments
    assert table.columns == ["patient", "treatment", "start", "stop", "dose", "rate"]
    assert table["dose"].to_list() == [None, 2.0, None, 5.0]
    assert table["stop"].to_list() == [2.0, None, None, None]


def test_the_usual_dose_is_one_that_somebody_got(read):
    doses = {"patient": ["a"] * 4, "time": [2.0] * 4, "treatment": ["pill"] * 4, "dose": [1.0, 2.0, 10.0, 20.0]}
    assert read(WIDE, doses).schema.treatments[0].dose.usual == 2.0


def test_a_treatment_without_amounts_is_binary(read):
    cohort = read(WIDE, {"patient": ["a", "b"], "time": [1.0, 5.0], "treatment": ["pill", "pill"]})
    assert cohort.events.amount.tolist() == [1.0, 1.0]
    assert cohort.events.is_dose.all()


def test_amount_zero_is_nothing_given_and_said(read):
    doses = {"patient": ["a", "b"], "time": [1.0, 5.0], "treatment": ["pill"] * 2, "dose": [0.0, 3.0]}
    with pytest.warns(cp.CohortWarning, match=r"1 treatment of amount zero left out \(patient a\)"):
        cohort = read(WIDE, doses)
    assert cohort.events.amount.tolist() == [3.0]
    assert [r.code for r in cohort.repairs] == ["zero_dose"]


def test_a_cohort_without_treatment_says_that_effects_cannot_be_asked(read):
    cohort = read(WIDE)
    assert cohort.schema.treatments == ()
    assert "effects of plans cannot be asked" in repr(cohort)
    assert cohort.treatments.height == 0
    with pytest.raises(cp.PlanError, match="no treatment that changes over time"):
        cp.Plan.dose("pill").resolve(cohort)


def test_an_empty_table_of_treatments_is_none(read):
    empty = pl.DataFrame(schema={"patient": pl.String, "time": pl.Float64, "treatment": pl.String})
    assert read(WIDE, empty).equals(read(WIDE))


def test_end_of_follow_up_per_patient(read):
    cohort = read(
        WIDE,
        {"patient": ["b"], "treatment": ["pill"], "time": [9.0]},
        static={"patient": ["b", "a"], "end": [None, 10.0]},
        follow_up_end="end",
    )
    np.testing.assert_array_equal(cohort.follow_up_end, [9.0, np.nan])
    assert cohort.history_end.tolist() == [9.0, 5.0]
    assert cohort.schema.static == ()


def test_an_end_of_follow_up_that_nobody_has_is_unknown(read):
    static = {"patient": ["a", "b"], "end": [None, None]}
    assert np.isnan(read(WIDE, static=static, follow_up_end="end").follow_up_end).all()


def test_randomised_is_kept(read):
    assert read(WIDE, randomised=True).schema.randomised
    assert "randomised" in repr(read(WIDE, randomised=True))
    assert not read(WIDE).schema.randomised


def test_a_column_of_gaps_is_normal(read):
    cohort = read(WIDE | {"empty": [None] * 4})
    assert np.isnan(cohort.records.values[:, 2]).all()
    assert cohort.observations["empty"].null_count() == 4


def test_rows_of_one_time_that_complement_each_other_are_one_record(read):
    cohort = read({"patient": [1, 1], "time": [0.0, 0.0], "y": [1.0, None], "x": [None, 2.0]})
    assert cohort.records.values.tolist() == [[1.0, 2.0]]
    assert cohort.repairs == ()


def test_rows_without_any_value_make_no_record(read):
    cohort = read({"patient": [1, 1, 1], "time": [0.0, 1.0, 2.0], "y": [1.0, None, 3.0]})
    assert cohort.records.times.tolist() == [0.0, 2.0]
