"""The table of the engine is the experiment's results and the time of one fit, and nothing else."""

import json

import pytest
from small_models import small_bncde

import counterpath as cp
from bench import engine_table, model_uncertainty
from bench.provenance import RESULTS, last_result
from counterpath.experiments.cells import Cell
from counterpath.experiments.tumor_worlds import RANDOMISED

FIGURES = {
    "CRPS ÷ oracle": 1.02,
    "95% holds": 0.951,
    "99% holds": 0.99,
    "95% width ÷ oracle": 1.04,
    "largest mean ÷ largest outcome": 0.98,
}
ALONE = {
    "fit_seconds": 93.2,
    "epochs": 50,
    "patients": 10_000,
    "device": "a device",
    "command": "c",
    "commit": "0" * 40,
}


def cell(world="arms", model="BNCDE", horizon=1.0, seed=0, **figures):
    return Cell("continuous-time", world, model, horizon, seed, "paper", {**FIGURES, **figures}, {}, {})


def test_a_row_has_means_over_seeds_by_days_ahead():
    cells = [cell(), cell(seed=1, **{"CRPS ÷ oracle": 1.06}), cell(horizon=2.0)]
    (row,) = engine_table.rows_of(cells)
    assert row["fits"] == 2
    assert row["CRPS ÷ oracle"] == {"1": pytest.approx(1.04), "2": pytest.approx(1.02)}


def test_the_page_has_a_section_per_world_and_says_how_long_a_fit_took():
    cells = [cell(), cell(world="continuous", model="TECDE"), cell(model="Oracle")]
    text = engine_table.page_of({"fit": ALONE, "rows": engine_table.rows_of(cells)})
    assert "**93 s**" in text
    assert [line for line in text.splitlines() if line.startswith("## ")] == ["## Arms", "## Continuous"]
    assert "| BNCDE (1) | 1.02 | 95.1% | 99.0% | 1.04 | 0.98 |" in text
    assert "Oracle (" not in text  # everything is beside it already


def test_the_page_says_whether_forecasts_left_all_bounds(tmp_path):
    asked = {"device": None, "processor": "a processor", "cores": 2, "command": "c", "commit": "1" * 40}
    figures = dict(zip(engine_table.BOUNDS, ([0.98, 1.01], [0.97, 0.99], [0.0, 0.25]), strict=True))
    bounds = asked | {"model": "BNCDE", "horizons": [1.0, 2.0], "worlds": {"continuous": figures}}
    content = {"fit": ALONE, "rows": engine_table.rows_of([cell()])}
    assert "No forecast out of bounds" not in engine_table.page_of(content)
    text = engine_table.page_of(content | {"bounds": bounds})
    assert "(`c`, commit `1111111111`, a processor (2 cores))" in text
    assert "| continuous | 0.98, 1.01 | 0.97, 0.99 | 25% |" in text


def test_what_an_old_cell_did_not_say_is_left_open():
    old = cell()
    del old.figures["largest mean ÷ largest outcome"]
    text = engine_table.page_of({"fit": ALONE, "rows": engine_table.rows_of([old])})
    assert "| 1.04 | – |" in text


def test_the_page_keeps_the_last_fit_where_there_is_no_new_one(tmp_path):
    results = tmp_path / "results"
    (results / "paper" / "work" / "cells").mkdir(parents=True)
    cell().write(results / "paper" / "work" / "cells")
    earlier = {"world": "arms", "fits": 1, "about": "an earlier run", **{name: {"1": 3.0} for name in FIGURES}}
    rows = [earlier | {"model": "BNCDE"}, earlier | {"model": "BNCDE.paper"}]
    (results / "engine.json").write_text(json.dumps({"fit": ALONE, "rows": rows}))
    engine_table.page(tmp_path / "nothing", results)
    assert json.loads((results / "engine.json").read_text())["fit"] == ALONE
    text = (results / "engine.md").read_text()
    assert "| BNCDE (1) | 1.02 |" in text
    assert "| BNCDE.paper (1; an earlier run) | 3.00 |" in text
    assert "| BNCDE (1; an earlier run) |" not in text


def test_situations_differ_where_they_say():
    (today, observed, _), (same, both, _), (rare, _, _) = model_uncertainty.situations().values()
    assert today is same
    assert both.resolve(today).rows == 10 * len(today) != observed.resolve(today).rows
    assert rare.records.rows < 0.6 * today.records.rows


def test_what_the_oracle_drew_is_kept(tmp_path):
    study = RANDOMISED.simulate(3, 1)
    asked = study.cohort.until(54.0), cp.Plan.none(), study.truth.settings, tmp_path / "oracle.npz"
    drawn = model_uncertainty.of_oracle(*asked)
    assert drawn.shape == (model_uncertainty.ORACLE_DRAWS, 3, len(model_uncertainty.HORIZONS))
    assert (model_uncertainty.of_oracle(*asked) == drawn).all()
    assert asked[-1].exists()


@pytest.mark.slow  # it is compiled
def test_a_network_that_has_learned_nothing_still_answers():
    train = RANDOMISED.simulate(20, 1).cohort
    model = model_uncertainty.before_training(small_bncde(linear_response=False), train)
    means, _ = model.components(train.until(50.0), cp.Plan.none(), model_uncertainty.HORIZONS[:1], 8, 0)
    assert means.std(axis=0).max() > 0


@pytest.mark.parametrize("large", [False, True])
def test_learners_of_an_untrained_network_are_as_many_as_asked(large):
    assert len(model_uncertainty.learners(20, large=large)) == 20


def uncertainty_cell(model="BNCDE", error=0.02, rank=0.5, **about):
    row = {"error": error, "spread": 0.01, "error_over_spread": error / 0.01}
    far = {"error": 0.2, "spread": 0.08, "error_over_spread": 2.5}
    about = {"seed": 0, "patients": 300, "commit": "2" * 40, "test_seed": model_uncertainty.TEST_SEED} | about
    situations = dict(zip(model_uncertainty.SITUATIONS, (row, far, far), strict=True))
    return about | {"model": model, "situations": situations, "rank_correlation_of_error_and_spread": rank}


@pytest.fixture
def page_of_uncertainty(monkeypatch, tmp_path):
    def rendered(new, last=()):
        written = []
        for cell in new:
            model_uncertainty.write_cell(cell, tmp_path)
        monkeypatch.setattr(model_uncertainty, "last_result", lambda _: {"cells": list(last)})
        monkeypatch.setattr(model_uncertainty, "write_result", lambda name, content, page: written.append(page))
        model_uncertainty.page(tmp_path)
        return written[0].splitlines()

    return rendered


def test_a_model_stands_beside_what_it_was_before_training(page_of_uncertainty):
    kinds = ("untrained BNCDE", "BNCDE", "linear response of BNCDE", "untrained BNCDE.large", "BNCDE.large")
    lines = page_of_uncertainty([uncertainty_cell(model, rank=rank / 10) for rank, model in enumerate(kinds)])
    ends = [line for line in lines if "unseen histories" in line and line.startswith("|")]
    assert [line.split(" | ")[0] for line in ends] == [f"| {kinds[i]}" for i in (1, 2, 0, 4, 3)]
    assert ends[0] == "| BNCDE | 1 | 300 | unseen histories | 0.2000 | 0.0800 | 2.50 | 10.0 | 8.0 | 0.10 |"


def test_fits_of_a_model_are_averaged_with_their_range(page_of_uncertainty):
    lines = page_of_uncertainty([uncertainty_cell(seed=seed, error=error) for seed, error in ((0, 0.01), (1, 0.02))])
    assert "| BNCDE | 2 | 300 | as in training | 0.0150 | 0.0100 | 1.50 (1.00 to 2.00) | 1.0 | 1.0 |  |" in lines


def test_a_fit_on_earlier_test_patients_gives_way_to_one_on_todays(page_of_uncertainty):
    earlier = [
        uncertainty_cell(seed=1, test_seed=1, commit="3" * 40),
        uncertainty_cell("BNCDE.large", test_seed=1, commit="3" * 40),
    ]
    lines = page_of_uncertainty([uncertainty_cell()], earlier)
    assert sum(line.startswith("| BNCDE | 1 |") for line in lines) == 3
    assert lines[-2:] == [
        f"- Measured by commit `2222222222`, test patients of seed {model_uncertainty.TEST_SEED:,}: BNCDE (300).",
        "- Measured by commit `3333333333`, test patients of seed 1: BNCDE.large (300).",
    ]


@pytest.mark.parametrize(
    ("name", "world"),
    [("continuous time", "continuous"), ("random treatment days", "randomised"), ("two arms", "arms")],
)
def test_the_readme_says_what_the_table_of_the_engine_says(name, world):
    (row,) = [r for r in last_result("engine")["rows"] if (r["world"], r["model"]) == (world, "BNCDE")]

    def span(figure, form, times=1.0):
        values = [times * value for value in row[figure].values()]
        return f"{min(values):{form}} to {max(values):{form}}"

    said = (span("CRPS ÷ oracle", ".2f"), span("95% holds", ".1f", 100) + "%", span("95% width ÷ oracle", ".2f"))
    assert f"| {name} | {' | '.join(said)} |" in (RESULTS.parent.parent / "README.md").read_text(encoding="utf-8")
