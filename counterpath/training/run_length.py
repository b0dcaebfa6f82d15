"""How long a run should be: when it is scored, and when its patients turn out to be too few for so many epochs."""

from __future__ import annotations

from collections.abc import Iterable

FIRST = 0.02  # of all epochs: when the first score is due
APART = 1.5  # times later, each of the next: the fewer the patients, the earlier a run may be at its best
FALLEN = 0.2  # nats per outcome below the best, twice in a row: more than scores differ by chance
LONGER = 2  # times: rates fall from early on, so the best state is halfway through a run that goes on too long
LEAST_STEPS = 50  # of a run, however few the patients
CLEARLY = 0.75  # of a run: what is hardly shorter is not worth another


def is_scored(epoch: int, epochs: int, *, every: int, evenly_from: float) -> bool:
    """Whether validation patients are looked at after an epoch.

    Args:
        epoch: From 1.
        epochs: Of the run.
        every: So many, where scores are evenly spread.
        evenly_from: That epoch.
    """
    if epoch == epochs or (epoch >= evenly_from and epoch % every == 0):
        return True
    due = max(round(FIRST * epochs), 1)
    while due < epoch:
        due = max(round(APART * due), due + 1)
    return due == epoch


def enough_epochs(scores: Iterable[tuple[int, float]], epochs: int, steps_per_epoch: int) -> int | None:
    """Of a run that has become clearly worse: with how many it had better begin anew. None for one that may go on.

    Args:
        scores: Of validation patients after some epochs.
        epochs: Of the run.
        steps_per_epoch: Likewise.
    """
    scores = list(scores)
    if len(scores) < 3:
        return None
    best_epoch, best = max(scores, key=lambda scored: scored[1])
    has_fallen = all(score < best - FALLEN for _, score in scores[-2:])
    enough = max(LONGER * best_epoch, -(-LEAST_STEPS // steps_per_epoch))
    return enough if has_fallen and enough < CLEARLY * epochs else None
