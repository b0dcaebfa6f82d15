"""From tables to a report, as a user would, with real files; and at every step something that goes wrong."""

import json
import re
import shutil
import signal
import subprocess
import sys
import time
from contextlib import redirect_stdout
from io import StringIO
from pathlib import Path

import polars as pl
import pytest
from typer.testing import CliRunner

import counterpath as cp
from counterpath.cli import app
from counterpath.cli.voice import Voice
from counterpath.cohort.example import WARD

pytestmark = pytest.mark.slow  # a model is compiled and trained

SMALL = """
model = "TECDE"
max_horizon = 5.0

[settings]
outcome_noise = true
hidden = 3
field_widths = [4]
embedding_widths = []
head_widths = []
plan_cells = 5
batch_size = 8
cuts_per_step = 2
draws = 1
epochs = 20
"""


def run(*arguments):
    return CliRunner().invoke(app, [*map(str, arguments)])


def in_one_line(text):
    return " ".join(text.split())


@pytest.fixture(scope="module")
def study(tmp_path_factory):
    """A folder with a study in two parts, a configuration and a model."""
    folder = tmp_path_factory.mktemp("study")
    assert run("simulate", folder / "all", "--patients", 60, "-q").exit_code == 0
    assert run("split", folder / "all", f"{folder / 'train'}=0.7", f"{folder / 'test'}=0.3").exit_code == 0
    (folder / "fit.toml").write_text(SMALL)
    result = run(
        "fit", folder / "train", "--config", folder / "fit.toml", "--to", folder / "model.safetensors", "--json"
    )
    assert result.exit_code == 0
    assert json.loads(result.stdout)["patients"] == 42
    return folder


# --- the way that works


def test_parts_hold_everybody_once(study):
    parts = [cp.read_cohort(study / name) for name in ("train", "test")]
    both = sorted([*parts[0].patients, *parts[1].patients])
    assert both == cp.read_cohort(study / "all").patients.sort().to_list()
    assert not set(parts[0].patients) & set(parts[1].patients)


def test_a_finished_fit_leaves_the_model_and_nothing_else(study):
    assert {path.name for path in study.iterdir()} == {"all", "train", "test", "fit.toml", "model.safetensors"}
    assert cp.load(study / "model.safetensors").max_horizon == 5.0


def test_predictions_are_the_librarys(study, tmp_path):
    table, picture = tmp_path / "p.csv", tmp_path / "p.png"
    result = run(
        "predict", study / "model.safetensors", study / "test", "--plan", "chemotherapy@0,2", "--at", 50,
        "--horizons", "1,5", "--to", table, "--plot", picture,
    )  # fmt: skip
    assert result.exit_code == 0, result.output
    test, model = cp.read_cohort(study / "test"), cp.load(study / "model.safetensors")
    plan = cp.Plan.repeat("chemotherapy", every=2.0, times=2)
    expected = model.predict(test.until(50.0), plan, horizons=[1, 5], keep="draws").to_frame()
    assert pl.read_csv(table)["upper_95"].to_list() == pytest.approx(expected["upper_95"].to_list())
    assert picture.stat().st_size > 10_000
    assert f"18 patients, 2 horizons: {table}, {picture}" in result.stdout


def test_json_holds_the_predictions_of_chosen_patients(study):
    some = cp.read_cohort(study / "test").patients[:2].to_list()
    result = run(
        "predict", study / "model.safetensors", study / "test", "--plan", "none", "--at", 50,
        "--patients", ",".join(map(str, some)), "--json",
    )  # fmt: skip
    content = json.loads(result.stdout)
    assert {row["patient"] for row in content["predictions"]} == set(some)
    assert len({row["elapsed"] for row in content["predictions"]}) == 5


@pytest.mark.parametrize("suffix", ["csv", "parquet", "json"])
def test_a_plan_may_come_from_a_file(study, tmp_path, suffix):
    plan, out = tmp_path / f"plan.{suffix}", tmp_path / f"out.{suffix}"
    written = cp.Plan.dose("radiotherapy")
    if suffix == "json":
        plan.write_text(written.to_json())
    else:
        getattr(written.to_table(), f"write_{suffix}")(plan)
    result = run(
        "predict", study / "model.safetensors", study / "test", "--plan", plan, "--at", 50, "--to", out, "-q"
    )  # fmt: skip
    assert result.exit_code == 0, result.output
    assert len(getattr(pl, f"read_{suffix}")(out)) == 18 * 5


def test_effects_carry_their_label_and_assumptions(study, tmp_path):
    table = tmp_path / "e.parquet"
    result = run(
        "effect", study / "model.safetensors", study / "test", "--plan", "chemotherapy@0", "--at", 50,
        "--better", "lower", "--by", "subgroup", "--to", table, "--plot", tmp_path / "e.svg",
    )  # fmt: skip
    assert result.exit_code == 0, result.output
    assert "Effect of the plan (treatment was randomised)" in in_one_line(result.stdout)
    assert "no unmeasured confounding" in in_one_line(result.stdout)
    assert {"effect", "lower", "upper", "probability_of_benefit"} <= set(pl.read_parquet(table).columns)
    assert "<svg" in (tmp_path / "e.svg").read_text()


def test_an_evaluation_ends_with_its_verdict(study, tmp_path):
    scores = tmp_path / "s.json"
    result = run("evaluate", study / "model.safetensors", study / "test", "--by", "subgroup", "--to", scores)
    assert result.exit_code == 0, result.output
    assert re.search(r"TECDE: 95% intervals held [\d.]+% ± [\d.]+% of outcomes: .*\.$", in_one_line(result.stdout))
    assert "subgroup A" in pl.read_json(scores)["subgroup"]


def test_one_moment_can_be_judged_although_some_had_left(study, tmp_path):
    cohort = cp.read_cohort(study / "test")
    cohort.until({patient: 20.0 if i == 0 else 58.0 for i, patient in enumerate(cohort.patients)}).save(
        tmp_path / "cut"
    )
    asked = ("evaluate", study / "model.safetensors", tmp_path / "cut", "--at", 50, "--horizons", "1,2,3", "--json")
    assert "--drop-ended" in json.loads(run(*asked).stdout)["error"]
    scores = json.loads(run(*asked, "--drop-ended").stdout)["scores"]
    model, cut = cp.load(study / "model.safetensors"), cp.read_cohort(tmp_path / "cut")
    expected = model.evaluate(cut[1:], at=50.0, horizons=[1.0, 2.0, 3.0], progress=False).to_frame()
    assert [row["coverage_95"] for row in scores] == expected["coverage_95"].to_list()
    assert [row["patients"] for row in scores] == expected["patients"].to_list()


def test_json_has_no_number_that_json_does_not_know(study):
    """Of a subgroup of one patient the standard error is not known."""

    def refuse(constant):
        raise AssertionError(constant)

    one = cp.read_cohort(study / "test").patients[0]
    result = run(
        "predict", study / "model.safetensors", study / "test", "--plan", "none", "--patients", one, "--json"
    )  # fmt: skip
    assert json.loads(result.stdout, parse_constant=refuse)["predictions"]
    voice = Voice(as_json=True)
    with redirect_stdout(StringIO()) as said:
        voice.result("x", scores=[{"a": float("nan"), "b": (float("inf"), 1.5)}])
    assert json.loads(said.getvalue(), parse_constant=refuse)["scores"] == [{"a": None, "b": [None, 1.5]}]


def test_the_report_is_one_page(study, tmp_path):
    page = tmp_path / "report.html"
    result = run(
        "report", study / "model.safetensors", study / "test", "--to", page, "--better", "lower", "--at", 50, "-q"
    )
    assert result.exit_code == 0, result.output
    assert result.stdout == f"The report is in {page}.\n"
    assert "chemotherapy now" in page.read_text()


def test_settings_that_are_printed_can_be_read(study, tmp_path):
    printed = run("fit", "--print-config", "--max-horizon", 5, "--model", "BNCDE.large", "--seed", 3)
    assert printed.exit_code == 0
    (tmp_path / "fit.toml").write_text(printed.stdout)
    again = run("fit", "--print-config", "--config", tmp_path / "fit.toml")
    assert again.stdout == printed.stdout
    assert "seed = 3" in printed.stdout


# --- what goes wrong

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


MAIN = "from counterpath.cli import main; main()"
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


def test_a_changed_study_is_not_taken_for_the_one_that_was_interrupted(study, tmp_path):
    (tmp_path / "m.checkpoint").write_bytes(b"not a run")
    result = run("fit", study / "train", "--config", study / "fit.toml", "--to", tmp_path / "m.safetensors", "-q")
    assert result.exit_code == 1
    assert "is not a checkpoint of counterpath" in in_one_line(result.stderr)
    assert (tmp_path / "m.checkpoint").read_bytes() == b"not a run"


def test_ctrl_c_stops_cleanly_and_the_same_command_goes_on(study, tmp_path):
    model, checkpoint = tmp_path / "m.safetensors", tmp_path / "m.checkpoint"
    (tmp_path / "long.toml").write_text(SMALL.replace("epochs = 20", "epochs = 2000"))
    command = [sys.executable, "-c", MAIN, "fit", study / "train", "--config", tmp_path / "long.toml", "--to", model]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as process:
        until = time.monotonic() + 120
        while not checkpoint.exists() and time.monotonic() < until:
            time.sleep(0.05)
        process.send_signal(signal.SIGINT)
        _, said = process.communicate(timeout=60)
    assert process.returncode == 130, said
    assert "the same command goes on from there" in in_one_line(said)
    assert "Traceback" not in said
    assert not model.exists()
    before = checkpoint.stat().st_size
    assert before > 0
    again = subprocess.run(command, capture_output=True, text=True, check=False)
    assert again.returncode == 0, again.stderr
    assert f"Going on from {checkpoint}." in in_one_line(again.stdout)
    assert len(cp.load(model).history_) == 2_000  # each epoch once
    assert not checkpoint.exists()


def test_help_loads_nothing_heavy():
    script = (
        "import sys; from counterpath.cli import app; print({'jax', 'polars', 'numpy', 'pydantic'} & {*sys.modules})"
    )
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True)
    assert done.stdout == "set()\n"


# --- a user's own tables


def test_a_messy_clinic_gets_from_its_tables_to_a_report(tmp_path):
    clinic = shutil.copytree(Path(__file__).parent / "messy_clinic", tmp_path / "clinic")
    assert run("check", "--draft", clinic, "--outcome", "creatinine").exit_code == 0
    refused = run("check", clinic)
    assert refused.exit_code == 1
    assert 'In schema.toml: [repairs] duplicates = "mean"' in in_one_line(refused.stderr)
    with (clinic / "schema.toml").open("a") as schema:
        schema.write('\n[repairs]\nduplicates = "mean"\n')
    checked = run("check", clinic)
    assert checked.exit_code == 0
    assert "'Good', 'good'" in in_one_line(checked.stdout)
    assert "Times run backwards" in in_one_line(checked.stdout)
    assert run("split", clinic, f"{tmp_path / 'train'}=0.7", f"{tmp_path / 'test'}=0.3").exit_code == 0
    (tmp_path / "fit.toml").write_text(SMALL.replace("5.0", "3.0"))
    model = tmp_path / "model.safetensors"
    fitted = run("fit", tmp_path / "train", "--config", tmp_path / "fit.toml", "--to", model, "-q")
    assert fitted.exit_code == 0, fitted.output
    asked = (model, tmp_path / "test", "--plan", "cisplatin=80@0 + saline=100@0-0.5")
    predicted = run("predict", *asked, "--to", tmp_path / "p.csv")
    assert predicted.exit_code == 0, predicted.output
    assert pl.read_csv(tmp_path / "p.csv")["case_id"].n_unique() == 9
    effect = run("effect", *asked, "--versus", "continued", "--better", "lower", "--by", "ward")
    assert effect.exit_code == 0, effect.output
    assert "Prediction under this plan, not adjusted" in in_one_line(effect.stdout)
    assert run("evaluate", model, tmp_path / "test", "--by", "sex").exit_code == 0
    page = tmp_path / "r.html"
    assert run("report", model, tmp_path / "test", "--to", page, "--better", "lower").exit_code == 0
    assert "not adjusted for treatment that reacts" in in_one_line(page.read_text())
