"""From the hourly file of MIMIC-Extract to a cohort: made-up files, the demo, and one that its own pandas wrote."""

import os
import warnings
from pathlib import Path

import numpy as np
import pandas as pd
import polars as pl
import pytest
from small_mimic_extract import tables, write

import counterpath as cp
from counterpath.importers.mimic_extract import COVARIATES, OUTCOME, RANGES

pytest.importorskip("tables", reason="needs the extra mimic")
OWN = {"outcome": OUTCOME, "covariates": ["heart rate"]}
DATA = Path(os.environ.get("COUNTERPATH_DATA", "there is none"))
FILES = {
    "demo": DATA / "all_hourly_data_mimic3demo.h5",
    "layout": DATA / "mimic-extract-layout" / "all_hourly_data_layout_pandas0242_SYNTHETIC.h5",
}
real = pytest.mark.skipif(not DATA.exists(), reason="COUNTERPATH_DATA names no folder with real data")


@pytest.fixture
def content():
    return tables()


def read(tmp_path, content, **options):
    return cp.read_mimic_extract(write(tmp_path / "hourly.h5", content), **(OWN | options))


def test_only_what_was_measured_is_a_record_at_the_end_of_its_hour(tmp_path, content):
    content["vitals_labs_mean"].iloc[1, 0] = np.nan
    cohort = read(tmp_path, content)
    assert cohort.patients.to_list() == ["1/100", "2/200"]
    first = cohort[:1]
    np.testing.assert_array_equal(first.records.times, [1.0, 3.0, 4.0])
    np.testing.assert_array_equal(first.records.values, [[60.0, 80.0], [62.0, np.nan], [63.0, np.nan]])
    np.testing.assert_array_equal(cohort.follow_up_end, [4.0, 3.0])
    assert cohort.static.select("gender", "age").rows() == [("F", 70.5), ("M", 45.0)]
    assert not cohort.repairs


def test_nothing_crosses_patients(tmp_path, content):
    """Whatever one patient's values are, another's records stay as they were."""
    content["vitals_labs_mean"].iloc[4, 0] = np.nan  # the second patient begins without a value
    before = read(tmp_path, content, ranges={})[1:]
    poisoned = {name: table.copy() for name, table in content.items()}
    poisoned["vitals_labs_mean"].iloc[:4] = 1e9
    poisoned["interventions"].iloc[:4] = 1
    (tmp_path / "other").mkdir()
    cohort = read(tmp_path / "other", poisoned, ranges={})
    np.testing.assert_array_equal(cohort[1:].records.values, before.records.values)
    assert cohort[1:].treatments.height == 0
    np.testing.assert_array_equal(cohort[1:].records.times, [2.0, 3.0])


def test_a_treatment_that_nobody_got_is_named(tmp_path, content):
    content["interventions"]["vaso"] = 0
    with pytest.warns(cp.CohortWarning, match="Nobody was given 'vaso'"):
        assert [treatment.name for treatment in read(tmp_path, content).schema.treatments] == ["vent"]


def test_no_hours_leave_nothing(tmp_path, content):
    with pytest.raises(cp.CohortError, match="hours=0 leaves nothing"):
        read(tmp_path, content, hours=0)


def test_hours_in_a_row_are_one_interval(tmp_path, content):
    content["interventions"]["vaso"] = [1, 1, 0, 1, 1, 0, 0]
    given = read(tmp_path, content, treatments=["vaso"]).treatments.sort("patient", "start")
    assert given.select("patient", "treatment", "start", "stop").rows() == [
        ("1/100", "vaso", 0.0, 2.0),
        ("1/100", "vaso", 3.0, 4.0),  # the next hour is another patient's
        ("2/200", "vaso", 0.0, 1.0),
    ]


def test_stays_can_be_cut(tmp_path, content):
    content["interventions"]["vent"] = 1
    cohort = read(tmp_path, content, hours=2, treatments=["vent"])
    np.testing.assert_array_equal(cohort.follow_up_end, [2.0, 2.0])
    assert cohort.records.times.max() == 2.0
    assert cohort.treatments["stop"].to_list() == [2.0, 2.0]


def test_hidden_ages_are_ninety_and_said(tmp_path, content):
    content["patients"].loc[(1, 10, 100), "age"] = 300.0037
    with pytest.warns(cp.CohortWarning, match=r"1 patient older than 89, .* is taken to be 90. \(patient 1/100\)"):
        cohort = read(tmp_path, content)
    assert cohort.static["age"].to_list() == [90.0, 45.0]


def test_absent_columns_are_named(tmp_path, content):
    with pytest.warns(cp.CohortWarning, match="The file has no 'sodium', 'glucose'"):
        cohort = read(tmp_path, content, covariates=["sodium", "heart rate", "glucose"])
    assert [variable.name for variable in cohort.schema.covariates] == ["heart rate"]
    with pytest.warns(cp.CohortWarning, match="The file has no 'dialysis'"):
        read(tmp_path, content, treatments=["vaso", "dialysis"])


def test_a_covariate_that_nobody_has_is_left_out_and_named(tmp_path, content):
    content["vitals_labs_mean"].iloc[0, 1] = np.nan
    with pytest.warns(cp.CohortWarning, match="Nobody has a value of 'heart rate'"):
        cohort = read(tmp_path, content)
    assert not cohort.schema.covariates


def test_whoever_has_no_outcome_is_left_out_and_counted(tmp_path, content):
    content["vitals_labs_mean"].iloc[4:, 0] = np.nan
    with pytest.warns(cp.CohortWarning, match=r"1 patient has no record of the outcome .*\(patient 2/200\)"):
        cohort = read(tmp_path, content)
    assert cohort.patients.to_list() == ["1/100"]


def test_stays_of_a_person_stay_together(tmp_path):
    stays = [(subject, subject, 10 * subject + number, 3) for subject in range(1, 11) for number in (1, 2)]
    one, other = read(tmp_path, tables(stays)).split((0.5, 0.5), seed=0)
    people = [{name.split("/")[0] for name in part.patients} for part in (one, other)]
    assert len(one) + len(other) == 20
    assert not people[0] & people[1]


def _without(name):
    return lambda content: content.pop(name)


def _index(content):
    content["interventions"] = content["interventions"].reset_index("hadm_id", drop=True)


def _ungrouped(content):
    columns = [(number, name, "mean") for number, name in enumerate(["diastolic blood pressure", "heart rate"])]
    content["vitals_labs_mean"].columns = pd.MultiIndex.from_tuples(
        columns, names=["itemid", "LEVEL1", "Aggregation Function"]
    )


def _counts(content):
    content["vitals_labs_mean"] = content["vitals_labs_mean"].rename(columns={"mean": "count"}, level=1)


@pytest.mark.parametrize(
    ("change", "said"),
    [
        (_without("interventions"), "no table 'interventions', but 'patients', 'vitals_labs_mean'"),
        (_without("vitals_labs_mean"), "no table 'vitals_labs_mean', but 'interventions', 'patients'"),
        (_index, "in 'interventions' an index of subject_id, icustay_id, hours_in"),
        (_ungrouped, "columns by itemid, LEVEL1, Aggregation Function, not by LEVEL2 and Aggregation Function"),
        (_counts, "no means, but count"),
    ],
)
def test_another_layout_is_refused_with_what_was_seen(tmp_path, content, change, said):
    change(content)
    with pytest.raises(cp.CohortError, match=r"layout that is not known: .*" + said):
        read(tmp_path, content)


def test_means_are_also_found_among_counts_and_deviations(tmp_path, content):
    means = content.pop("vitals_labs_mean")
    counts = means.notna().astype(float).rename(columns={"mean": "count"}, level=1)
    content["vitals_labs"] = pd.concat([counts, means], axis=1)
    assert read(tmp_path, content).records.times.tolist() == [1.0, 2.0, 3.0, 4.0, 1.0, 2.0, 3.0]


def test_an_outcome_that_is_not_there_is_an_error(tmp_path, content):
    with pytest.raises(cp.CohortError, match="Did you mean 'diastolic blood pressure'"):
        read(tmp_path, content, outcome="diastolic pressure")


def test_a_date_is_no_static_covariate(tmp_path, content):
    content["patients"]["intime"] = pd.Timestamp("2150-01-01")
    with pytest.raises(cp.CohortError, match="'intime' of `patients` is neither a number nor text"):
        read(tmp_path, content, static=["age", "intime"])


def test_values_of_nobody_are_an_error(tmp_path, content):
    content["patients"] = content["patients"].iloc[:1]
    with pytest.raises(cp.CohortError, match="values of patient 2/200, but no row in `patients`"):
        read(tmp_path, content)


def test_what_is_no_such_file_says_so(tmp_path):
    with pytest.raises(FileNotFoundError, match="There is no file"):
        cp.read_mimic_extract(tmp_path / "nothing.h5")
    (tmp_path / "text.h5").write_text("subject_id,hours_in\n")
    with pytest.raises(cp.CohortError, match="not an HDF5 file"):
        cp.read_mimic_extract(tmp_path / "text.h5")


@real
@pytest.mark.data
@pytest.mark.parametrize("name", FILES)
def test_masks_of_real_files_are_what_was_measured(name):
    """Counted anew from the file itself."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        cohort = cp.read_mimic_extract(FILES[name])
        means = pd.read_hdf(FILES[name], "vitals_labs_mean")
    there = [v for v in (OUTCOME, *COVARIATES) if (v, "mean") in means.columns]
    assert [variable.name for variable in cohort.schema.variables] == there
    mask = means[[(v, "mean") for v in there]].notna()
    seen = mask[mask.any(axis=1)]
    np.testing.assert_array_equal(~np.isnan(cohort.records.values), seen.to_numpy())
    np.testing.assert_array_equal(cohort.records.times, seen.index.get_level_values("hours_in") + 1)


@real
@pytest.mark.data
def test_the_demo_has_the_stays_that_its_readme_counts():
    with pytest.warns(cp.CohortWarning) as said:
        cohort = cp.read_mimic_extract(FILES["demo"])
    assert any("8 patients older than 89" in str(warning.message) for warning in said)
    assert len(cohort) == 84
    assert cohort.follow_up_end.sum() == 5_175
    for name in ("vaso", "vent"):
        assert cohort.treatments.filter(pl.col("treatment") == name)["patient"].n_unique() == 23
    assert cohort.static["age"].max() == 90.0


# What is not as it should be: one clear error or counted warning each


def _strange_interventions(content):
    content["interventions"]["vaso"] = ["yes"] * 7


def _strange_means(content):
    means = content["vitals_labs_mean"].astype(object)
    means.iloc[1, 1] = "high"
    content["vitals_labs_mean"] = means


def _a_row_too_many(name):
    def change(content):
        content[name] = pd.concat([content[name], content[name].iloc[-1:]])

    return change


def _a_series(content):
    content["interventions"] = content["interventions"]["vaso"]


@pytest.mark.parametrize(
    ("change", "said"),
    [
        (_strange_interventions, r"Interventions 'vaso' are not all numbers \(.*Mend them, or leave the variable out"),
        (_strange_means, r"Means of 'heart rate' are not all numbers \(.*Mend them, or leave the variable out"),
        (_a_row_too_many("vitals_labs_mean"), r"1 row too many: stay 200 of subject 2 has two for hour 2\. Remove"),
        (_a_row_too_many("interventions"), r"'interventions' 1 row too many: stay 200 of subject 2 has two for hour 2"),
        (_a_row_too_many("patients"), r"'patients' 1 row too many: stay 200 of subject 2 has two\. Remove them"),
        (_a_series, "in 'interventions' a Series, not a table"),
    ],
)
def test_tables_that_are_not_as_they_should_be(tmp_path, content, change, said):
    change(content)
    with pytest.raises(cp.CohortError, match=said) as raised:
        read(tmp_path, content)
    assert "duplicates=" not in str(raised.value)  # which this reader does not have


def test_a_folder_is_no_file(tmp_path):
    with pytest.raises(cp.CohortError, match="not an HDF5 file that pandas can read"):
        cp.read_mimic_extract(tmp_path)


def test_a_file_that_breaks_off_says_so(tmp_path, content):
    path = write(tmp_path / "hourly.h5", content)
    path.write_bytes(path.read_bytes()[:5_000])
    with pytest.raises(cp.CohortError, match=r"hourly\.h5 is damaged, or not an HDF5 file"):
        cp.read_mimic_extract(path)


def test_hours_of_which_nothing_is_said_count_as_not_given_and_are_counted(tmp_path, content):
    content["interventions"]["vaso"] = [1.0, np.nan, 1.0, 0.0, np.nan, 1.0, 0.0]
    with pytest.warns(cp.CohortWarning, match=r"2 hours of vaso have no value and count as not given\."):
        cohort = read(tmp_path, content, treatments=["vaso"])
    given = cohort.treatments.sort("patient", "start").select("patient", "start", "stop").rows()
    assert given == [("1/100", 0.0, 1.0), ("1/100", 2.0, 3.0), ("2/200", 1.0, 2.0)]
    assert [(repair.code, repair.count) for repair in cohort.repairs] == [("mimic-unsaid", 2)]


@pytest.fixture
def odd(content):
    """Pressures of 0 and of 900."""
    content["vitals_labs_mean"].iloc[[1, 5], 0] = [0.0, 900.0]
    return content


def test_what_is_not_plausible_is_kept_and_counted(tmp_path, odd):
    """Masks are those of the file."""
    with pytest.warns(
        cp.CohortWarning, match="2 values of diastolic blood pressure lie outside of the plausible range"
    ):
        cohort = read(tmp_path, odd)
    assert cohort.observations["diastolic blood pressure"].to_list() == [60.0, 0.0, 62.0, 63.0, 64.0, 900.0, 66.0]
    assert [(repair.code, repair.count) for repair in cohort.repairs] == [("mimic-implausible", 2)]


def test_what_is_not_plausible_can_be_left_out(tmp_path, odd):
    with pytest.warns(cp.CohortWarning, match="2 values of diastolic blood pressure lie outside of its range and were"):
        cohort = read(tmp_path, odd, implausible="leave out")
    assert cohort.observations["diastolic blood pressure"].drop_nulls().to_list() == [60.0, 62.0, 63.0, 64.0, 66.0]
    with pytest.warns(cp.CohortWarning, match="3 values of diastolic blood pressure"):
        cohort = read(tmp_path, odd, implausible="leave out", ranges={OUTCOME: (61, 100)})
    assert cohort.observations["diastolic blood pressure"].drop_nulls().to_list() == [62.0, 63.0, 64.0, 66.0]


def test_where_nothing_is_left_the_error_says_why(tmp_path, content):
    with pytest.raises(cp.CohortError, match=r"no value of 'diastolic blood pressure', .* 7 values of diastolic"):
        read(tmp_path, content, implausible="leave out", ranges={OUTCOME: (200, 300)})


@pytest.mark.parametrize("limits", [(200, 10), (10, 10)])
def test_a_range_the_wrong_way_round(tmp_path, content, limits):
    with pytest.raises(cp.CohortError, match=f"has {limits[0]} as its lowest value and {limits[1]} as its highest"):
        read(tmp_path, content, ranges={OUTCOME: limits})


def test_no_pressure_is_predicted_below_zero(tmp_path, content):
    """Unless the file has one there, or its range does."""
    (pressure,) = read(tmp_path, content).schema.outcomes
    assert (pressure.lower, pressure.upper, pressure.unit) == (0.0, None, "mmHg")
    assert read(tmp_path, content, ranges={}).schema.outcomes[0].lower is None
    content["vitals_labs_mean"].iloc[1, 0] = -3.0
    with pytest.warns(cp.CohortWarning, match="1 value of diastolic blood pressure lies outside"):
        assert read(tmp_path, content).schema.outcomes[0].lower is None


def test_the_papers_variables_have_plausible_ranges():
    assert set(RANGES) == {OUTCOME, *COVARIATES}
