"""Log score: how much probability the forecast had put at the outcome."""

import numpy as np
from jaxtyping import Float
from scipy.special import logsumexp

from counterpath.metrics.checks import aligned_points
from counterpath.metrics.normal_mixture import normal_mixture, require_density


def log_score_normal_mixture(
    outcome: Float[np.ndarray, "*points"],
    means: Float[np.ndarray, "components *points"],
    stds: Float[np.ndarray, "components *points"],
    weights: Float[np.ndarray, " components"] | Float[np.ndarray, "components *points"] | None = None,
) -> Float[np.ndarray, "*points"]:
    """Negative log density of a mixture of normals at the outcome.

    score = −log Σ_i w_i N(y; μ_i, s_i²)

    Args:
        outcome: what happened, in outcome units.
        means: mean μ of each component, in outcome units.
        stds: standard deviation s of each component, in outcome units, positive.
        weights: one weight per component, or per component and point, scaled here to sum to one. None means
            equal weights.

    How to read it:
        In nats; lower is better, and negative values are ordinary. It depends on the unit of the outcome,
        so only differences between methods on the same points mean something: 0.1 lower means that the
        outcome was given 1.1 times the density. One outcome far outside the forecast can dominate the mean;
        the CRPS is gentler there. Ratios of log scores mean nothing.
    """
    (outcome,) = aligned_points(outcome=outcome)
    mixture = normal_mixture(outcome, means, stds, weights)
    require_density(mixture, "Use `crps_normal_mixture`, or give every component a positive std.")
    scaled = (outcome - mixture.means) / mixture.stds
    log_density = -0.5 * np.square(scaled) - np.log(mixture.stds) - 0.5 * np.log(2 * np.pi)
    return np.asarray(np.negative(np.asarray(logsumexp(log_density, axis=0, b=mixture.weights))))
