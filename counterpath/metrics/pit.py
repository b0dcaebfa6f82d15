"""Probability integral transform: where in its predictive distribution each outcome fell."""

import numpy as np
from jaxtyping import Float
from scipy.special import ndtr

from counterpath.metrics.checks import aligned_points, finite, require_draws_first
from counterpath.metrics.normal_mixture import normal_mixture, require_density

ROUNDING = 1e-9  # a distribution function summed from weights may pass 1 by this much


def pit_draws(
    outcome: Float[np.ndarray, "*points"],
    draws: Float[np.ndarray, "draws *points"],
    rng: np.random.Generator,
) -> Float[np.ndarray, "*points"]:
    """Randomised rank of each outcome among its draws, on the scale from 0 to 1.

    PIT = (#{x_i < y} + V (#{x_i = y} + 1)) / (m + 1),  V ~ U(0, 1)

    It is exactly uniform when outcome and draws are exchangeable, for any number of draws and with ties.

    Args:
        outcome: what happened, in outcome units.
        draws: m draws for each point, in outcome units.
        rng: source of V.

    How to read it:
        A share without unit. Over many points the values should be spread evenly over 0 to 1, with mean ½
        and variance 1/12. Heaps at both ends: the forecast is too narrow. A heap in the middle: too wide.
        A heap near 1 (0): outcomes are higher (lower) than predicted. `pit_uniformity` puts a number on it.
    """
    (outcome,) = aligned_points(outcome=outcome)
    draws = finite("draws", draws)
    require_draws_first(outcome, draws=draws)
    below = (draws < outcome).sum(axis=0)
    equal = (draws == outcome).sum(axis=0)
    return np.asarray((below + rng.random(outcome.shape) * (equal + 1)) / (draws.shape[0] + 1))


def pit_normal_mixture(
    outcome: Float[np.ndarray, "*points"],
    means: Float[np.ndarray, "components *points"],
    stds: Float[np.ndarray, "components *points"],
    weights: Float[np.ndarray, " components"] | Float[np.ndarray, "components *points"] | None = None,
) -> Float[np.ndarray, "*points"]:
    """Distribution function of a mixture of normals at the outcome.

    PIT = Σ_i w_i Φ((y − μ_i)/s_i)

    Args:
        outcome: what happened, in outcome units.
        means: mean μ of each component, in outcome units.
        stds: standard deviation s of each component, in outcome units, positive.
        weights: one weight per component, or per component and point, scaled here to sum to one. None means
            equal weights.

    How to read it:
        A share without unit. Over many points the values should be spread evenly over 0 to 1. Heaps at both
        ends: the forecast is too narrow. A heap in the middle: too wide. A heap near 1 (0): outcomes are
        higher (lower) than predicted. A heap at one inner value can mean that outcomes have an atom which
        the forecast smooths over. `pit_uniformity` puts a number on it.
    """
    (outcome,) = aligned_points(outcome=outcome)
    mixture = normal_mixture(outcome, means, stds, weights)
    require_density(mixture, "Use `randomised_pit` with the distribution function just below and at the outcome.")
    share = (mixture.weights * ndtr((outcome - mixture.means) / mixture.stds)).sum(axis=0)
    return np.asarray(np.clip(share, 0, 1))


def randomised_pit(
    cdf_below: Float[np.ndarray, "*points"],
    cdf_at: Float[np.ndarray, "*points"],
    rng: np.random.Generator,
) -> Float[np.ndarray, "*points"]:
    """PIT of a predictive distribution with atoms: a uniform draw between F(y−) and F(y).

    PIT = F(y−) + V (F(y) − F(y−)),  V ~ U(0, 1)

    Where F has no atom at y the two values agree and nothing is random. With an atom, such as a tumour that
    is gone, F(y) itself is not uniform even for a perfect forecast; this is.

    Args:
        cdf_below: F(y−), the predictive probability of less than the outcome.
        cdf_at: F(y), the predictive probability of at most the outcome.
        rng: source of V.

    How to read it:
        A share without unit. Over many points the values should be spread evenly over 0 to 1. Heaps at both
        ends: the forecast is too narrow. A heap in the middle: too wide. Too many values in the stretch
        that belongs to the atom: the atom happens more often than predicted; too few: more rarely.
    """
    below, at = aligned_points(cdf_below=cdf_below, cdf_at=cdf_at)
    if (below < -ROUNDING).any() or (at > 1 + ROUNDING).any() or (below > at + ROUNDING).any():
        raise ValueError(
            "`cdf_below` and `cdf_at` must satisfy 0 ≤ cdf_below ≤ cdf_at ≤ 1 at every point. "
            "Check that they are probabilities and not swapped."
        )
    return np.asarray(np.clip(below + rng.random(below.shape) * (at - below), 0, 1))
