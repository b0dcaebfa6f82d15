"""Who of several searchers tries what, through the storage that they share."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import optuna

Combination = dict[str, str]
BEAT = 10.0  # seconds between two signs of life of a trial
SILENT = 60.0  # seconds without one, after which a trial has been cut short, as by a power cut
PAUSE = 1.0  # seconds between two looks at what others are still trying
ENDED = ("COMPLETE", "PRUNED")
REASON, SIGN = "reason", "alive"  # names of what trials say of themselves


class Turns:
    """Gives this searcher the combinations that nobody has tried and nobody is about.

    Attributes:
        study: That all searchers share.
        combinations: In the order in which they are tried, the same for all.
        wanted: How many of them in all.
        say: Called where others must be waited for.
    """

    def __init__(
        self, study: optuna.Study, combinations: Sequence[Combination], wanted: int, say: Callable[[str], None]
    ):
        self.study = study
        self.combinations = combinations
        self.wanted = wanted
        self.say = say
        self._signs: dict[int, tuple[int, float]] = {}  # of each trial the last, and when it was first looked at

    def done(self) -> list[optuna.trial.FrozenTrial]:
        """One trial of each combination that has been tried: one that ran to its end, where there is such."""
        found: dict[str, optuna.trial.FrozenTrial] = {}
        ended = [trial for trial in self.study.get_trials(deepcopy=False) if trial.state.name in ENDED]
        for trial in sorted(ended, key=lambda own: (own.state.name != ENDED[0], own.number)):
            found.setdefault(repr(combination_of(trial)), trial)
        return sorted(found.values(), key=lambda own: own.number)

    def next(self) -> optuna.Trial | None:
        """The next trial; None when enough are done. Where others are about the last ones, these are waited for."""
        has_said = False
        while True:
            done = [combination_of(trial) for trial in self.done()]
            if len(done) >= self.wanted:
                return None
            running = [combination_of(trial) for trial in self._running()]
            begun = [own for own in self.combinations if own not in done and own in running]
            left = [own for own in self.combinations if own not in done and own not in begun]
            if left and len(done) + len(begun) < self.wanted:
                self.study.enqueue_trial(left[0])
                trial = self.study.ask()  # this one, or one that another searcher has just put there
                if self._is_first(trial.number):
                    return trial
                self.study.tell(trial, state=_failed())
                continue
            if not has_said:
                self.say("What is left is being tried by others, or was cut short less than a minute ago: waiting.")
                has_said = True
            time.sleep(PAUSE)

    @contextmanager
    def alive(self, trial: optuna.Trial) -> Iterator[None]:
        """While this lasts, others see that the trial goes on."""
        ended = threading.Event()

        def show() -> None:
            number = 0
            while not ended.wait(BEAT):
                number += 1
                with suppress(Exception):  # the next sign may get through
                    trial.set_user_attr(SIGN, number)

        thread = threading.Thread(target=show, daemon=True)
        thread.start()
        try:
            yield
        finally:
            ended.set()
            thread.join()

    def _running(self) -> list[optuna.trial.FrozenTrial]:
        """What has shown a sign of life. Only own clocks are compared: those of other machines may be off."""
        now, found = time.monotonic(), []
        for trial in self.study.get_trials(deepcopy=False):
            if trial.state.name != "RUNNING":
                continue
            sign = trial.user_attrs.get(SIGN, 0)
            if self._signs.get(trial.number, (None, 0.0))[0] != sign:
                self._signs[trial.number] = sign, now
            if now - self._signs[trial.number][1] < SILENT:
                found.append(trial)
        return found

    def _is_first(self, number: int) -> bool:
        """Of those who took the same combination at the same moment, the lowest number has it."""
        own = next(trial for trial in self.study.get_trials(deepcopy=False) if trial.number == number)
        earlier = [*self.done(), *(trial for trial in self._running() if trial.number < number)]
        return combination_of(own) not in [combination_of(trial) for trial in earlier]


def combination_of(trial: optuna.trial.FrozenTrial) -> Combination:
    """What a trial is about, also before it has begun."""
    return trial.system_attrs.get("fixed_params") or trial.params


def _failed() -> optuna.trial.TrialState:
    from optuna.trial import TrialState

    return TrialState.FAIL
