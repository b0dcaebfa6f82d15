"""The law of an outcome given the weights: normal, or Student's t for heavier tails; with two sides, or with one."""

from __future__ import annotations

import math
from typing import Literal

import jax
import jax.numpy as jnp
from jaxtyping import Array, Float

Likelihood = Literal["normal", "student_t"]
STUDENT_DEGREES = 5.0  # tails heavy enough for outliers, with four finite moments


def log_density(
    kind: Likelihood, outcome: Float[Array, "*#any"], centre: Float[Array, "*#any"], std: Float[Array, "*#any sides"]
) -> Float[Array, "*#any"]:
    """Log p(y | μ, s): half a bell below the centre and half a bell above, which meet there at the same height.

    For `student_t`, s is the scale, not the standard deviation.

    Args:
        kind: Of bell.
        outcome: y.
        centre: μ: the mean, where both sides are alike; the mode else.
        std: Below and above, or one for both.
    """
    below, above = std[..., 0], std[..., -1]
    distance = outcome - centre
    score = distance / jnp.where(distance < 0, below, above)
    height = -jnp.log((below + above) / 2)
    if kind == "normal":
        return height - 0.5 * score**2 - 0.5 * math.log(2 * math.pi)
    return height + jax.scipy.stats.t.logpdf(score, STUDENT_DEGREES)
