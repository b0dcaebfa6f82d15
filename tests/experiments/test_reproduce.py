"""Experiments run, go on where they were, and end in pages."""

import json

import pytest
from shell import in_one_line, run

from counterpath.experiments import reproduce
from counterpath.experiments.catalogue import EXPERIMENTS
from counterpath.experiments.runner import Reproduction
from counterpath.experiments.scales import SCALES

ON_RECORDS = tuple(name for name, experiment in EXPERIMENTS.items() if experiment.on_records)
APART = ("informative-sampling", "diffusion", "runtime")  # they share no fit with the others
TOGETHER = tuple(name for name in EXPERIMENTS if name not in (*APART, *ON_RECORDS))


def test_where_the_paper_has_fewer_seeds_no_others_are_made(tmp_path):
    def seeds(name, asked):
        own = Reproduction(
            (EXPERIMENTS[name],), SCALES["paper"], asked, (), (), (), None, tmp_path, False, "", print, False
        )
        return {place[-1] for place in own.wanted()}

    assert seeds("runtime", (0, 1, 2, 3, 4)) == {0, 1, 2}
    assert seeds("runtime", (3, 4)) == set()
    assert seeds("diffusion", (3, 4)) == {0, 3, 4}  # the oracle has one answer, of seed 0


@pytest.mark.slow
@pytest.mark.parametrize("names", [TOGETHER, APART], ids=["together", "apart"])
def test_every_table_and_figure_is_made(names, tmp_path):
    """All experiments of the smoke scale, in two parts that can run side by side."""
    result = run("reproduce", *names, "--scale", "smoke", "--to", tmp_path, "--json")
    assert result.exit_code == 0, result.stderr
    assert len(json.loads(result.stdout)["pages"]) == 1 + len(names)
    for name in names:
        experiment, text = EXPERIMENTS[name], (tmp_path / f"{name}.md").read_text()
        assert "the figures mean nothing" in text
        assert "Not measured" not in text
        for figure in experiment.shown:
            assert f"### {figure}" in text
        for model in set(experiment.models) - ({"LastValue"} if name == "deferral" else set()):  # it is never unsure
            assert f"| {model} |" in text
        assert "not measured" not in text
        alone = len(experiment.worlds) == 1
        pictures = [name if alone else f"{name}.{world.name}" for world in experiment.worlds if experiment.curves]
        pictures += [f"{name}.by-horizon"] if experiment.courses else []
        assert pictures
        assert text.count(".svg)") == len(pictures)
        for picture in pictures:
            assert f"]({picture}.svg)" in text
            assert (tmp_path / f"{picture}.png").stat().st_size > 10_000
            assert (tmp_path / f"{picture}.svg").read_text().count("<path") > 10
        cells = json.loads((tmp_path / f"{name}.json").read_text())["cells"]
        for cell in cells:
            assert {curve.name for curve in experiment.curves} - set(cell["curves"]) <= {
                "error of the rest, by the model's scale",  # of models that have none
                "error of the rest, by the model's scale, relative",
                "error of the rest, by volume",
            }
    assert json.loads((tmp_path / f"{names[0]}.json").read_text())["records"][0]["command"].endswith("--scale smoke")


@pytest.mark.slow
def test_a_figure_keeps_by_which_state_its_fit_was_made(tmp_path, monkeypatch):
    asked = {"scale": "smoke", "models": ("LastValue", "TECDE"), "folder": tmp_path, "progress": False, "say": str}

    def fitted_at():
        content = json.loads((tmp_path / "sharpness.json").read_text())
        of = {cell["model"]: content["records"][cell["record"]] for cell in content["cells"]}
        return of["TECDE"]["commit"], of["TECDE"]["fitted"]["commit"], "fitted" in of["LastValue"]

    monkeypatch.setenv("COUNTERPATH_COMMIT", "0123456789")
    reproduce(["sharpness"], **asked)
    assert fitted_at() == ("0123456789", "0123456789", False)
    monkeypatch.setenv("COUNTERPATH_COMMIT", "fedcba9876")
    reproduce(["sharpness"], **asked, again=True)
    assert fitted_at() == ("fedcba9876", "0123456789", False)
    assert "fitted at commit `0123456789`" in (tmp_path / "sharpness.md").read_text()


@pytest.mark.slow
def test_a_run_goes_on_where_it_was(tmp_path):
    asked = {"scale": "smoke", "models": ("LastValue", "TECDE", "Oracle"), "folder": tmp_path, "progress": False}
    said: list[str] = []
    reproduce(["sharpness"], **asked, say=said.append)
    kept = {path: path.read_bytes() for path in (tmp_path / "work" / "fits").iterdir()}
    assert sorted(path.name for path in kept) == ["arms.TECDE.5.0.json", "arms.TECDE.5.0.safetensors"]
    before = (tmp_path / "sharpness.json").read_bytes()
    said.clear()
    reproduce(["sharpness"], **asked, say=said.append)
    assert said == ["0 of 6 cells to make."]
    (tmp_path / "sharpness.json").unlink()
    (tmp_path / "work" / "cells" / "sharpness.arms.TECDE.3.0.json").unlink()
    said.clear()
    reproduce(["sharpness"], **asked, say=said.append)
    assert said[0] == "1 of 6 cells to make."
    assert {path: path.read_bytes() for path in kept} == kept  # the fit was not made again
    assert (tmp_path / "sharpness.json").read_bytes() == before
    said.clear()
    reproduce(["sharpness"], **asked, again=True, say=said.append)
    assert said[0] == "6 of 6 cells to make."
    assert {path: path.read_bytes() for path in kept} == kept
    assert (tmp_path / "sharpness.json").read_bytes() == before


def test_a_part_is_asked_for_by_world_and_horizon(tmp_path):
    asked = ["--scale", "smoke", "--model", "LastValue", "--world", "randomised", "--horizons", "5", "--json"]
    result = run("reproduce", "continuous-time", *asked, "--to", tmp_path)
    assert result.exit_code == 0, result.stderr
    content = json.loads((tmp_path / "continuous-time.json").read_text())
    assert [(cell["world"], cell["horizon"]) for cell in content["cells"]] == [("randomised", 5.0)]
    assert content["records"][0]["command"].endswith("--horizons 5 --model LastValue --world randomised")


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["sharpnes"], "There is no experiment 'sharpnes'. Did you mean"),
        (["sharpness", "--scale", "huge"], "There is no scale 'huge'. Choose one of paper, laptop, smoke, demo."),
        (["real-icu"], "'real-icu' is about records that you have. Say which: --data all_hourly_data.h5"),
        (["real-icu", "--data", "nowhere.h5"], "There is no nowhere.h5."),
        (["sharpness", "--scale", "demo"], "Scale 'demo' is for records, and 'sharpness' simulates. Use laptop."),
        (["sharpness", "--model", "TE-CDE"], "There is no model 'TE-CDE' here. Did you mean"),
        (["sharpness", "--world", "randomised"], "There is no world 'randomised' here. There is 'arms'."),
        (["sharpness", "--horizons", "5"], "There is no horizon '5.0' here. Did you mean"),
    ],
)
def test_what_does_not_exist_is_named(arguments, message, tmp_path):
    result = run("reproduce", *arguments, "--to", tmp_path)
    assert result.exit_code == 1
    assert message in in_one_line(result.stderr)


def test_the_list_says_what_there_is():
    result = run("reproduce", "list")
    assert result.exit_code == 0
    assert [line.split()[0] for line in result.stdout.splitlines()] == list(EXPERIMENTS)
