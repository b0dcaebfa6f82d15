"""Pages say what was measured, and what is computed for them is right."""

import numpy as np
import pytest

from bench import device_epoch, effects, prediction_speed
from bench.competitors import ADAPTIVE, FIXED, GAUSSIAN, OURS

SAID = {
    "command": "python -m bench.x",
    "commit": "0123456789abcdef",
    "processor": "a processor",
    "cores": 2,
    "python": "3.11",
    "versions": {"jax": "1", "torch": "2", "torchsde": "3"},
}


def test_a_promise_is_set_beside_what_came_of_it():
    chance = np.array([0.0, 0.02, 0.5, 0.6, 0.97, 1.0])
    gains = np.array([False, True, False, True, True, True])
    found = effects.benefit(chance, gains)
    assert [(row["from"], row["points"]) for row in found] == [(0.0, 2), (0.5, 2), (0.95, 2)]
    assert [row["gained"] for row in found] == [0.5, 0.5, 1.0]
    assert found[2]["promised"] == pytest.approx(0.985)


def test_the_page_of_effects_has_every_horizon():
    row = {"horizon": 2.0, "coverage": 0.93, "error": 0.5, "spread": 0.4, "oracle_std": 0.3, "size": 6.0}
    benefit = effects.benefit(np.array([0.97]), np.array([True]))
    page = effects.page_of(
        SAID | {"patients": 5, "compared": {"one against two": {"horizons": [row], "benefit": benefit}}}
    )
    assert "| 2 | 93.0% | 0.5 | 0.4 | 0.3 | 6 |" in page
    assert "| 95% to 100% | 1 | 97.0% | 100.0% |" in page


def test_the_epoch_on_a_device_is_a_ratio_to_ours():
    runs = {name: {"step_s": step, "first_epoch_s": 20.0} for name, step in ((OURS, 0.006), (GAUSSIAN, 0.007))}
    runs |= {FIXED: {"step_s": 0.06}, ADAPTIVE: {"step_s": 0.6}}
    page = device_epoch.page_of(SAID | {"device": "a device", "epochs": 5, "runs": runs})
    assert "| torchsde adaptive | 600.0 | 93.60 | 100.0 |" in page
    assert "| counterpath | 6.0 | 0.94 | 1.0 |" in page


def test_the_page_of_predictions_has_time_rate_and_memory():
    timed = {"seconds": 0.05, "first_call_s": 3.0, "peak_gb": 1.0}
    content = SAID | {"load_before": (0.1,), "load_after": (0.2,), "patients": 10_000, "one": timed}
    content["many"] = {"seconds": 40.0, "peak_gb": 2.5}
    content["one_at_paper_sizes"] = {OURS: {"seconds": 0.1}, ADAPTIVE: {"seconds": 1.0}}
    page = prediction_speed.page_of(content)
    assert "**50 ms**" in page
    assert "250 patients a second" in page
    assert "2.5 GB" in page
    assert "| torchsde adaptive | 1000 | 10.0 |" in page
