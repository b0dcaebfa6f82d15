"""A search over settings, by the evidence bound on validation patients; several machines can share it."""

from __future__ import annotations

import json
import math
import tomllib
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from itertools import product
from os import PathLike
from pathlib import Path
from typing import TYPE_CHECKING, Any

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np

from counterpath.cohort import Cohort
from counterpath.estimators import Configuration, ConfigurationError
from counterpath.estimators.neural import DATA_SEED, NeuralEstimator
from counterpath.experiments.shared_search import REASON, Turns
from counterpath.training import Clock, EpochReport, TrainingError, tabulate
from counterpath.training.problem import Problem
from counterpath.training.scored_cuts import spread_cuts
from counterpath.training.scores import expected_log_density

if TYPE_CHECKING:
    import optuna

# The paper's: hidden layers of the drift, and the diffusion (its supplement on implementation).
PAPER_SPACE: Mapping[str, Sequence[Any]] = {
    "drift_widths": ((16,), (16, 16), (16, 64, 16), (16, 64, 64, 16), (16, 64, 64, 64, 16)),
    "diffusion": (0.01, 0.001, 0.0001),
}
FULL_TRIALS = 3  # before any is ended early
WARM_UP = 0.25  # of the epochs, before a trial may be ended


class TuningError(ValueError):
    """A search that cannot be made."""


@dataclass(frozen=True)
class Trial:
    """One choice of settings.

    Attributes:
        number: In the study.
        settings: That were tried.
        bound: Evidence bound per validation outcome; None where the trial was ended early.
        reason: Why it was left out, where training with these settings diverges.
    """

    number: int
    settings: dict[str, Any]
    bound: float | None
    reason: str = ""


def read_space(path: str | PathLike[str]) -> dict[str, Sequence[Any]]:
    """From a TOML file that has a list of values for each setting, such as `diffusion = [0.01, 0.001]`."""
    path = Path(path)
    try:
        content = tomllib.loads(path.read_text(encoding="utf-8"))
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
        raise TuningError(f"{path} is not TOML: {error}.") from error
    for name, values in content.items():
        if not isinstance(values, list) or not values:
            raise TuningError(f"{path}: {name} needs a list of values to try, such as {name} = [1, 2].")
    if not content:
        raise TuningError(f"{path} names no setting.")
    return content


def tune(
    start: Configuration,
    train: Cohort,
    validation: Cohort,
    *,
    space: Mapping[str, Sequence[Any]] = PAPER_SPACE,
    trials: int | None = None,
    storage: str,
    study: str = "counterpath",
    say: Callable[[str], None] = print,
    keep: Callable[[Configuration], None] = lambda best: None,
) -> tuple[Configuration, list[Trial]]:
    """Try settings on a grid until enough trials are done, by this process or by others that share the storage.

    The score is the evidence bound: the expected log density of a validation outcome over draws of the weights, less
    the KL per training outcome. A trial whose validation score is below the median of earlier ones is ended early, and
    one that diverges is left out.

    Args:
        start: Settings that the trials do not change.
        train: Patients to learn from.
        validation: Patients to score on, who also decide when a fit stops.
        space: Values to try for each setting.
        trials: How many in all; default: every combination.
        storage: A file for the journal of the study, or the URL of a database.
        study: Its name in the storage.
        say: Called with the outcome of each trial.
        keep: Called with the best configuration whenever there is a better one.
    """
    optuna = _optuna()
    optuna.logging.set_verbosity(optuna.logging.WARNING)
    choices = {name: [json.dumps(value) for value in values] for name, values in space.items()}
    for settings in _corners(space):
        _configured(start, settings).build()  # an error now rather than in the night
    combinations = [dict(zip(choices, values, strict=True)) for values in product(*choices.values())]
    np.random.default_rng(start.settings.get("seed", 0)).shuffle(combinations)
    wanted = len(combinations) if trials is None else min(trials, len(combinations))
    made: optuna.Study = optuna.create_study(
        storage=_storage(optuna, storage),
        study_name=study,
        pruner=optuna.pruners.MedianPruner(n_startup_trials=FULL_TRIALS),
        direction="maximize",
        load_if_exists=True,
    )
    _require_same(made, start, choices)
    turns = Turns(made, choices, combinations, wanted, say)
    while (trial := turns.next()) is not None:
        settings = {name: json.loads(trial.suggest_categorical(name, values)) for name, values in choices.items()}
        about = f"Trial {trial.number}, {_in_words(settings)}"
        try:
            with turns.alive(trial):
                bound = _bound(optuna, _configured(start, settings), train, validation, trial)
            if not math.isfinite(bound):
                raise TrainingError("Its evidence bound is not a number.")
        except optuna.TrialPruned:
            made.tell(trial, state=optuna.trial.TrialState.PRUNED)
            say(f"{about}: ended early.")
            continue
        except TrainingError as error:  # it would diverge again
            trial.set_user_attr(REASON, str(error))
            made.tell(trial, state=optuna.trial.TrialState.PRUNED)
            say(f"{about}: left out. {error}")
            continue
        except BaseException:
            made.tell(trial, state=optuna.trial.TrialState.FAIL)
            raise
        made.tell(trial, bound)
        say(f"{about}: {bound:.4f}.")
        if made.best_trial.number == trial.number:
            keep(_configured(start, settings))
    found = [
        Trial(
            own.number,
            {name: json.loads(value) for name, value in own.params.items()},
            own.value if own.state.name == "COMPLETE" else None,  # else it is the last score on the way
            own.user_attrs.get(REASON, ""),
        )
        for own in turns.done()
    ]
    finished = {own.bound: own for own in found if own.bound is not None}
    if not finished:
        reason = next((f" The last was left out: {own.reason}" for own in reversed(found) if own.reason), "")
        raise TuningError(f"No trial has run to its end, so none is the best. Ask for one or more.{reason}")
    best = finished[max(finished)]
    return _configured(start, best.settings), found


def _optuna() -> Any:
    try:
        import optuna
    except ImportError as error:
        raise TuningError("A search needs optuna. Install it with: pip install 'counterpath[tune]'") from error
    return optuna


def _storage(optuna: Any, storage: str) -> Any:
    if "://" in storage:
        return storage
    from optuna.storages import JournalStorage
    from optuna.storages.journal import JournalFileBackend

    Path(storage).parent.mkdir(parents=True, exist_ok=True)
    return JournalStorage(JournalFileBackend(storage))


def _require_same(study: optuna.Study, start: Configuration, choices: Mapping[str, Sequence[str]]) -> None:
    """A study that others have begun must be of the same question."""
    asked = {"start": start.model_dump_json(), "space": json.dumps(choices, sort_keys=True)}
    for name, value in asked.items():
        if study.user_attrs.get(name, value) != value:
            raise TuningError(
                f"The study {study.study_name!r} in this storage was begun with another {name}. Give it another name."
            )
        study.set_user_attr(name, value)


def _corners(space: Mapping[str, Sequence[Any]]) -> list[dict[str, Any]]:
    """Every value of every setting once."""
    first = {name: values[0] for name, values in space.items()}
    return [first | {name: value} for name, values in space.items() for value in values]


def _configured(start: Configuration, settings: Mapping[str, Any]) -> Configuration:
    unknown = [name for name in settings if name not in start.settings]
    if unknown:
        raise ConfigurationError(f"{unknown[0]!r} is no setting of {start.model}.")
    return start.model_copy(update={"settings": {**start.settings, **settings}})


def _bound(optuna: Any, asked: Configuration, train: Cohort, validation: Cohort, trial: optuna.Trial) -> float:
    model = asked.model_copy(update={"settings": asked.settings | {"fits_noise": False}}).build()
    assert isinstance(model, NeuralEstimator)

    def watch(epoch: EpochReport) -> None:
        if epoch.validation is not None and epoch.may_be_kept and epoch.epoch >= WARM_UP * epoch.epochs:
            trial.report(epoch.validation, epoch.epoch)
            if trial.should_prune():
                raise optuna.TrialPruned

    model.fit(train, validation, progress=False, watch=watch)
    return evidence_bound_of(model, train, validation)


def evidence_bound_of(model: NeuralEstimator, train: Cohort, validation: Cohort) -> float:
    """Expected log density of a validation outcome, less the KL per training outcome."""
    rng = np.random.default_rng([DATA_SEED, model.seed, 2])
    cuts = model.architecture.cuts
    held = spread_cuts(tabulate(validation, model.tabulation_, cuts=cuts, rng=rng), model.training.validation_cuts)
    stacked = jax.tree.map(
        lambda *leaves: jnp.stack(leaves) if eqx.is_array(leaves[0]) else leaves[0], *model.networks_
    )
    parameters, rest = eqx.partition(stacked, eqx.is_inexact_array)
    clock = Clock.of(model.tabulation_)
    problem = Problem(held.inputs, held.targets, clock, held.outcomes, rest, model.training)
    likelihood = float(expected_log_density(problem, jax.random.key(0), parameters).mean())
    outcomes = float(tabulate(train, model.tabulation_, cuts=cuts, rng=rng).outcomes)
    kept = model.history_.filter("kept").sort("epoch").group_by("posterior", maintain_order=True).last()
    return likelihood - float(np.mean(kept["kl"].to_numpy())) / outcomes if len(kept) else math.nan


def _in_words(settings: Mapping[str, Any]) -> str:
    return ", ".join(f"{name} = {value}" for name, value in settings.items())
