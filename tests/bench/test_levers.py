"""One setting at a time, on few patients and with a tiny network."""

import json

import numpy as np
import pytest
from small_models import SMALL

from bench import levers
from counterpath.experiments.tumor_worlds import RANDOMISED

TINY = SMALL | {"posteriors": 1, "drift_widths": (2,), "epochs": 2}


@pytest.mark.slow  # a network is trained, and the oracle is asked
@pytest.mark.long
def test_a_lever_is_tried_once_and_stands_on_the_page(tmp_path, monkeypatch, capsys):
    for name, value in {"TRAIN": 24, "VALIDATION": 60, "TEST": 8, "EFFECTS": 4, "ORACLE_DRAWS": 20}.items():
        monkeypatch.setattr(levers, name, value)
    monkeypatch.setattr(levers, "LEVERS", {"default": TINY})
    monkeypatch.setattr(levers, "KEPT", tmp_path / "kept")
    monkeypatch.setattr(levers, "WORLDS", (RANDOMISED,))
    levers.main(["default"], to=tmp_path)
    (row,) = json.loads((tmp_path / "levers.json").read_text())["tried"]
    assert (row["lever"], row["world"]) == ("default", "randomised")
    assert np.isfinite([row["crps"], row["coverage"], row["width"]]).all()
    assert len(row["crps"]) == 5
    assert len(row["effects"]) == 2
    assert (tmp_path / "levers.md").read_text().count("| default |") == 1
    levers.main([], to=tmp_path)
    assert capsys.readouterr().out.count("default") == 1  # what was tried is not tried again
    monkeypatch.setattr(levers, "LEVERS", {"default": TINY, "recalibrated": TINY})
    levers.main([], to=tmp_path)
    default, recalibrated = json.loads((tmp_path / "levers.json").read_text())["tried"]
    assert recalibrated["crps"] == default["crps"]  # levels change, draws do not
    assert recalibrated["width"] != default["width"]
