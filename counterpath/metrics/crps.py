"""Continuous ranked probability score: how far a whole predictive distribution is from the outcome."""

import numpy as np
from jaxtyping import Float
from scipy.special import erf

from counterpath.metrics.checks import aligned_points, finite, require_draws_first
from counterpath.metrics.normal_mixture import normal_mixture

CHUNK_VALUES = 2**18  # float64 values in one intermediate array: 2 MiB, which stays in the cache


def crps_draws(
    outcome: Float[np.ndarray, "*points"],
    draws: Float[np.ndarray, "draws *points"],
    fair: bool = False,
) -> Float[np.ndarray, "*points"]:
    """CRPS of the empirical distribution of draws, by sorting them.

    CRPS = 1/m Σ_i |x_i − y| − 1/(2m²) Σ_i Σ_j |x_i − x_j|

    With `fair=True` the second term is divided by 2m(m − 1) instead, which makes the score an unbiased
    estimate of the CRPS of the distribution the draws came from (Ferro 2014).

    Args:
        outcome: what happened, in outcome units.
        draws: m draws for each point, in outcome units.
        fair: judge the distribution behind the draws, not these m draws. Needs two draws or more.

    How to read it:
        In outcome units; lower is better, 0 is a forecast with all draws on the outcome. For one draw it is
        the absolute error, so it compares directly with the mean absolute error of a point forecast. Too
        wide, too narrow and off-centre all raise it; `pit_draws` tells which. With m draws the plain score of
        a calibrated forecast is too high by the factor 1 + 1/m: compare methods at equal m, or with
        `fair=True`, where single points may be slightly negative.
    """
    (outcome,) = aligned_points(outcome=outcome)
    draws = finite("draws", draws)
    require_draws_first(outcome, draws=draws)
    number = draws.shape[0]
    if fair and number < 2:
        raise ValueError("`fair=True` needs at least two draws per point. Draw more, or pass fair=False.")
    deviations = draws - outcome
    distance = np.abs(deviations).mean(axis=0)
    deviations.sort(axis=0)
    # ½ Σ_i Σ_j |x_i − x_j| = Σ_i (2i − m − 1) x_(i) over the sorted draws x_(1) ≤ … ≤ x_(m)
    spread = np.tensordot(2.0 * np.arange(1, number + 1) - number - 1, deviations, axes=1)
    if fair:
        return np.asarray(distance - spread / (number * (number - 1)))
    return np.asarray(np.maximum(distance - spread / number**2, 0))  # rounding alone can lead below 0


def crps_normal_mixture(
    outcome: Float[np.ndarray, "*points"],
    means: Float[np.ndarray, "components *points"],
    stds: Float[np.ndarray, "components *points"],
    weights: Float[np.ndarray, " components"] | Float[np.ndarray, "components *points"] | None = None,
) -> Float[np.ndarray, "*points"]:
    """Exact CRPS of a mixture of normals.

    CRPS = Σ_i w_i A(y − μ_i, s_i²) − ½ Σ_i Σ_j w_i w_j A(μ_i − μ_j, s_i² + s_j²),
    A(m, v) = 2 √v φ(m/√v) + m (2Φ(m/√v) − 1), the mean of |X| for X ~ N(m, v)

    Grimit, Gneiting, Berrocal & Johnson (2006), The continuous ranked probability score for circular
    variables and its application to mesoscale forecast ensemble verification.

    Args:
        outcome: what happened, in outcome units.
        means: mean μ of each component, in outcome units.
        stds: standard deviation s of each component, in outcome units; 0 is a point mass.
        weights: one weight per component, or per component and point, scaled here to sum to one. None means
            equal weights.

    How to read it:
        In outcome units; lower is better, 0 is a point mass on the outcome. A forecast N(y, s²) scores
        0.234 s. Compare with another method's by `paired_ratio`: a ratio of 1.10 against an oracle means
        10% more than what is possible. Too wide, too narrow and off-centre all raise it;
        `pit_normal_mixture` tells which.
    """
    (outcome,) = aligned_points(outcome=outcome)
    mixture = normal_mixture(outcome, means, stds, weights)
    components = mixture.means.shape[0]
    # Only differences matter. Distances to the outcome keep their digits where volumes are far from 0.
    deviations = (mixture.means - outcome).reshape(components, -1)
    variances = np.square(mixture.stds).reshape(components, -1)
    flat_weights = mixture.weights.reshape(components, -1)
    scores = np.empty(outcome.size)
    step = max(1, CHUNK_VALUES // components)
    for start in range(0, outcome.size, step):
        chunk = slice(start, start + step)
        scores[chunk] = _crps_of_chunk(deviations[:, chunk], variances[:, chunk], flat_weights[:, chunk])
    return scores.reshape(outcome.shape)


def _crps_of_chunk(
    deviations: Float[np.ndarray, "components chunk"],
    variances: Float[np.ndarray, "components chunk"],
    weights: Float[np.ndarray, "components chunk"],
) -> Float[np.ndarray, " chunk"]:
    distance = (weights * _mean_absolute(deviations, variances)).sum(axis=0)
    spread = (weights**2 * np.sqrt(variances / np.pi)).sum(axis=0)  # the pairs i = j: ½ A(0, 2s²) = s/√π
    for i in range(len(deviations) - 1):  # one row of pairs at a time: memory grows with m, not with m²
        after = slice(i + 1, None)
        pairs = _mean_absolute(deviations[i] - deviations[after], variances[i] + variances[after])
        spread += weights[i] * (weights[after] * pairs).sum(axis=0)
    return np.maximum(distance - spread, 0)  # rounding alone can lead below 0


def _mean_absolute(
    mean: Float[np.ndarray, "components chunk"], variance: Float[np.ndarray, "components chunk"]
) -> Float[np.ndarray, "components chunk"]:
    """E|X| for X ~ N(mean, variance), which is |mean| where the variance is 0."""
    # Where the variance is 0 any positive divisor is right: ∞ is replaced by a huge finite ratio.
    scaled = mean / np.sqrt(2 * np.maximum(variance, np.finfo(np.float64).tiny))
    scaled = np.clip(scaled, -30, 30)  # exp(−900) and 1 − erf(30) are 0 in float64
    return np.sqrt(variance * (2 / np.pi)) * np.exp(-np.square(scaled)) + mean * erf(scaled)
