"""Who of several searchers tries what, through the storage that they share."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from typing import TYPE_CHECKING
from uuid import uuid4

if TYPE_CHECKING:
    import optuna

Combination = dict[str, str]
BEAT = 10.0  # seconds between two signs of life of a trial
SILENT = 60.0  # seconds without one, after which a trial has been cut short, as by a power cut
PAUSE = 1.0  # seconds between two looks at what others are still trying
ENDED = ("COMPLETE", "PRUNED")
REASON, SIGN, WHOSE = "reason", "alive", "whose"  # names of what trials say of themselves


class Turns:
    """Gives this searcher the combinations that nobody has tried and nobody is about.

    Attributes:
        study: That all searchers share.
        choices: Of each setting.
        combinations: In the order in which they are tried, the same for all.
        wanted: How many of them in all.
        say: Called where others must be waited for.
    """

    def __init__(
        self,
        study: optuna.Study,
        choices: Mapping[str, Sequence[str]],
        combinations: Sequence[Combination],
        wanted: int,
        say: Callable[[str], None],
    ):
        self.study = study
        self.choices = choices
        self.combinations = combinations
        self.wanted = wanted
        self.say = say
        self._signs: dict[int, tuple[int, float]] = {}  # of each trial the last, and when it was first looked at

    def done(self) -> list[optuna.trial.FrozenTrial]:
        """One trial of each combination that has been tried: one that ran to its end, where there is such."""
        found: dict[str, optuna.trial.FrozenTrial] = {}
        ended = [trial for trial in self.study.get_trials(deepcopy=False) if trial.state.name in ENDED]
        for trial in sorted(ended, key=lambda own: (own.state.name != ENDED[0], own.number)):
            found.setdefault(repr(sorted(trial.params.items())), trial)
        return sorted(found.values(), key=lambda own: own.number)

    def next(self) -> optuna.Trial | None:
        """The next trial; None when enough are done. Where others are about the last ones, these are waited for."""
        has_said = False
        while True:
            done = [trial.params for trial in self.done()]
            if len(done) >= self.wanted:
                return None
            running = [trial.params for trial in self._running()]
            begun = [own for own in self.combinations if own not in done and own in running]
            left = [own for own in self.combinations if own not in done and own not in begun]
            if left and len(done) + len(begun) < self.wanted:
                trial = self._begin(left[0])
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

    def _begin(self, combination: Combination) -> optuna.Trial:
        """A trial that others see with its combination from the first moment on.

        What is asked of a study is not so: of trials that wait in it, two searchers may be given the same one, or one
        of them a new one without settings.
        """
        from optuna.distributions import BaseDistribution, CategoricalDistribution
        from optuna.trial import Trial, TrialState, create_trial

        own = uuid4().hex
        choices: dict[str, BaseDistribution] = {
            name: CategoricalDistribution(values) for name, values in self.choices.items()
        }
        begun = create_trial(
            state=TrialState.RUNNING, params=combination, distributions=choices, user_attrs={WHOSE: own}
        )
        self.study.add_trial(begun)
        found = next(t for t in self.study.get_trials(deepcopy=False) if t.user_attrs.get(WHOSE) == own)
        return Trial(self.study, found._trial_id)

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
        return own.params not in [trial.params for trial in earlier]


def _failed() -> optuna.trial.TrialState:
    from optuna.trial import TrialState

    return TrialState.FAIL
