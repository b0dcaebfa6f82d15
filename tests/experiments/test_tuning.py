"""The search finds the best of what it tried, goes on where it was, and leaves a file for `fit`."""

import json
import threading
import tomllib
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from time import sleep

import numpy as np
import polars as pl
import pytest
from shell import in_one_line, run
from small_models import fit_small, small_bncde, small_study

from counterpath.estimators import Configuration, ConfigurationError
from counterpath.experiments.shared_search import Turns
from counterpath.experiments.tuning import PAPER_SPACE, TuningError, evidence_bound_of, read_space, tune
from counterpath.training import TrainingError

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


@pytest.mark.slow
def test_the_bound_has_the_kl_of_the_state_that_was_kept():
    """Neither of one while the KL came in, nor of one after the patience had ended, whatever their scores."""
    model = fit_small(small_bncde(kl_ramp=0.5, epochs=12, patience=2))
    bound = evidence_bound_of(model, *small_study())
    history = model.history_
    kept = history.filter("kept")["epoch"].max()
    assert kept >= 6
    assert history.filter(pl.col("epoch") == kept)["validation"].item() == history.filter("kept")["validation"].max()
    others = pl.col("epoch") != kept
    better = pl.when(others).then(pl.col("validation") + 100.0).otherwise("validation").alias("validation")
    model.history_ = history.with_columns(better, pl.when(others).then(pl.lit(1e6)).otherwise("kl").alias("kl"))
    assert evidence_bound_of(model, *small_study()) == bound


class Question:
    """A search whose trials take no time: what is asked of whom, and what each answers."""

    def __init__(self, monkeypatch, answers):
        self.asked: list[float] = []
        self.answers = answers
        monkeypatch.setattr("counterpath.experiments.tuning._bound", self.bound)

    def bound(self, optuna, configuration, train, validation, trial):
        diffusion = configuration.settings["diffusion"]
        self.asked.append(diffusion)
        answer = self.answers[diffusion]
        return answer(trial) if callable(answer) else answer


def raising(error):
    def answer(trial):
        trial.report(float("nan"), 3)
        raise error

    return answer


@pytest.mark.parametrize("storage", ["{}/study.journal", "sqlite:///{}/study.db"], ids=["journal", "database"])
def test_what_diverges_is_left_out_and_the_search_goes_on(tmp_path, monkeypatch, storage):
    diverged = TrainingError("By epoch 3, 20 of the last 20 steps had a loss that is not finite.")
    question = Question(monkeypatch, {0.001: 1.0, 0.01: raising(diverged), 0.1: float("nan")})
    asked = {"space": {"diffusion": (0.001, 0.01, 0.1)}, "storage": storage.format(tmp_path)}
    best, trials, said = search(tmp_path, **asked)
    assert best.settings["diffusion"] == 0.001
    assert sorted(question.asked) == [0.001, 0.01, 0.1]
    reasons = {trial.settings["diffusion"]: (trial.bound, trial.reason) for trial in trials}
    assert reasons[0.01] == (None, str(diverged))
    assert reasons[0.1] == (None, "Its evidence bound is not a number.")
    assert sum("left out. " in text for text in said) == 2
    assert search(tmp_path, **asked)[1:] == (trials, [])  # nothing is tried again


def test_where_everything_diverges_it_is_said(tmp_path, monkeypatch):
    Question(monkeypatch, {0.01: float("nan")})
    with pytest.raises(TuningError, match=r"The last was left out: Its evidence bound is not a number\."):
        search(tmp_path, space={"diffusion": (0.01,)})


@pytest.mark.parametrize("storage", ["{}/study.journal", "sqlite:///{}/study.db"], ids=["journal", "database"])
def test_two_who_search_at_once_share_the_work(tmp_path, monkeypatch, storage):
    """Both take their first turn at the same moment, and none returns before all is done."""
    space = (0.001, 0.01, 0.1, 0.2)
    at_once = threading.Barrier(2)
    look = Turns._running

    def together(turns):
        found = look(turns)
        with suppress(threading.BrokenBarrierError):
            at_once.wait(timeout=1.0)
        return found

    monkeypatch.setattr(Turns, "_running", together)
    question = Question(monkeypatch, {value: (lambda trial, value=value: sleep(0.3) or value) for value in space})
    asked = {"space": {"diffusion": space}, "storage": storage.format(tmp_path)}
    tune(small_start(), *small_study(), **(asked | {"trials": 1}))  # the study is there
    question.asked.clear()
    with ThreadPoolExecutor(2) as pool:
        one, other = (pool.submit(search, tmp_path, **asked) for _ in range(2))
    for best, trials, _ in (one.result(), other.result()):
        assert best.settings["diffusion"] == 0.2
        assert sorted(trial.settings["diffusion"] for trial in trials) == sorted(space)
    assert len(question.asked) == len(set(question.asked)) == 3


def test_what_was_cut_short_is_done_again_once_it_has_been_silent(tmp_path, monkeypatch):
    """A power cut leaves a trial that seems to run."""
    monkeypatch.setattr("counterpath.experiments.shared_search.SILENT", 1.5)

    class PowerCut(BaseException):
        pass

    def cut(self, trial, *rest, **options):
        raise PowerCut

    question = Question(monkeypatch, {0.01: raising(PowerCut()), 0.1: 2.0})
    asked = {"space": {"diffusion": (0.01, 0.1)}}
    with monkeypatch.context() as patched:
        patched.setattr("optuna.study.Study.tell", cut)
        with pytest.raises(PowerCut):
            search(tmp_path, **asked)
    question.answers[0.01] = 1.0
    best, trials, said = search(tmp_path, **asked)
    assert best.settings["diffusion"] == 0.1
    assert len(trials) == 2
    assert any("waiting" in text for text in said)


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
