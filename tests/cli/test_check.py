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


# --- what to write into schema.toml

SCHEMA = 'time_unit = "day"\noutcomes = [{ name = "y" }]\n'


@pytest.fixture
def folder(tmp_path):
    def write(observations, schema=SCHEMA, **tables):
        (tmp_path / "schema.toml").write_text(schema, encoding="utf-8")
        for name, text in (tables | {"observations": observations}).items():
            (tmp_path / f"{name}.csv").write_text(text, encoding="utf-8")
        return tmp_path

    return write


def in_one_line(text):
    return " ".join(text.split())


ROWS = "patient,time,y,x\n1,0,1,1\n1,1,2,2\n1,2,3,3\n2,0,1,4\n2,1,2,5\n"
END = 'follow_up_end = "end"\n' + SCHEMA


@pytest.mark.parametrize(
    ("tables", "said"),
    [
        ({"observations": ROWS + "2,1,3,5\n"}, '[repairs] duplicates = "mean"'),
        (
            {"observations": ROWS, "static": "patient,end\n1,1.5\n", "schema": END},
            '[repairs] after_follow_up = "drop"',
        ),
        (
            {
                "observations": ROWS,
                "static": "patient,end\n1,2\n",
                "treatments": "patient,treatment,time\n1,pill,5\n",
                "schema": END,
            },
            '[repairs] after_follow_up = "drop"',
        ),
        ({"observations": ROWS + "2,1.001,3,5\n"}, "[repairs] merge_within = 0.01"),
        ({"observations": ROWS + "2,2,3,high\n"}, "kind = \"categorical\" for 'x'"),
    ],
)
def test_a_remedy_is_also_said_as_a_key_of_the_schema(folder, tables, said):
    path = folder(**tables)
    human = in_one_line(run(path).output)
    assert f"In schema.toml: {said}" in human
    assert "schema.toml" not in run(path, "--json").stdout


def test_the_key_that_is_said_mends_the_folder(folder):
    path = folder(ROWS + "2,1,3,5\n", SCHEMA + '[repairs]\nduplicates = "mean"\n')
    result = run(path)
    assert result.exit_code == 0
    assert "In schema.toml" not in result.output


def test_an_outcome_with_text_is_not_told_to_be_categorical(folder):
    result = run(folder(ROWS + "2,2,high,5\n"))
    assert result.exit_code == 1
    assert "1 value of 'y' is text" in result.output
    assert "categorical" not in result.output


def test_an_outcome_without_values_is_not_ready(folder):
    schema = SCHEMA.replace('{ name = "y" }', '{ name = "y" }, { name = "z" }')
    result = run(folder(ROWS.replace(",x", ",z").replace(",1,1", ",1,"), schema))
    assert result.exit_code == 0
    empty = "patient,time,y,z\n1,0,1,\n1,1,2,\n"
    result = run(folder(empty, schema))
    assert result.exit_code == 1
    assert "Outcome 'z' was never recorded." in result.stdout


def test_time_zones_are_findings(folder):
    zones = "patient,time,y\n1,2024-01-01T08:00+01:00,1\n1,2024-07-01T08:00+02:00,2\n1,2024-08-01T08:00+02:00,3\n"
    result = run(folder(zones))
    assert result.exit_code == 0
    assert "has times in 2 zones (+01:00, +02:00)" in in_one_line(result.stdout)
    content = json.loads(run(folder(zones), "--json").stdout)
    assert [f["severity"] for f in content["findings"] if f["code"] == "time_zones"] == ["warning"]
    one = folder(zones.replace("+02:00", "+01:00"))
    assert "time_zones" not in run(one, "--json").stdout


def test_a_draft_from_a_table_with_a_bad_cell_is_not_ready(tmp_path):
    rows = "".join(f"1,{i},{i},{i + 1}\n" for i in range(19))
    (tmp_path / "observations.csv").write_text(f"patient,time,y,crp\n{rows}1,19,19,<0.5\n")
    assert run(tmp_path, "--draft").exit_code == 0
    result = run(tmp_path)
    assert result.exit_code == 1
    assert "'<0.5'" in result.stderr
