"""Who is treated when. Each rule gives, step by step, which patients receive which treatment."""

from __future__ import annotations

from typing import Literal, get_args

import numpy as np
from jaxtyping import Bool, Float64, Int64

Assignment = Literal["arms", "randomised", "confounded", "hidden confounding"]
ASSIGNMENTS: tuple[str, ...] = get_args(Assignment)

TREATMENTS = ("chemotherapy", "radiotherapy")
ARMS = ("sequential", "concurrent")
ARM_DAYS = {"sequential": ((27, 34, 41, 48, 55), ()), "concurrent": ((27, 41, 55), (27, 41, 55))}
FIRST_DAY = 10.0  # of assignment by chance
PER_DAY = 1 / 7
DIAMETER_SCALE_CM = 13.0


def arm_schedule(
    arm: Int64[np.ndarray, " patients"], steps: int, step_days: float, rng: np.random.Generator
) -> Bool[np.ndarray, "patients steps treatments"]:
    """The paper's arms. In continuous time each dose comes at a random time of its day."""
    given = np.zeros((len(arm), steps, len(TREATMENTS)), bool)
    per_day = round(1 / step_days)
    for number, name in enumerate(ARMS):
        mine = np.flatnonzero(arm == number)
        for kind, days in enumerate(ARM_DAYS[name]):
            for day in days:
                step = day * per_day + rng.integers(0, per_day, len(mine))
                inside = step < steps
                given[mine[inside], step[inside], kind] = True
    return given


def chance_of_treatment(
    assignment: Assignment, time_days: float, step_days: float, diameter: Float64[np.ndarray, " patients"], gamma: float
) -> Float64[np.ndarray, " patients"]:
    """The probability that a patient receives a treatment in this step, the same for each treatment.

    Args:
        assignment: `randomised`: one in seven a day for all; otherwise more for larger tumours.
        time_days: Now.
        step_days: Length of the step.
        diameter: Mean of the last 15 days, as far as the rule sees it.
        gamma: How strongly treatment follows size.
    """
    if time_days < FIRST_DAY:
        return np.zeros(len(diameter))
    per_day = np.full(len(diameter), PER_DAY)
    if assignment != "randomised":
        per_day = PER_DAY * sigmoid(gamma * (diameter / DIAMETER_SCALE_CM - 0.5))
    return per_day if step_days == 1.0 else -np.expm1(-step_days * per_day)


def sigmoid(x: Float64[np.ndarray, "*any"]) -> Float64[np.ndarray, "*any"]:
    """1 / (1 + exp(−x))."""
    return 1 / (1 + np.exp(-x))
