"""How a tumour grows and shrinks: one step of the daily map, or of its continuous-time variant.

V(t + h) = V(t) · (1 + h (ρ ln(K / V) − β_c C) − (α d + β d²) + noise), never below 1e-8 cm³.

With h = 1 this is the daily map. With small h, noise scales with √h, and radiotherapy is a factor of its own.
"""

from __future__ import annotations

import numpy as np
from jaxtyping import Bool, Float64

from counterpath.simulators.tumor_patients import TumorPatients

CAPACITY_CM3 = np.pi / 6 * 30.0**3  # a sphere of 30 cm
SMALLEST_CM3 = 1e-8
CELLS_PER_CM3 = 5.8e8  # a tumour of so few cells that chance ends it
CHEMO_DOSE = 5.0
RADIO_DOSE_GY = 2.0
HALF_LIFE_DAYS = 1.0

_Volumes = Float64[np.ndarray, "*any"]


def grow(
    volume: _Volumes,
    *,
    patients: TumorPatients,
    concentration: _Volumes,
    radio_gy: _Volumes,
    noise: _Volumes,
    gone: _Volumes,
    step_days: float,
    daily: bool,
) -> _Volumes:
    """The volume one step later.

    Args:
        volume: Now, in cm³.
        patients: Their parameters; the last axis of everything else.
        concentration: Of chemotherapy, with what is given now.
        radio_gy: Given now.
        noise: Standard normal times the noise's std for this step.
        gone: Uniform, for the chance that a handful of cells dies out.
        step_days: Length of the step.
        daily: One sum, as the daily map has it; otherwise radiotherapy is an instantaneous factor before the step.
    """
    kill = patients.radio_kill(radio_gy)
    if not daily:
        volume, kill = np.maximum(volume * (1 - kill), SMALLEST_CM3), np.zeros_like(kill)
    growth = patients.rho * np.log(CAPACITY_CM3 / volume) - patients.chemo_kill * concentration
    after = np.maximum(volume * (1 + step_days * growth - kill + noise), SMALLEST_CM3)
    return np.where(_dies_out(after, gone, step_days), SMALLEST_CM3, after)


def _dies_out(volume: _Volumes, gone: _Volumes, step_days: float) -> Bool[np.ndarray, "*any"]:
    """With probability exp(−5.8e8 V) a day."""
    chance = np.exp(-CELLS_PER_CM3 * volume)
    return gone < (chance if step_days == 1.0 else -np.expm1(step_days * np.log1p(-chance)))


def decay(concentration: _Volumes, step_days: float) -> _Volumes:
    """Chemotherapy halves every day."""
    return concentration * 0.5 ** (step_days / HALF_LIFE_DAYS)
