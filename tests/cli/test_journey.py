"""From tables to a report, as a user would, with real files."""

import json
import re
import shutil
from contextlib import redirect_stdout
from io import StringIO
from pathlib import Path

import polars as pl
import pytest
from shell import SMALL, in_one_line, run

import counterpath as cp
from counterpath.cli.voice import Voice

pytestmark = pytest.mark.slow  # a model is compiled and trained


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
