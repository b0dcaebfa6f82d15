"""Results are kept cell by cell, and pages follow from them alone."""

import json
from dataclasses import replace
from pathlib import Path

import pytest

from counterpath.experiments.catalogue import EXPERIMENTS
from counterpath.experiments.cells import Cell, ReproductionError, finite, read_cells
from counterpath.experiments.measures import Found
from counterpath.experiments.pages import write_pages
from counterpath.experiments.scales import SCALES

LAPTOP = SCALES["laptop"]
RECORD = {"command": "counterpath reproduce", "commit": "0123456789abcdef", "processor": "a processor", "device": None}
RECORD |= {"interval_ends": "exact"}
COMMITTED = Path(__file__).parents[2] / "docs" / "results"


def cells(model="BNCDE", **figures):
    """Of faithfulness, at one horizon."""
    curves = {"coverage": [0.95, 0.96, 0.97, 0.98, 0.99]}
    for seed, shift in enumerate((0.0, 0.01)):
        own = {name: value + shift for name, value in figures.items()}
        yield Cell("faithfulness", "arms", model, 1.0, seed, "laptop", own, curves, RECORD)


@pytest.fixture
def folder(tmp_path):
    for cell in (*cells(**{"95% holds": 0.95, "99% holds": 0.985}), *cells("TECDE", **{"95% holds": 0.6})):
        cell.write(tmp_path / "work" / "cells")
    return tmp_path


def test_a_page_has_means_spreads_verdicts_and_what_is_missing(folder):
    index, page = write_pages(folder, LAPTOP)
    text = page.read_text()
    assert "| BNCDE | 95.5 ± 0.7% | – | – |" in text
    assert "| TECDE | 60.5 ± 0.7% | – | – |" in text
    verdict = "**within chance where measured** | 0.955 ± 0.007 at 1 |"
    assert f"| 95% intervals hold 94 to 96% | ours, of BNCDE | arms | {verdict}" in text
    assert "- TECDE in arms: 1 seed at Δ = 1, Δ = 2, Δ = 3\n" in text
    assert "- LastValue in arms: Δ = 1, Δ = 2, Δ = 3\n" in text
    assert "- Oracle in arms: Δ = 1, Δ = 2, Δ = 3\n" in text
    assert "- of anybody: 95% holds, seen, 95% holds, other arm, 95% holds, branching\n" in text
    assert "`BNCDE` and `TECDE` have their defaults here." in text
    assert "![Do intervals hold what they say?](faithfulness.svg)" in text
    assert "Not run yet: sharpness, point-error" in index.read_text()
    assert {path.suffix for path in folder.glob("faithfulness.*")} == {".json", ".md", ".png", ".svg"}


def test_a_reason_is_given_where_an_aim_is_missed_and_nowhere_else(folder, monkeypatch):
    experiment = EXPERIMENTS["faithfulness"]
    aims = tuple(replace(aim, why=f"Because of {aim.figure}.") for aim in experiment.aims)
    monkeypatch.setitem(EXPERIMENTS, "faithfulness", replace(experiment, aims=aims))
    for cell in cells(**{"95% holds": 0.945, "99% holds": 0.8}):
        own = {"95% holds": 0.95, "99% holds": cell.figures["99% holds"]}
        replace(cell, figures=own).write(folder / "work" / "cells")
    _, page = write_pages(folder, LAPTOP)
    text = page.read_text()
    assert "Why not “99% intervals hold 98 to 100%” (BNCDE): Because of 99% holds." in text
    assert "Because of 95% holds." not in text


@pytest.mark.parametrize("name", ["demo", "smoke"])
def test_where_few_are_judged_figures_have_no_verdict(tmp_path, name):
    """All seeds share the same few test patients, so that a claim could hold beyond the chance of seeds alone."""
    scale = SCALES[name]
    for seed in scale.seeds:
        figures = {"95% holds": 0.95 + 0.001 * seed}
        Cell("real-icu", "icu", "BNCDE", 1.0, seed, name, figures, {}, RECORD).write(tmp_path / "work" / "cells")
    index, page = write_pages(tmp_path, scale)
    assert scale.caution in page.read_text()
    assert scale.caution in index.read_text()
    assert "| 95% intervals hold at least 95% | ours, of BNCDE | icu | **not judged** | 0.95" in page.read_text()
    assert "| **holds" not in page.read_text()
    assert "| TE-CDE is narrower |" in page.read_text()
    assert "**not measured** |  |" in page.read_text()


def test_pages_are_the_same_from_the_gathered_file_alone(folder, tmp_path):
    write_pages(folder, LAPTOP)
    other = tmp_path / "elsewhere"
    other.mkdir()
    (other / "faithfulness.json").write_bytes((folder / "faithfulness.json").read_bytes())
    write_pages(other, LAPTOP)
    for name in ("faithfulness.json", "faithfulness.md", "faithfulness.svg", "faithfulness.png", "index.md"):
        assert (other / name).read_bytes() == (folder / name).read_bytes(), name


def test_a_page_says_which_figures_are_of_which_state_of_the_program(folder):
    later = RECORD | {"commit": "fedcba98765432100", "test_seed": 81_000}
    for cell in cells("LastValue", **{"95% holds": 0.7}):
        replace(cell, record=later).write(folder / "work" / "cells")
    _, page = write_pages(folder, LAPTOP)
    text = page.read_text()
    assert text.endswith(
        "## How it was made\n\n"
        "- BNCDE in arms, TECDE in arms: a processor, commit `0123456789`: `counterpath reproduce`\n"
        "- LastValue in arms: a processor, commit `fedcba9876`, test patients of seed 81,000: `counterpath reproduce`\n"
    )


def test_a_page_says_what_was_measured_otherwise_once(folder):
    for cell in cells("LastValue", **{"95% holds": 0.7}):
        older = {name: value for name, value in RECORD.items() if name != "interval_ends"}
        replace(cell, record=older | {"commit": "fedcba9876543210"}).write(folder / "work" / "cells")
    _, page = write_pages(folder, LAPTOP)
    text = page.read_text()
    assert "Ends of intervals (commits `fedcba9876`) are quantiles of the draws" in text
    assert "Widths" not in text  # which this page does not have
    assert "noise is above" not in text


def informative(model, record):
    figures = {"95% holds": 0.95, "99% holds": 0.98}
    return Cell("informative-sampling", "informative", model, 1.0, 0, "laptop", figures, {}, record)


def test_a_page_says_whose_weights_did_nothing_and_when(tmp_path):
    """By the state that fitted, not by that which asked."""
    now = RECORD | {"commit": "fedcba98765432100"}
    fitted = {**now, "visits": "any time"}
    informative("BNCDE, weighted", RECORD).write(tmp_path / "work" / "cells")
    informative("TESAR-CDE.paper", now | {"fitted": None}).write(tmp_path / "work" / "cells")
    informative("BNCDE.paper, weighted", now | {"fitted": fitted}).write(tmp_path / "work" / "cells")
    _, page = write_pages(tmp_path, LAPTOP)
    assert "Weights of `TESAR-CDE.paper` (commits `fedcba9876`) did nothing" in page.read_text()
    informative("BNCDE.paper, weighted", now | {"fitted": RECORD}).write(tmp_path / "work" / "cells")
    informative("TESAR-CDE.paper", now | {"fitted": fitted}).write(tmp_path / "work" / "cells")
    _, page = write_pages(tmp_path, LAPTOP)
    assert "Weights of `BNCDE.paper, weighted` (commits `0123456789`) did nothing" in page.read_text()
    informative("BNCDE.paper, weighted", now | {"fitted": fitted}).write(tmp_path / "work" / "cells")
    _, page = write_pages(tmp_path, LAPTOP)
    assert "did nothing" not in page.read_text()


def test_a_page_says_where_fits_are_older_than_their_figures(tmp_path):
    asked = RECORD | {"commit": "fedcba98765432100"}
    elsewhere = RECORD | {"device": "another device"}
    for model, fitted in (("BNCDE", RECORD), ("TECDE", elsewhere), ("BNCDE.paper", asked), ("DeepEnsemble", None)):
        for cell in cells(model, **{"95% holds": 0.9}):
            replace(cell, record=asked | {"fitted": fitted}).write(tmp_path / "work" / "cells")
    _, page = write_pages(tmp_path, LAPTOP)
    made = page.read_text().split("## How it was made")[1]
    about = "a processor, commit `fedcba9876`"
    assert f"- BNCDE in arms: {about}, fitted at commit `0123456789`: " in made
    assert f"- TECDE in arms: {about}, fitted at commit `0123456789` on another device: " in made
    assert f"- BNCDE.paper in arms: {about}: " in made
    assert f"- DeepEnsemble in arms: {about}, asked of fits that an earlier state made: " in made


def test_a_line_with_fewer_seeds_says_so(folder):
    next(cells("LastValue", **{"95% holds": 0.7})).write(folder / "work" / "cells")
    _, page = write_pages(folder, LAPTOP)
    text = page.read_text()
    assert "| LastValue (1 seed) | 70.0% | – | – |" in text
    assert "| BNCDE | 95.5 ± 0.7% | – | – |" in text


def test_what_grows_with_the_horizon_is_judged_with_the_shorter_ones(tmp_path):
    for name, horizon, other in (("point-error", 1.0, 0.2), ("windows", 5.0, 0.4)):
        for model, value in (("BNCDE.paper", 0.1), ("TECDE.paper", other)):
            figures = {"mean squared error at noise 0.01": value}
            Cell(name, "arms", model, horizon, 0, "laptop", figures, {}, RECORD).write(tmp_path / "work" / "cells")
    _, shorter, longer = write_pages(tmp_path, LAPTOP)
    assert "**holds where measured** | 2 times at 1; 4 times at 5 |" in longer.read_text()
    assert "that grows" not in shorter.read_text()


def test_an_experiment_with_fewer_seeds_lacks_none_of_the_others(tmp_path):
    paper = SCALES["paper"]
    for seed in range(3):
        Cell("runtime", "arms", "BNCDE.paper", 1.0, seed, "paper", {"seconds per epoch": 0.5}, {}, RECORD).write(
            tmp_path / "work" / "cells"
        )
    _, page = write_pages(tmp_path, paper)
    assert "3 training seeds" in page.read_text()
    assert "in arms:" not in page.read_text().split("## How it was made")[0]


def test_a_newer_cell_replaces_the_older(folder):
    write_pages(folder, LAPTOP)
    newer = next(cells(**{"95% holds": 0.5}))
    newer.write(folder / "work" / "cells")
    assert read_cells(folder, "laptop")[newer.place].figures == {"95% holds": 0.5}


def test_half_a_cell_is_no_cell(folder):
    (folder / "work" / "cells" / "faithfulness.arms.BNCDE.2.0.partial").write_text('{"experiment": "faith')
    assert len(read_cells(folder, "laptop")) == 4


def test_results_of_two_scales_are_not_mixed(folder):
    with pytest.raises(ReproductionError, match="holds results of scale 'laptop', and these would be of 'paper'"):
        read_cells(folder, "paper")


def test_what_is_no_number_is_left_out():
    kept = finite(Found({"a": 1.0, "b": float("nan")}, {"c": [1.0, float("inf")], "d": [2.0]}))
    assert kept == Found({"a": 1.0}, {"d": [2.0]})


@pytest.mark.parametrize("scale", ["paper", "laptop", "demo"])
def test_committed_pages_and_figures_are_what_the_committed_results_say(scale, tmp_path):
    results = list((COMMITTED / scale).glob("*.json"))
    if not results:
        pytest.skip("no results at this scale are committed")
    for path in results:
        (tmp_path / path.name).write_bytes(path.read_bytes())
        assert json.loads(path.read_text())["experiment"] in EXPERIMENTS
    for written in write_pages(tmp_path, SCALES[scale]):
        assert written.read_text() == (COMMITTED / scale / written.name).read_text()
    drawn = {path.name for kind in ("png", "svg") for path in tmp_path.glob(f"*.{kind}")}
    assert drawn == {path.name for kind in ("png", "svg") for path in (COMMITTED / scale).glob(f"*.{kind}")}
    for name in drawn:
        assert (tmp_path / name).read_bytes() == (COMMITTED / scale / name).read_bytes(), name
