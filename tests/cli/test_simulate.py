from typer.testing import CliRunner

import counterpath as cp
from counterpath.cli import app


def run(*arguments):
    return CliRunner().invoke(app, [*map(str, arguments)])


def test_a_simulated_study_can_be_checked_and_is_the_librarys(tmp_path):
    result = run("simulate", tmp_path / "tumours", "--patients", 60, "--seed", 3, "--assignment", "arms")
    assert result.exit_code == 0
    assert "60 patients" in result.stdout
    assert f"counterpath check {tmp_path / 'tumours'}" in result.stdout
    assert cp.read_cohort(tmp_path / "tumours").equals(cp.load_tumor_growth(60, seed=3, assignment="arms"))
    assert run("check", tmp_path / "tumours", "-q").exit_code == 0


def test_quiet_says_only_where(tmp_path):
    said = run("simulate", tmp_path / "t", "--patients", 5, "--continuous", "-q").stdout
    assert said.count("\n") == 1
    assert str(tmp_path / "t") in said


def test_what_exists_is_not_replaced(tmp_path):
    (tmp_path / "t").mkdir()
    result = run("simulate", tmp_path / "t", "--patients", 5)
    assert result.exit_code == 1
    assert "is there already" in result.stderr


def test_an_unknown_assignment_lists_what_there_is(tmp_path, checker_off):
    result = run("simulate", tmp_path / "t", "--assignment", "random")
    assert result.exit_code == 1
    assert "randomised" in result.stderr
    assert not (tmp_path / "t").exists()
