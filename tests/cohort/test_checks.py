import numpy as np
import pandas as pd
import pytest

import counterpath as cp
from counterpath.cohort.units_mixed import looks_like_two_units


def codes(cohort, **options):
    return {finding.code for finding in cohort.check(**options).findings if finding.severity != "note"}


def finding(cohort, code):
    (found,) = [f for f in cohort.check().findings if f.code == code]
    return found


def visits(patients=4, times=(0.0, 1.0, 2.0), **columns):
    rows = patients * len(times)
    rng = np.random.default_rng(0)
    table = {
        "patient": np.repeat(np.arange(patients), len(times)),
        "time": np.tile(times, patients).astype(float),
        "y": rng.normal(10.0, 1.0, rows),
    }
    return table | columns


def given_to(*patients, **columns):
    return {"patient": list(patients), "time": [0.0] * len(patients), "treatment": ["pill"] * len(patients)} | columns


def test_a_tidy_cohort_has_nothing_to_say_but_notes(read):
    cohort = read(visits(), given_to(0, 2))
    report = cohort.check()
    assert report.ok
    assert report.verdict == "Ready to fit."
    assert {f.code for f in report.findings} == {"shared_cells"}
    report.raise_for_errors()


def test_the_report_in_words_and_as_a_frame(read):
    report = read(visits(times=(0.0,)), given_to(0)).check()
    assert report.verdict == "Ready to fit, with 1 warning to read."
    assert str(report).splitlines()[1:3] == [
        "  warning  4 patients with a single record (patients 0, 1, 2 and 1 more): a history without a later outcome.",
        "           → Leave them out, or look for their other records.",
    ]
    frame = report.to_frame()
    assert frame.columns == ["severity", "code", "count", "message", "remedy"]
    assert frame.row(0)[:3] == ("warning", "single_record", 4)


def test_errors_come_first_and_can_be_raised(read):
    report = read(visits(times=(0.0,), y=[None] * 4, x=[1.0, 2.0, 3.0, 4.0])).check()
    assert not report.ok
    assert report.findings[0].code == "no_outcome"
    assert report.verdict.startswith("Not ready: 1 error to mend")
    with pytest.raises(cp.CohortError, match="Outcome 'y' was never recorded"):
        report.raise_for_errors()


def test_the_frame_is_of_the_users_kind():
    frame = pd.DataFrame(visits())
    report = cp.Cohort.from_tables(frame, outcome="y", time_unit="day").check()
    assert isinstance(report.to_frame(), pd.DataFrame)


def test_each_outcome_that_was_never_recorded_is_an_error(read):
    table = visits(z=[None] * 12, w=[None] * 11 + [1.0])
    report = read(table, given_to(0), outcome=["y", "z", "w"]).check()
    (found,) = report.of("error")
    assert (found.code, found.columns) == ("no_outcome", ("z",))
    assert "nearly_empty" not in {f.code for f in report.findings}
    both = read(table | {"y": [None] * 12, "x": np.arange(12.0)}, given_to(0), outcome=["y", "z"]).check()
    assert [f.columns for f in both.of("error")] == [("y",), ("z",)]


def test_patients_without_outcome(read):
    table = visits(x=np.arange(12.0))
    table["y"][3:6] = np.nan
    found = finding(read(table, given_to(0)), "patient_without_outcome")
    assert (found.count, found.patients, found.columns) == (1, (1,), ("y",))
    assert "patient_without_outcome" not in codes(read(visits(), given_to(0)))


def test_a_single_record(read):
    table = visits(y=[1.0, None, None] + [2.0, 3.0, 4.0] * 3)
    assert finding(read(table, given_to(0)), "single_record").patients == (0,)
    assert "single_record" not in codes(read(visits(), given_to(0)))


def test_nearly_coincident_times(read):
    cohort = read(visits(times=(0.0, 1.5, 3.0, 3.012)), given_to(0))
    found = finding(cohort, "near_coincident")
    assert found.count == 4
    assert "within 0.015 days" in found.message
    assert "near_coincident" not in codes(read(visits(times=(0.0, 1.5, 3.0, 3.1)), given_to(0)))


@pytest.mark.parametrize("gap", [1.0, 1.49, 1.51, 123.4])
def test_the_remedy_for_nearly_coincident_times_removes_them(read, gap):
    near = 0.0099 * gap
    table = visits(times=(0.0, gap, 2 * gap, 3 * gap, 3 * gap + near))
    found = finding(read(table, given_to(0)), "near_coincident")
    within = float(found.remedy.split("merge_within=")[1].rstrip("."))
    mended = read(table, given_to(0), merge_within=within)
    assert "near_coincident" not in codes(mended)
    assert mended.records.rows == 16


def test_a_long_gap(read):
    table = visits(patients=5)
    table["time"][-1] = 1000.0
    found = finding(read(table, given_to(0)), "long_gap")
    assert (found.count, found.patients) == (1, (4,))
    table["time"][-1] = 20.0
    assert "long_gap" not in codes(read(table, given_to(0)))


def test_treatments_after_follow_up(read):
    static = {"patient": [0, 1, 2, 3], "end": [4.0, 4.0, 4.0, None]}
    intervals = {
        "patient": [0, 1, 2, 3],
        "treatment": ["pill", "drip", "drip", "pill"],
        "start": [4.0, 1.0, 1.0, 99.0],
        "stop": [None, 4.5, 4.0, None],
    }
    found = finding(read(visits(), intervals, static, follow_up_end="end"), "treatment_after_follow_up")
    assert (found.count, found.patients, found.columns) == (2, (0, 1), ("drip", "pill"))
    inside = intervals | {"start": [3.5, 1.0, 1.0, 99.0], "stop": [None, 4.0, 4.0, None]}
    assert "treatment_after_follow_up" not in codes(read(visits(), inside, static, follow_up_end="end"))


def test_a_history_is_never_reported_for_what_came_later(ward):
    assert "treatment_after_follow_up" not in codes(ward.until(5.0, ended="drop"))


@pytest.mark.parametrize(
    ("values", "said"), [([5.0] * 12, "'x' is always 5."), (["sinus"] * 12, "'x' is always sinus.")]
)
def test_a_constant(read, values, said):
    found = finding(read(visits(x=values), given_to(0)), "constant")
    assert found.message == said
    assert found.columns == ("x",)


def test_a_variable_that_varies_is_no_constant(read):
    assert "constant" not in codes(read(visits(x=[5.0] * 11 + [6.0]), given_to(0)))


def test_a_static_constant(read):
    static = {"patient": [0, 1, 2, 3], "site": ["north"] * 4}
    assert finding(read(visits(), given_to(0), static), "constant").columns == ("site",)


def test_nearly_empty(read):
    rare = np.full(603, np.nan)
    rare[:3] = rare[3:6] = 1.0, 2.0, 3.0  # two patients of 201
    found = finding(read(visits(201, x=rare), given_to(0)), "nearly_empty")
    assert found.message == "'x' was recorded for 1.0% of patients (6 times)."
    rare[6] = 1.0
    assert "nearly_empty" not in codes(read(visits(201, x=rare), given_to(0)))


def test_a_handful_of_values_among_many_records_is_nearly_empty(read):
    few = np.full(60, np.nan)
    few[::15] = 1.0, 2.0, 3.0, 4.0
    found = finding(read(visits(20, x=few), given_to(0)), "nearly_empty")
    assert found.message == "'x' was recorded for 20.0% of patients (4 times)."
    few[1] = 5.0
    assert "nearly_empty" not in codes(read(visits(20, x=few), given_to(0)))


def test_few_values_of_a_small_cohort_are_no_finding(read):
    static = {"patient": [0, 1, 2], "age": [50.0, 60.0, None]}
    assert "nearly_empty" not in codes(read(visits(3, x=[1.0, 2.0] + [None] * 7), given_to(0), static))


def test_a_handful_of_static_values_is_nearly_empty(read):
    static = {"patient": np.arange(60), "age": [50.0, 60.0, 70.0] + [None] * 57}
    assert finding(read(visits(60), given_to(0), static), "nearly_empty").columns == ("age",)


# --- text that is no category


def numbered(count, text="note {}"):
    return [text.format(i) for i in range(count)]


def test_notes_are_no_categories(read):
    found = finding(read(visits(100, times=(0.0, 1.0), x=numbered(200)), given_to(0)), "many_levels")
    assert found.message == "'x' has 200 levels in 200 values: too many to be categories."
    assert (found.count, found.columns) == (200, ("x",))
    assert "Leave it out" in found.remedy


@pytest.mark.parametrize(("levels", "patients"), [(20, 10), (25, 125)])
def test_many_but_not_too_many_categories(read, levels, patients):
    words = np.resize(numbered(levels), 2 * patients)
    assert "many_levels" not in codes(read(visits(patients, times=(0.0, 1.0), x=words), given_to(0)))


def test_static_notes(read):
    static = {"patient": np.arange(30), "story": numbered(30)}
    assert finding(read(visits(30), given_to(0), static), "many_levels").columns == ("story",)


def test_levels_that_are_nearly_equal(read):
    words = ["sinus", "sinus ", "Sinus", "flutter"] * 3
    found = finding(read(visits(x=words), given_to(0)), "near_equal_levels")
    assert found.message == "'x' has levels that differ only in case or white space: 'Sinus', 'sinus', 'sinus '."
    assert found.remedy == "Write them alike."
    assert "near_equal_levels" not in codes(read(visits(x=["sinus", "sinus 2", "flutter"] * 4), given_to(0)))


def test_decimal_commas(read):
    found = finding(read(visits(x=numbered(12, "3,{}")), given_to(0)), "decimal_commas")
    assert "'x' is text with decimal commas (such as '3,0')" in found.message
    assert found.remedy == "Write decimals with a point."
    assert "decimal_commas" not in codes(read(visits(x=["a,b", "3,4", "left, right"] * 4), given_to(0)))


@pytest.mark.parametrize(
    "dates",
    [
        ["1950-02-03", "1961-12-30", "1949-07-08", None],
        ["3.2.1950", "30.12.1961", "8.7.49", "1.1.1950"],
        ["02/03/1950", "12/30/1961", "unknown", "1/1/50"],
        ["2024-01-01 14:05", "2024-01-02T09:00", "2024/1/3", "2024-01-04"],
    ],
)
def test_dates_as_text(read, dates):
    static = {"patient": [0, 1, 2, 3], "born": dates}
    found = finding(read(visits(), given_to(0), static), "dates_as_text")
    assert found.columns == ("born",)
    assert "such as the age" in found.remedy


@pytest.mark.parametrize("words", [["1-2", "3-4", "5-6", "7-8"], ["10.1.5-a", "v1.2.3", "I/II", "2024"]])
def test_text_that_is_no_date(read, words):
    static = {"patient": [0, 1, 2, 3], "stage": words}
    assert "dates_as_text" not in codes(read(visits(), given_to(0), static))


def test_treatments_with_nearly_equal_names(read):
    given = given_to(0, 1, 2) | {"treatment": ["pill", "Pill", "pill "]}
    found = finding(read(visits(), given), "near_equal_treatments")
    assert (found.count, found.columns) == (1, ("Pill", "pill", "pill "))
    assert "near_equal_treatments" not in codes(read(visits(), given | {"treatment": ["pill", "pills", "pill 2"]}))


def test_patients_with_nearly_equal_ids(read):
    table = visits() | {"patient": np.repeat(["a", "A", "a ", "b"], 3)}
    found = finding(read(table), "near_equal_patients")
    assert (found.count, found.patients) == (1, ("a", "A", "a "))
    assert "'a', 'A', 'a '" in found.message
    assert "near_equal_patients" not in codes(read(visits() | {"patient": np.repeat(["a", "b", "1 11", "11 1"], 3)}))
    assert "near_equal_patients" not in codes(read(visits()))


# --- mixed units


def mixed(read, values):
    table = {"patient": np.arange(len(values)), "time": np.zeros(len(values)), "y": values}
    return finding(read(table), "mixed_units")


def unmixed(read, values):
    table = {"patient": np.arange(len(values)), "time": np.zeros(len(values)), "y": values}
    return "mixed_units" not in codes(read(table))


def test_half_the_heights_in_inches(read):
    heights = np.random.default_rng(0).normal(172.0, 9.0, 200)
    found = mixed(read, np.where(np.arange(200) % 2, heights, heights / 2.54))
    assert found.count == 100
    assert "'y' looks like two units: values near 67" in found.message
    assert "and 100 near 17" in found.message


def test_glucose_in_two_units(read):
    glucose = np.exp(np.random.default_rng(0).normal(np.log(110.0), 0.25, 300))  # mg/dL
    found = mixed(read, np.where(np.arange(300) < 30, glucose / 18.016, glucose))
    assert found.count == 30


def test_the_count_is_of_all_values_also_where_only_some_were_looked_at(read):
    weights = np.random.default_rng(0).normal(75.0, 4.0, 30_000)
    assert mixed(read, np.where(np.arange(30_000) < 3_000, weights * 2.2046, weights)).count == 3_000


@pytest.mark.parametrize("spread", [0.1, 0.5, 1.0, 2.0])
def test_a_log_normal_variable_is_of_one_unit(read, spread):
    assert unmixed(read, np.exp(np.random.default_rng(0).normal(3.0, spread, 2_000)))


def test_heights_in_one_unit(read):
    assert unmixed(read, np.random.default_rng(0).normal(172.0, 9.0, 500))


def test_an_atom_far_below_is_a_detection_limit_and_not_a_unit(read):
    values = np.random.default_rng(0).normal(10.0, 1.0, 500)
    values[:100] = 1e-8
    assert unmixed(read, values)


def test_a_few_odd_values_are_no_second_unit(read):
    heights = np.random.default_rng(0).normal(172.0, 9.0, 500)
    heights[:4] /= 2.54
    assert unmixed(read, heights)


def test_values_around_zero_have_no_ratio(read):
    assert unmixed(read, np.random.default_rng(0).normal(0.0, 1.0, 500))


# --- treatments


def test_no_treatment_is_a_note(read):
    found = finding(read(visits()), "no_treatment")
    assert found.severity == "note"
    assert "effects of plans cannot be asked" in found.message
    assert "no_treatment" not in {f.code for f in read(visits(), given_to(0)).check().findings}


def test_never_given(read):
    cohort = read(visits(), given_to(0))
    assert finding(cohort[1:], "never_given").columns == ("pill",)
    assert "never_given" not in codes(cohort)


def test_always_given(read):
    assert finding(read(visits(), given_to(0, 1, 2, 3)), "always_given").columns == ("pill",)
    assert "always_given" not in codes(read(visits(), given_to(0, 0, 1, 2)))


def test_a_dose_that_repeats_another(read):
    given = given_to(0, 0, 0, 1, 1, dose=[5.0, 5.0, 5.0, 5.0, 5.0]) | {"time": [0.0, 0.0, 0.0, 0.0, 0.0]}
    found = finding(read(visits(), given), "repeated_dose")
    assert (found.count, found.patients, found.columns) == (3, (0, 1), ("pill",))
    assert found.message.startswith("3 doses (pill) repeat another of the same time and amount (patients 0, 1).")
    assert "Remove the rows" in found.remedy


@pytest.mark.parametrize(
    "other", [{"dose": [5.0, 6.0]}, {"time": [0.0, 0.5]}, {"treatment": ["pill", "shot"]}, {"patient": [0, 1]}]
)
def test_doses_that_differ_in_anything_do_not_repeat(read, other):
    given = given_to(0, 0, dose=[5.0, 5.0]) | other
    assert "repeated_dose" not in codes(read(visits(), given))


def intervals(amounts, treatment="drip"):
    rows = len(amounts)
    return {
        "patient": np.arange(rows),
        "treatment": [treatment] * rows,
        "start": [0.0] * rows,
        "stop": [1.0] * rows,
        "rate": amounts,
    }


def test_doses_and_rates_in_two_units(read):
    amounts = np.random.default_rng(0).normal(500.0, 20.0, 60)  # ml
    litres = np.where(np.arange(60) < 20, amounts / 1000.0, amounts)
    found = finding(read(visits(60), given_to(*range(60), dose=litres)), "mixed_units")
    assert (found.count, found.columns) == (20, ("pill",))
    assert found.message == "Doses of 'pill' look like two units: near 0.496, and 40 near 505."
    assert "Rates of 'drip' look like" in finding(read(visits(60), intervals(litres)), "mixed_units").message


def test_doses_and_rates_apart_are_no_two_units(read):
    amounts = np.random.default_rng(0).normal(500.0, 20.0, 60)
    assert "mixed_units" not in codes(read(visits(60), given_to(*range(60), dose=amounts)))
    both = {
        "patient": np.tile(np.arange(60), 2),
        "treatment": ["fluid"] * 120,
        "start": [0.0] * 120,
        "stop": [None] * 60 + [1.0] * 60,
        "dose": [*amounts, *[None] * 60],
        "rate": [*[None] * 60, *amounts / 1000.0],
    }
    assert "mixed_units" not in codes(read(visits(60), both))


# --- the solver's cells


def test_shared_cells(read):
    cohort = read(visits(times=(0.0, 1.0, 2.0, 3.0)), given_to(0))
    alone = cohort.check()
    assert alone.shared_cells == 0.0
    assert finding(cohort, "shared_cells").severity == "note"
    crowded = cohort.check(cells=1)
    assert crowded.shared_cells == 1.0
    assert "shared_cells" in codes(cohort, cells=1)
    (found,) = crowded.of("warning")
    assert found.message == "100% of records would share one of 1 solver cells over 3 days."
    assert found.remedy == "Use more cells, or a shorter lookback."


def test_repairs_are_reported_again(read):
    table = visits(y=None) | {"y": np.arange(12.0)}
    table["time"][1] = 0.0
    cohort = read(table, given_to(0), duplicates="mean")
    assert finding(cohort, "duplicate_times").count == 1


def test_every_remedy_is_an_action(read):
    static = {"patient": [0, 1, 2, 3], "site": ["north"] * 4}
    table = visits(times=(0.0,), y=[None, 1.0, 2.0, 3.0], x=[1.0, 2.0, 3.0, 4.0])
    found = [f for f in read(table, given_to(0, 1, 2, 3), static).check().findings if f.severity == "warning"]
    assert {f.code for f in found} == {"patient_without_outcome", "single_record", "constant", "always_given"}
    assert all(f.remedy.startswith(("Leave", "Compare")) for f in found)


def test_an_empty_choice_can_be_checked(read):
    assert not read(visits(), given_to(0))[:0].check().ok


def test_a_code_of_two_values_is_of_one_unit():
    assert looks_like_two_units(np.repeat([1.0, 10.0], 30)) is None
    assert looks_like_two_units(np.concatenate([np.linspace(4, 6, 30), np.linspace(72, 108, 30)])) is not None
