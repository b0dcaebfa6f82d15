"""Who is measured in `engine_speed`: ours, as it is and with the peers' own scheme, and the peers."""

from __future__ import annotations

from typing import Any

EPOCH_PATIENTS, BATCH_SIZE = 10_000, 64
OURS, GAUSSIAN, MOVING, BOTH, FIXED, ADAPTIVE = (
    "counterpath",
    "counterpath, Gaussian increments",
    "counterpath, weights move every cell",
    "counterpath, both",
    "torchsde fixed",
    "torchsde adaptive",
)
OWN: dict[str, dict[str, Any]] = {
    OURS: {"increments": "two-point"},
    GAUSSIAN: {"increments": "gaussian"},
    MOVING: {"increments": "two-point", "cells_per_move": 1},
    BOTH: {"increments": "gaussian", "cells_per_move": 1},  # as the peers do
}
PEERS = {FIXED: "fixed", ADAPTIVE: "adaptive"}
CRPS_MULTIPLE = 5  # of the CRPS of the last value carried forward: where the paper's small steps lead within minutes
