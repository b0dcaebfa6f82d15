import json
import os
import random
import signal
import subprocess
import sys
import time
from contextlib import contextmanager
from pathlib import Path

import numpy as np
import pytest
from safetensors.numpy import load_file, save_file
from small_models import fit_small, leaves_of, small_study, small_tecde

from counterpath.estimators import joint_fit
from counterpath.training import CheckpointError, checkpoint, loop

pytestmark = pytest.mark.slow  # models are compiled and trained


class InterruptionError(Exception):
    pass


def small_model(**options):
    """Sixty epochs, of which every sixth is scored and kept, and some early ones."""
    return small_tecde(**({"epochs": 60} | options))


@pytest.fixture
def interrupt(monkeypatch):
    """Makes the next fit stop after an epoch, as Ctrl-C would."""

    def after(epoch):
        def report(done):
            if done.epoch == epoch:
                raise InterruptionError

        @contextmanager
        def shown(name, *, shown):
            yield report if epoch else None

        monkeypatch.setattr(joint_fit, "show_progress", shown)

    return after


@pytest.fixture(scope="module")
def uninterrupted():
    return fit_small(small_model())


@pytest.fixture
def half(tmp_path, interrupt):
    """The checkpoint of a run that stopped after 13 of its 60 epochs, one after it was last kept."""
    file = tmp_path / "run.safetensors"
    interrupt(13)
    with pytest.raises(InterruptionError):
        fit_small(small_model(), checkpoint=file)
    interrupt(None)
    return file


def assert_same_run(ours, theirs):
    for a, b in zip(leaves_of(ours), leaves_of(theirs), strict=True):
        np.testing.assert_array_equal(a, b)
    assert ours.history_.drop("seconds").equals(theirs.history_.drop("seconds"))


# Taken up again


def test_little_is_lost_where_scores_are_far_apart(tmp_path, interrupt, monkeypatch):
    """Whenever so many seconds have passed, the run is kept without a score."""
    kept = {}
    for seconds in (1e9, 0.0):
        monkeypatch.setattr(loop, "AT_MOST_LOST", seconds)
        interrupt(10)
        file = tmp_path / f"{seconds}.safetensors"
        with pytest.raises(InterruptionError):
            fit_small(small_model(), checkpoint=file)
        with checkpoint.safe_open(file, framework="numpy") as run:
            kept[seconds] = json.loads(run.metadata()["run"])["epoch"]
    assert kept == {1e9: 9, 0.0: 10}


def test_a_run_that_was_interrupted_twice_ends_in_the_same_bits(half, interrupt, uninterrupted):
    interrupt(34)
    with pytest.raises(InterruptionError):
        fit_small(small_model(), checkpoint=half)
    interrupt(None)
    assert_same_run(fit_small(small_model(), checkpoint=half), uninterrupted)


def test_a_run_that_ended_is_not_trained_again(tmp_path, interrupt, uninterrupted):
    file = tmp_path / "made for it" / "run.safetensors"
    fit_small(small_model(), checkpoint=file)
    interrupt(60)  # would be reported if there was another epoch
    assert_same_run(fit_small(small_model(), checkpoint=file), uninterrupted)


# Of another run, or of none


LEARN, HELD = small_study()
OTHERS = {
    "seed": (small_model(seed=1), LEARN, HELD),
    "settings": (small_model(learning_rate=1e-3), LEARN, HELD),
    "network": (small_model(hidden=2), LEARN, HELD),
    "training patients": (small_model(), LEARN[:20], HELD),
    "validation patients": (small_model(), LEARN, HELD[:5]),
}


@pytest.mark.parametrize("other", OTHERS)
def test_a_checkpoint_of_another_run_is_refused_and_kept(half, other):
    model, *cohorts = OTHERS[other]
    before = half.read_bytes()
    with pytest.raises(
        CheckpointError, match=r"belongs to a run with other patients, settings or seeds\. Choose another"
    ):
        model.fit(*cohorts, progress=False, checkpoint=half)
    assert half.read_bytes() == before


def shortened(file):
    file.write_bytes(file.read_bytes()[:-100])


def with_arrays_missing(file):
    with checkpoint.safe_open(file, framework="numpy") as kept:
        metadata = kept.metadata()
    save_file({"best_score": load_file(file)["best_score"]}, file, metadata=metadata)


DAMAGES = {
    "empty": lambda file: file.write_bytes(b""),
    "text": lambda file: file.write_text("epoch,score\n1,0.5\n"),
    "shortened": shortened,
    "other tensors": lambda file: save_file({"weights": np.zeros(3)}, file),
    "other metadata": lambda file: save_file({"weights": np.zeros(3)}, file, metadata={"run": "{}"}),
    "arrays missing": with_arrays_missing,
}


@pytest.mark.parametrize("damage", DAMAGES.values(), ids=DAMAGES)
def test_a_damaged_or_foreign_file_is_refused(half, damage):
    damage(half)
    with pytest.raises(CheckpointError, match=r"run\.safetensors is not a checkpoint of counterpath"):
        fit_small(small_model(), checkpoint=half)


# Whole at every moment


def test_a_write_that_fails_leaves_the_old_file_and_no_other(half, monkeypatch, uninterrupted):
    before = half.read_bytes()

    def disk_full(arrays, path, metadata):
        Path(path).write_bytes(b"half of it")
        raise OSError("No space left on device")

    with monkeypatch.context() as broken:
        broken.setattr(checkpoint, "save_file", disk_full)
        with pytest.raises(OSError, match="No space left"):
            fit_small(small_model(), checkpoint=half)
    assert half.read_bytes() == before
    assert list(half.parent.iterdir()) == [half]
    assert_same_run(fit_small(small_model(), checkpoint=half), uninterrupted)


# Killed

EPOCHS = 500
KILLS = 20
FIT = f"""
import sys
import numpy as np
from small_models import fit_small, leaves_of, small_bncde

# With patience, every epoch is scored and kept.
model = fit_small(small_bncde(epochs={EPOCHS}, patience={EPOCHS}), checkpoint=sys.argv[1])
arrays = {{str(i): leaf for i, leaf in enumerate(leaves_of(model))}}
np.savez(sys.argv[2], history=model.history_.drop("seconds").to_numpy(), **arrays)
"""


@pytest.fixture
def start(tmp_path):
    """Starts a process that fits, with a checkpoint and a result in a folder of that name."""
    folders = {
        "JAX_COMPILATION_CACHE_DIR": str(tmp_path / "compiled"),
        "JAX_PERSISTENT_CACHE_MIN_COMPILE_TIME_SECS": "0",
    }
    environment = os.environ | folders | {"PYTHONPATH": str(Path(__file__).parents[1])}

    def process(name):
        folder = tmp_path / name
        folder.mkdir(exist_ok=True)
        files = folder / "run.safetensors", folder / "result.npz"
        return subprocess.Popen([sys.executable, "-c", FIT, *map(str, files)], env=environment), *files

    return process


def version_of(file):
    return file.stat().st_mtime_ns if file.exists() else None


def test_a_run_that_is_killed_again_and_again_ends_in_the_same_bits(start):
    """Each time at random within half a second after it went on, in which it is kept many times."""
    process, _, expected = start("never killed")
    assert process.wait() == 0
    delay, kills, seen = random.Random(0), 0, set()
    while True:
        process, file, result = start("killed")
        old = version_of(file)
        while process.poll() is None and version_of(file) == old:
            time.sleep(0.001)
        time.sleep(delay.uniform(0.0, 0.5) if kills < KILLS else 0.0)
        if kills < KILLS and process.poll() is None:
            process.send_signal(signal.SIGKILL)
        if process.wait() == 0:
            break
        assert process.returncode == -signal.SIGKILL
        kills += 1
        seen.add(version_of(file))
    assert kills >= KILLS
    assert len(seen) > KILLS / 2  # they met different states of the run
    with np.load(expected) as ours, np.load(result) as theirs:
        assert ours["history"].shape[0] == EPOCHS
        for name in ours:
            np.testing.assert_array_equal(ours[name], theirs[name])
