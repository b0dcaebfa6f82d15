"""The law of an outcome given the weights: normal, or Student's t for heavier tails."""

from __future__ import annotations

import math
from typing import Literal

import jax
import jax.numpy as jnp
from jaxtyping import Array, Float

Likelihood = Literal["normal", "student_t"]
STUDENT_DEGREES = 5.0  # tails heavy enough for outliers, with four finite moments


def log_density(
    kind: Likelihood, outcome: Float[Array, "*#any"], mean: Float[Array, "*#any"], std: Float[Array, "*#any"]
) -> Float[Array, "*#any"]:
    """Log p(y | μ, s). For `student_t`, s is the scale, not the standard deviation."""
    score = (outcome - mean) / std
    if kind == "normal":
        return -0.5 * score**2 - jnp.log(std) - 0.5 * math.log(2 * math.pi)
    return jax.scipy.stats.t.logpdf(score, STUDENT_DEGREES) - jnp.log(std)
