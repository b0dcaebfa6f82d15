import json

import pytest
from shell import in_one_line, run
from small_meds import SPEC, person, row, stay, write_meds
from small_mimic_extract import tables
from small_mimic_extract import write as write_hourly

import counterpath as cp


@pytest.fixture
def source(tmp_path):
    (tmp_path / "spec.json").write_text(json.dumps(SPEC))
    return write_meds(tmp_path / "meds", person(1) + stay(1), person(2) + stay(2) + [row(2, 11.0, "LAB//art", 80.0)])


def test_imported_records_can_be_checked_and_are_the_librarys(source, tmp_path):
    result = run("import", source, tmp_path / "icu", "--spec", tmp_path / "spec.json")
    assert result.exit_code == 0
    assert "Warning: 1 record of pressure lies outside of any stay and was left out." in in_one_line(result.stderr)
    assert f"counterpath check {tmp_path / 'icu'}" in result.stdout
    with pytest.warns(cp.CohortWarning):
        expected = cp.read_meds(source, SPEC, progress=False)
    assert cp.read_cohort(tmp_path / "icu").equals(expected)
    assert run("check", tmp_path / "icu", "--json").exit_code in (0, 1)


def test_what_cannot_be_read_says_so_and_writes_nothing(source, tmp_path):
    result = run("import", source, tmp_path / "icu", "--spec", "icu-hemodynamics")
    assert result.exit_code == 1
    assert "Did you mean 'icu-haemodynamics'?" in in_one_line(result.stderr)
    assert not (tmp_path / "icu").exists()


def test_what_exists_is_not_replaced(source, tmp_path):
    (tmp_path / "icu").mkdir()
    result = run("import", source, tmp_path / "icu", "--spec", tmp_path / "spec.json")
    assert result.exit_code == 1
    assert "is there already" in result.stderr


@pytest.fixture
def hourly(tmp_path):
    return write_hourly(tmp_path / "all_hourly_data.h5", tables())


def test_a_file_of_mimic_extract_is_known_by_its_name(hourly, tmp_path):
    asked = ["--covariate", "heart rate", "--treatment", "vent", "--hours", "3"]
    result = run("import", hourly, tmp_path / "icu", *asked)
    assert result.exit_code == 0, result.stderr
    expected = cp.read_mimic_extract(hourly, covariates=["heart rate"], treatments=["vent"], hours=3)
    assert cp.read_cohort(tmp_path / "icu").equals(expected)


def test_options_of_the_other_format_are_refused(source, hourly, tmp_path):
    for arguments, said in (
        ([hourly, "--spec", "icu-haemodynamics"], "which has no such option"),
        ([source, "--spec", tmp_path / "spec.json", "--hours", "3"], "which has no such option"),
        ([source], "MEDS needs one"),
    ):
        result = run("import", arguments[0], tmp_path / "icu", *arguments[1:])
        assert result.exit_code == 2
        assert said in in_one_line(result.stderr)
        assert not (tmp_path / "icu").exists()
