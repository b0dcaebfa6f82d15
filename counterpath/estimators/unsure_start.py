"""What noisy records leave unknown of a patient's linear response, as part of every draw."""

from __future__ import annotations

import numpy as np
from jaxtyping import Float, Float64

from counterpath.predictive import Noise

PATIENT_SEED = 2  # a stream that meets neither that of the data nor that of the networks
LEAST_NOISE = 0.1  # of a variance: so much is the outcome's own


def with_unsure_start(
    centre: Float[np.ndarray, "draws patients horizons outcomes"],
    std: Float[np.ndarray, "draws patients horizons outcomes sides"],
    unsure: Float64[np.ndarray, "patients horizons outcomes coefficients"],
    noise: Noise,
    seed: int,
) -> tuple[np.ndarray, np.ndarray]:
    """Each draw starts from other coefficients of the patient's linear response, and has less noise to make up for it.

    What is not known of these coefficients because records are noisy is part of the noise that the head learns. It is
    the same for all plans and horizons, and later records will tell it: model uncertainty, not the outcome's. Means
    stay what they were.

    Args:
        centre: Of the change, in units.
        std: Of its noise, in units.
        unsure: How the start would differ with standard normal numbers, in units of std.
        noise: Its kind.
        seed: Of the draws.
    """
    draws, shape = len(centre), unsure.shape[2:]
    numbers = np.random.default_rng([seed, PATIENT_SEED]).standard_normal((-(-draws // 2), *shape))
    # Both signs of each number, and one size for all draws, so that the mean over these does not move.
    numbers = np.stack([numbers, -numbers], axis=1).reshape(-1, *shape)[:draws]
    numbers -= numbers.mean(axis=0)  # of an odd number, the last has no other sign
    moved = (numbers[:, None, None] * unsure).sum(axis=-1)
    left = np.sqrt(np.maximum(1 - (unsure**2).sum(axis=-1), LEAST_NOISE))
    shift, _ = noise.moments(std)
    return centre + moved * std.mean(axis=(0, -1)) + (1 - left) * shift, std * left[..., None]
