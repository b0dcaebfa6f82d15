"""When a run is scored, and when it begins anew with fewer epochs."""

from dataclasses import replace

import numpy as np
import pytest
from small_models import leaves_of, small_study, small_tecde

from counterpath.training.run_length import FALLEN, enough_epochs, is_scored


def scored(epochs, **options):
    return [epoch for epoch in range(1, epochs + 1) if is_scored(epoch, epochs, **options)]


def test_scores_are_dense_at_first_then_evenly_spread():
    assert scored(100, every=10, evenly_from=50.0) == [2, 3, 4, 6, 9, 14, 21, 32, 48, 50, 60, 70, 72, 80, 90, 100]


def test_a_run_of_one_epoch_is_scored_once():
    assert scored(1, every=1, evenly_from=0.5) == [1]


RISING = [(5, -2.0), (10, -1.5), (20, -1.0)]


def test_a_run_that_improves_goes_on():
    assert enough_epochs(RISING, 400, 2) is None


@pytest.mark.parametrize(
    ("later", "enough"),
    [
        ([-1.0 - 2 * FALLEN], None),  # once may be chance
        ([-1.0 - 2 * FALLEN, -1.0 - FALLEN / 2], None),
        ([-1.0 - 2 * FALLEN, -1.0 - 2 * FALLEN], 40),  # twice as long as it took to be at its best
        ([-1.0 - 2 * FALLEN, -1.0 - FALLEN / 2, -3.0, -3.0], 40),
        ([-3.0, -3.0, -0.5], None),  # it has recovered
    ],
)
def test_a_run_that_has_clearly_become_worse_begins_anew(later, enough):
    scores = RISING + [(30 + 10 * i, score) for i, score in enumerate(later)]
    assert enough_epochs(scores, 400, 2) == enough


def test_a_run_that_was_best_late_goes_on():
    """What is kept is its best state; a run of nearly the same length would not be better."""
    assert enough_epochs([*RISING, (150, -0.5), (160, -3.0), (170, -3.0)], 400, 2) is None


def without_a_pattern(cohort, rng):
    """Outcomes that nothing foretells: all that can be learned about training patients is by heart."""
    values = np.exp(rng.normal(size=cohort.records.values.shape))
    return replace(cohort, records=replace(cohort.records, values=values))


def test_a_run_is_never_shorter_than_fifty_steps():
    assert enough_epochs([(1, -1.0), (2, -3.0), (3, -3.0)], 400, 2) == 25
    assert enough_epochs([(1, -1.0), (2, -3.0), (3, -3.0)], 30, 2) is None


@pytest.mark.slow  # a model is compiled and trained
def test_training_by_heart_is_stopped_and_said_and_survives_an_interruption(tmp_path, capsys):
    rng = np.random.default_rng(0)
    train, validation = (without_a_pattern(cohort, rng) for cohort in small_study())
    settings = {"epochs": 300, "cuts_per_step": 16, "hidden": 8, "field_widths": (32,)}

    def fit(**options):
        return small_tecde(**settings).fit(train[:2], validation, **options)

    whole = fit()
    (said,) = [line for line in " ".join(capsys.readouterr().err.split()).split(". ") if "begins anew" in line]
    epochs = int(said.split()[-1])
    assert whole.history_["epoch"].to_list() == list(range(1, epochs + 1))
    assert epochs < 225

    def interrupt(report):
        if report.epochs == epochs and report.epoch == 3:  # of the second run
            raise InterruptedError

    with pytest.raises(InterruptedError):
        fit(progress=False, checkpoint=tmp_path / "run", watch=interrupt)
    again = fit(progress=False, checkpoint=tmp_path / "run")
    assert again.history_.drop("seconds").equals(whole.history_.drop("seconds"))
    for ours, theirs in zip(leaves_of(again), leaves_of(whole), strict=True):
        np.testing.assert_array_equal(ours, theirs)
