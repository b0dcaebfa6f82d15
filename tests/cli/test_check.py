import json
import shutil
import tomllib

import polars as pl
import pytest
from typer.testing import CliRunner

from counterpath.cli import app
from counterpath.cohort import read_cohort
from counterpath.cohort.example import WARD


@pytest.fixture
def ward(tmp_path):
    return shutil.copytree(WARD, tmp_path / "ward")


def run(*arguments):
    return CliRunner().invoke(app, ["check", *map(str, arguments)])


def test_a_good_folder_is_ready(ward):
    result = run(ward)
    assert result.exit_code == 0
    assert "30 patients" in result.stdout
    assert "norepinephrine" in result.stdout
    assert "Ready to fit." in result.stdout


def test_quiet_says_the_verdict_only(ward):
    assert run(ward, "--quiet").stdout == "Ready to fit.\n"


def test_json_holds_every_finding(ward):
    table = pl.read_csv(ward / "observations.csv")
    table.with_columns(pl.lit(7).alias("heart_rate")).write_csv(ward / "observations.csv")
    result = run(ward, "--json")
    content = json.loads(result.stdout)
    assert result.exit_code == 0
    assert content["patients"] == 30
    assert any(f["code"] == "constant" and f["columns"] == ["heart_rate"] for f in content["findings"])


def test_what_was_repaired_is_a_finding_and_no_python_warning(ward):
    table = pl.read_csv(ward / "observations.csv")
    pl.concat([table.tail(1), table.head(-1)]).write_csv(ward / "observations.csv")
    result = run(ward)
    assert result.exit_code == 0
    assert "Times run backwards" in result.stdout
    assert "1 warning" in result.stdout
    assert "CohortWarning" not in result.output


def test_a_contradiction_stops_with_the_folder_the_patient_and_the_remedy(ward):
    table = pl.read_csv(ward / "observations.csv")
    pl.concat([table.head(1), table]).write_csv(ward / "observations.csv")
    result = run(ward)
    assert result.exit_code == 1
    assert str(ward) in result.stderr
    assert "W01" in result.stderr
    assert "duplicates='mean'" in result.stderr
    assert json.loads(run(ward, "--json").stdout)["findings"][0]["code"] == "duplicate_times"


def test_a_folder_without_a_schema_says_how_to_get_one(ward):
    (ward / "schema.toml").unlink()
    result = run(ward)
    assert result.exit_code == 1
    assert f"counterpath check --draft {ward}" in result.stderr


def test_a_draft_can_be_checked_at_once(ward):
    (ward / "schema.toml").unlink()
    result = run(ward, "--draft", "--outcome", "pressure")
    assert result.exit_code == 0
    text = (ward / "schema.toml").read_text()
    assert tomllib.loads(text)["outcomes"][0]["name"] == "pressure"
    assert run(ward).exit_code == 0
    assert len(read_cohort(ward)) == 30


def test_a_draft_without_an_outcome_says_that_it_guessed(ward):
    (ward / "schema.toml").unlink()
    run(ward, "--draft")
    text = (ward / "schema.toml").read_text()
    assert "'heart_rate' is only a guess" in text
    assert tomllib.loads(text)["outcomes"][0]["name"] == "heart_rate"


def test_a_draft_never_replaces_a_schema(ward):
    before = (ward / "schema.toml").read_text()
    result = run(ward, "--draft")
    assert result.exit_code == 1
    assert "is there already" in result.stderr
    assert (ward / "schema.toml").read_text() == before


def test_an_outcome_without_draft_is_a_usage_error(ward):
    assert run(ward, "--outcome", "pressure").exit_code == 2


def test_no_folder():
    result = run("nowhere")
    assert result.exit_code == 1
    assert "There is no folder 'nowhere'." in result.stderr


def test_version_and_help():
    import counterpath

    assert CliRunner().invoke(app, ["--version"]).stdout == f"counterpath {counterpath.__version__}\n"
    assert "--draft" in run("--help").stdout
