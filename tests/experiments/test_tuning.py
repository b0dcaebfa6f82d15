"""The search finds the best of what it tried, goes on where it was, and leaves a file for `fit`."""

import json
import tomllib

import numpy as np
import pytest
from shell import in_one_line, run
from small_models import fit_small, small_bncde, small_study

from counterpath.estimators import Configuration, ConfigurationError
from counterpath.experiments.tuning import PAPER_SPACE, TuningError, evidence_bound_of, read_space, tune

SPACE = {"diffusion": (0.001, 0.01), "learning_rate": (5e-3, 1e-6)}


def small_start():
    return Configuration(model="BNCDE", max_horizon=5.0, settings=small_bncde(epochs=6).parameters)


def search(tmp_path, **options):
    said: list[str] = []
    asked = {"space": SPACE, "storage": str(tmp_path / "study.journal"), "say": said.append} | options
    return *tune(small_start(), *small_study(), **asked), said


def test_the_papers_grid():
    assert PAPER_SPACE["drift_widths"][-1] == small_bncde().paper(1.0).parameters["drift_widths"]
    assert len(PAPER_SPACE["drift_widths"]) * len(PAPER_SPACE["diffusion"]) == 15


@pytest.mark.slow
@pytest.mark.long
def test_the_best_trial_becomes_the_configuration(tmp_path):
    kept = []
    best, trials, said = search(tmp_path, keep=kept.append)
    assert len(trials) == len(said) == 4
    assert {tuple(trial.settings.values()) for trial in trials} == {(a, b) for a in (0.001, 0.01) for b in (5e-3, 1e-6)}
    finished = [trial for trial in trials if trial.bound is not None]
    top = max(finished, key=lambda trial: trial.bound)
    assert best.settings == small_start().settings | top.settings
    assert len({trial.bound for trial in finished}) == len(finished)  # settings matter
    assert kept[-1] == best
    _, again, said = search(tmp_path)
    assert said == []  # nothing was left to do
    assert again == trials


@pytest.mark.slow
@pytest.mark.long
@pytest.mark.parametrize("storage", ["{}/study.journal", "sqlite:///{}/study.db"], ids=["journal", "database"])
def test_an_interrupted_search_goes_on(tmp_path, monkeypatch, storage):
    asked = {"space": {"diffusion": (0.001, 0.01, 0.1)}, "storage": storage.format(tmp_path)}
    calls = []

    def stop_in_the_second(model, train, validation):
        calls.append(model.parameters["diffusion"])
        if len(calls) == 2:
            raise KeyboardInterrupt
        return float(len(calls))

    monkeypatch.setattr("counterpath.experiments.tuning.evidence_bound_of", stop_in_the_second)
    with pytest.raises(KeyboardInterrupt):
        search(tmp_path, **asked)
    _, trials, said = search(tmp_path, **asked)
    assert len(said) == 2
    assert {trial.settings["diffusion"] for trial in trials} == {0.001, 0.01, 0.1}
    assert calls[1] in calls[2:]  # what was interrupted is done again, and nothing else
    assert len(calls) == 4


@pytest.mark.slow
@pytest.mark.long
def test_a_hopeless_trial_is_ended_early(tmp_path):
    usual, hopeless = (0.001, 0.002, 0.003), 30.0
    _, trials, said = search(tmp_path, space={"diffusion": (*usual, hopeless)})
    assert trials[-1].settings["diffusion"] == hopeless  # its turn is last
    assert trials[-1].bound is None
    assert said[-1].endswith("diffusion = 30.0: ended early.")
    assert trials[0].bound is not None  # with this one and others it is compared


@pytest.mark.slow
def test_the_bound_is_below_the_score_of_the_mixture():
    model = fit_small(small_bncde())
    mixture = model.history_.drop_nulls("validation")["validation"].max()
    bound = evidence_bound_of(model, *small_study())
    assert bound < mixture
    assert np.isfinite(bound)


def test_another_question_needs_another_name(tmp_path):
    start, patients = small_start(), small_study()
    asked = {"storage": str(tmp_path / "study.journal"), "trials": 0, "space": SPACE}
    with pytest.raises(TuningError, match="No trial has run to its end"):
        tune(start, *patients, **asked)  # but the study is begun
    with pytest.raises(TuningError, match=r"was begun with another space\. Give it another name"):
        tune(start, *patients, **(asked | {"space": {"diffusion": (0.5,)}}))


def test_wrong_spaces_are_refused_before_anything_is_trained(tmp_path):
    with pytest.raises(ConfigurationError, match="'sigma' is no setting of BNCDE"):
        search(tmp_path, space={"sigma": (0.1,)})
    path = tmp_path / "space.toml"
    path.write_text("diffusion = 0.1\n")
    with pytest.raises(TuningError, match=r"diffusion needs a list of values to try, such as diffusion = \[1, 2\]"):
        read_space(path)
    path.write_text("")
    with pytest.raises(TuningError, match="names no setting"):
        read_space(path)


@pytest.mark.slow
@pytest.mark.long
def test_from_the_shell_to_a_file_for_fit(tmp_path):
    study = tmp_path / "study"
    small_study()[0].save(study)
    (tmp_path / "start.toml").write_text(small_start().to_toml())
    (tmp_path / "space.toml").write_text("diffusion = [0.001, 0.01]\n")
    arguments = ("tune", study, "--config", tmp_path / "start.toml", "--space", tmp_path / "space.toml")
    result = run(*arguments, "--to", tmp_path / "best.toml", "--json")
    assert result.exit_code == 0, result.stderr
    found = json.loads(result.stdout)["trials"]
    best = max((trial for trial in found if trial["bound"] is not None), key=lambda trial: trial["bound"])
    written = tomllib.loads((tmp_path / "best.toml").read_text())
    assert written["settings"]["diffusion"] == best["settings"]["diffusion"]
    assert Configuration.read(tmp_path / "best.toml").build().max_horizon == 5.0
    again = run(*arguments, "--to", tmp_path / "best.toml")
    assert again.exit_code == 1
    assert "--overwrite" in in_one_line(again.stderr)
