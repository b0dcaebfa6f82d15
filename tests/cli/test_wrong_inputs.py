"""At every step of the journey something that goes wrong: a message, an exit code, and nothing half written."""

import json
import shutil
import subprocess
import sys

import pytest
from shell import MAIN, in_one_line, run

from counterpath.cohort.example import WARD

pytestmark = pytest.mark.slow  # a model is compiled and trained

BAD = {
    "simulate: a folder that is there": ("simulate {all}", 1, "is there already"),
    "simulate: a negative seed": ("simulate {tmp}/new --seed=-1", 2, "greater than or equal to 0"),
    "split: a folder that is there": ("split {all} {train}=0.5 {tmp}/x=0.5", 1, "is there already"),
    "split: shares": ("split {all} {tmp}/x=0.5 {tmp}/y=0.6", 1, "sum 1"),
    "split: no share": ("split {all} {tmp}/x", 2, "is not a folder and its share"),
    "split: no name": ("split {all} 0.5 0.5", 2, "is not a folder and its share"),
    "split: one name twice": ("split {all} {tmp}/x=0.5 {tmp}/x=0.5", 2, "Two parts have one name"),
    "fit: no folder": ("fit {tmp}/none --max-horizon 5 --to {tmp}/m.safetensors", 1, "There is no folder"),
    "fit: no horizon": ("fit {train} --to {tmp}/m.safetensors", 2, "How far ahead"),
    "fit: nowhere to write": ("fit {train} --max-horizon 5", 2, "where to write it"),
    "fit: another model": (
        "fit {train} --max-horizon 5 --model BNCED --to {tmp}/m.safetensors",
        1,
        "'BNCED' is no model. Did you mean 'BNCDE'?",
    ),
    "fit: a model that is there": ("fit {train} --max-horizon 5 --to {model}", 1, "is there already"),
    "fit: a name that is no model's": ("fit {train} --max-horizon 5 --to {tmp}/m.pkl", 2, "must end in .safetensors"),
    "fit: settings": (
        "fit {train} --config {tmp}/bad.toml --to {tmp}/m.safetensors",
        1,
        "bad.toml, line 4, settings.posteriers: There is no such key. Did you mean 'posteriors'?",
    ),
    "fit: settings that are not there": (
        "fit {train} --config {tmp}/no.toml --to {tmp}/m.safetensors",
        1,
        "no.toml: No such file or directory.",
    ),
    "fit: settings that cannot train": (
        "fit {train} --config {tmp}/zero.toml --to {tmp}/m.safetensors",
        1,
        "zero.toml, line 4: hidden=0 must be more than zero.",
    ),
    "fit: settings and a model": (
        "fit {train} --config {tmp}/bad.toml --model BNCDE.large --to {tmp}/m.safetensors",
        2,
        "not both",
    ),
    "fit: two horizons": (
        "fit {train} --config {tmp}/bad.toml --max-horizon 3 --to {tmp}/m.safetensors",
        2,
        "not both",
    ),
    "predict: no model": ("predict {tmp}/m.safetensors {test} --plan none", 1, "There is no model at"),
    "predict: half a model": ("predict {tmp}/half.safetensors {test} --plan none", 1, "Is it whole?"),
    "predict: no model at all": ("predict {all}/schema.toml {test} --plan none", 1, "is not a model of counterpath"),
    "predict: an unknown treatment": ("predict {model} {test} --plan aspirin@0 --at 50", 1, "names 'aspirin'"),
    "predict: no plan": ("predict {model} {test} --plan soon --at 50", 1, "'soon' is not a part of a plan"),
    "predict: no such plan": ("predict {model} {test} --plan {tmp}/p.csv", 1, "There is no plan at"),
    "predict: a plan with another column": (
        "predict {model} {test} --plan {tmp}/bad.csv",
        1,
        "The plan has no column 'treatment'.",
    ),
    "predict: a plan that is torn": ("predict {model} {test} --plan {tmp}/bad.parquet", 1, "cannot be read as a plan"),
    "predict: too late": ("predict {model} {test} --plan none --at 500", 1, "add --drop-ended"),
    "predict: no time": ("predict {model} {test} --plan none --at noon", 2, "neither a number nor a date"),
    "predict: too far ahead": (
        "predict {model} {test} --plan none --at 50 --horizons 9",
        1,
        "up to max_horizon=5; [9.0] do not",
    ),
    "predict: no numbers": ("predict {model} {test} --plan none --horizons a,b", 2, "no list of numbers"),
    "predict: nobody": ("predict {model} {test} --plan none --patients Zoe", 1, "ids of this cohort are integers"),
    "predict: another cohort": (
        "predict {model} {ward} --plan none",
        1,
        "The model was fitted to tumor_volume in days",
    ),
    "predict: another format": ("predict {model} {test} --plan none --to {tmp}/p.xlsx", 2, "must end in .csv"),
    "predict: a table that is there": ("predict {model} {test} --plan none --to {tmp}/bad.csv", 1, "--overwrite"),
    "effect: another cohort": ("effect {model} {ward} --plan fluid@0", 1, "The model was fitted to tumor_volume"),
    "effect: an unknown group": (
        "effect {model} {test} --plan chemotherapy@0 --at 50 --by sex",
        1,
        "'sex' is no static covariate",
    ),
    "effect: better": ("effect {model} {test} --plan chemotherapy@0 --better smaller", 2, "'smaller' is not one of"),
    "evaluate: too late": ("evaluate {model} {test} --at 500", 1, "add --drop-ended"),
    "evaluate: another outcome": ("evaluate {model} {test} --outcome weight", 1, "'weight' is no outcome"),
    "evaluate: another cohort": ("evaluate {model} {ward}", 1, "The model was fitted to tumor_volume in days"),
    "evaluate: nobody's tables": ("evaluate {model} {tmp}", 1, "Write one: counterpath check --draft"),
    "evaluate: an unreadable table": ("evaluate {model} {tmp}/torn", 1, "observations.csv"),
    "report: one plan": ("report {model} {test} --plan none --to {tmp}/r.html", 2, "the same plan"),
    "report: versus what": ("report {model} {test} --versus none --to {tmp}/r.html", 2, "--versus goes with --plan"),
    "report: another format": ("report {model} {test} --to {tmp}/r.pdf", 2, "must end in .html"),
    "report: an unknown treatment": ("report {model} {test} --plan aspirin@0 --to {tmp}/r.html", 1, "names 'aspirin'"),
}


@pytest.mark.parametrize("name", BAD)
def test_what_is_wrong_is_said_and_nothing_is_written(study, tmp_path, name):
    command, code, said = BAD[name]
    whole = (study / "model.safetensors").read_bytes()
    (tmp_path / "half.safetensors").write_bytes(whole[: len(whole) // 2])
    (tmp_path / "bad.toml").write_text('model = "BNCDE"\nmax_horizon = 5.0\n[settings]\nposteriers = 2\n')
    (tmp_path / "bad.csv").write_text("drug,start\nchemotherapy,0\n")
    (tmp_path / "zero.toml").write_text('model = "BNCDE"\nmax_horizon = 5.0\n[settings]\nhidden = 0\n')
    (tmp_path / "bad.parquet").write_bytes(b"PAR1 and then nothing")
    shutil.copytree(study / "test", tmp_path / "torn")
    (tmp_path / "torn" / "observations.parquet").unlink()
    (tmp_path / "torn" / "observations.csv").write_bytes(b"\x00\xff\xfe\n\x81" * 50)
    before = {path: path.stat().st_mtime_ns for path in (*tmp_path.rglob("*"), *study.rglob("*"))}
    places = {"tmp": tmp_path, "model": study / "model.safetensors", "ward": WARD}
    places |= {part: study / part for part in ("all", "train", "test")}
    result = run(*(part.format(**places) for part in command.split()))
    assert result.exit_code == code, result.output
    assert said in in_one_line(result.output.replace("│", ""))
    assert "Traceback" not in result.output
    after = {path: path.stat().st_mtime_ns for path in (*tmp_path.rglob("*"), *study.rglob("*"))}
    assert after == before


def test_errors_are_json_where_json_was_asked_for(study):
    result = run("predict", study / "model.safetensors", study / "test", "--plan", "aspirin@0", "--json")
    assert result.exit_code == 1
    assert "aspirin" in json.loads(result.stdout)["error"]


def test_what_is_not_the_users_fault_keeps_its_trace(study, monkeypatch):
    def broken(*_, **__):
        raise ValueError("shapes (3,) and (4,)")

    monkeypatch.setattr("counterpath.estimators.tecde.TECDE.predict", broken)
    result = run("predict", study / "model.safetensors", study / "test", "--plan", "none")
    assert isinstance(result.exception, ValueError)
    assert result.exception.args == ("shapes (3,) and (4,)",)


FULL = 3_000  # bytes that a file may have: less than any of these


@pytest.mark.parametrize(
    "command",
    [
        "simulate {tmp}/new --patients 200",
        "split {all} {tmp}/x=0.5 {tmp}/y=0.5",
        "predict {model} {test} --plan none --at 50 --horizons 1,2,3,4,5 --to {tmp}/p.csv --draws 2",
        "evaluate {model} {test} --plot {tmp}/c.png",
        "report {model} {test} --to {tmp}/r.html",
    ],
)
def test_a_full_disk_is_said_and_leaves_nothing_half_written(study, tmp_path, command):
    places = {"tmp": tmp_path, "model": study / "model.safetensors", "all": study / "all", "test": study / "test"}
    script = f"import resource; resource.setrlimit(resource.RLIMIT_FSIZE, ({FULL}, {FULL})); {MAIN}"
    asked = [sys.executable, "-c", script, *command.format(**places).split()]
    done = subprocess.run(asked, capture_output=True, text=True, check=False)
    assert done.returncode == 1, done.stdout + done.stderr
    assert "File too large" in done.stderr or "could not be written" in done.stderr
    assert "Traceback" not in done.stderr
    assert not [path for path in tmp_path.rglob("*") if path.is_file()]


def test_a_file_where_a_folder_should_be_is_said(study, tmp_path):
    (tmp_path / "file").write_text("")
    result = run(
        "predict", study / "model.safetensors", study / "test", "--plan", "none", "--to", tmp_path / "file" / "p.csv"
    )
    assert result.exit_code == 1
    assert "file: File exists." in result.stderr
