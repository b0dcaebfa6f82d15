"""A fit that is stopped, and one that cannot be taken up; and what a command loads before it runs."""

import signal
import subprocess
import sys
import time

import pytest
from shell import MAIN, SMALL, in_one_line, run

import counterpath as cp

pytestmark = pytest.mark.slow  # a model is compiled and trained


def test_a_changed_study_is_not_taken_for_the_one_that_was_interrupted(study, tmp_path):
    (tmp_path / "m.checkpoint").write_bytes(b"not a run")
    result = run("fit", study / "train", "--config", study / "fit.toml", "--to", tmp_path / "m.safetensors", "-q")
    assert result.exit_code == 1
    assert "is not a checkpoint of counterpath" in in_one_line(result.stderr)
    assert (tmp_path / "m.checkpoint").read_bytes() == b"not a run"


def test_ctrl_c_stops_cleanly_and_the_same_command_goes_on(study, tmp_path):
    model, checkpoint = tmp_path / "m.safetensors", tmp_path / "m.checkpoint"
    # So slowly that patients do not become too few for so many epochs.
    slowly = "learning_rate = 1e-5\nreadout_learning_rate = 1e-5"
    (tmp_path / "long.toml").write_text(SMALL.replace("epochs = 20", f"epochs = 500\n{slowly}"))
    command = [sys.executable, "-c", MAIN, "fit", study / "train", "--config", tmp_path / "long.toml", "--to", model]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as process:
        until = time.monotonic() + 120
        while not checkpoint.exists() and time.monotonic() < until:
            time.sleep(0.05)
        process.send_signal(signal.SIGINT)
        _, said = process.communicate(timeout=60)
    assert process.returncode == 130, said
    assert "the same command goes on from there" in in_one_line(said)
    assert "Traceback" not in said
    assert not model.exists()
    before = checkpoint.stat().st_size
    assert before > 0
    again = subprocess.run(command, capture_output=True, text=True, check=False)
    assert again.returncode == 0, again.stderr
    assert f"Going on from {checkpoint}." in in_one_line(again.stdout)
    assert len(cp.load(model).history_) == 500  # each epoch once
    assert not checkpoint.exists()


def test_help_loads_nothing_heavy():
    script = (
        "import sys; from counterpath.cli import app; print({'jax', 'polars', 'numpy', 'pydantic'} & {*sys.modules})"
    )
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True)
    assert done.stdout == "set()\n"
