"""The predictive distribution p(y) = Σ w_i N(μ_i, s_i²) as aligned arrays, checked at the door."""

from dataclasses import dataclass

import numpy as np
from jaxtyping import Float

from counterpath.metrics.checks import finite, require_draws_first


@dataclass(frozen=True, eq=False)
class NormalMixture:
    """One mixture of normals per point.

    Attributes:
        means: mean of each component, in outcome units.
        stds: standard deviation of each component, in outcome units; 0 is a point mass.
        weights: weight of each component; they sum to one at every point.
    """

    means: Float[np.ndarray, "components *points"]
    stds: Float[np.ndarray, "components *points"]
    weights: Float[np.ndarray, "components *points"]


def normal_mixture(
    outcome: Float[np.ndarray, "*points"],
    means: Float[np.ndarray, "components *points"],
    stds: Float[np.ndarray, "components *points"],
    weights: Float[np.ndarray, " components"] | Float[np.ndarray, "components *points"] | None,
) -> NormalMixture:
    """Check the parts of a mixture against the outcome and scale the weights to sum to one.

    Args:
        outcome: what happened; fixes the shape of the points.
        means: mean of each component.
        stds: standard deviation of each component, not negative.
        weights: one weight per component, or per component and point; None means equal weights.
    """
    means, stds = finite("means", means), finite("stds", stds)
    require_draws_first(outcome, means=means, stds=stds)
    if means.shape != stds.shape:
        raise ValueError(
            f"`means` has {means.shape[0]} components and `stds` has {stds.shape[0]}. Give one std per mean."
        )
    if (stds < 0).any():
        raise ValueError(
            f"`stds` has {(stds < 0).sum()} negative values. Give standard deviations, not their logarithms."
        )
    return NormalMixture(means, stds, _scaled_weights(weights, means.shape))


def require_density(mixture: NormalMixture, remedy: str) -> None:
    """Raise if a component is a point mass, where the mixture has no density.

    Args:
        mixture: the mixture.
        remedy: what the caller may do instead; ends the error message.
    """
    if (mixture.stds == 0).any():
        raise ValueError(f"`stds` has {(mixture.stds == 0).sum()} zeros: a point mass has no density. {remedy}")


def _scaled_weights(weights: np.ndarray | None, shape: tuple[int, ...]) -> np.ndarray:
    if weights is None:
        return np.broadcast_to(1 / shape[0], shape)
    given = finite("weights", weights)
    if given.shape == shape[:1]:
        given = given.reshape(shape[:1] + (1,) * (len(shape) - 1))
    elif given.shape != shape:
        raise ValueError(
            f"`weights` has shape {given.shape}. Give {shape[:1]}, one weight per component, "
            f"or {shape}, one per component and point."
        )
    total = given.sum(axis=0, keepdims=True)
    if (given < 0).any() or (total <= 0).any():
        raise ValueError("`weights` must not be negative and must have a positive sum at every point.")
    return np.broadcast_to(given / total, shape)
