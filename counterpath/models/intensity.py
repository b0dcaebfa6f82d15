"""The head η^ζ: how often a patient is seen, which tells how much an outcome that was seen stands for."""

from __future__ import annotations

import equinox as eqx
import jax
import jax.numpy as jnp
from jaxtyping import Array, Float, PRNGKeyArray

from counterpath.models.head import Perceptron
from counterpath.models.inputs import Visits

DeviceAxis = tuple[str, ...]  # empty where one device has all
LARGEST_WEIGHT = 10.0  # times the usual: an outcome that hardly anybody would have seen does not decide alone


class IntensityHead(eqx.Module):
    """From Z̃ to the rate of visits, or to the probability of one where visits lie on a grid of days or hours.

    It learns from what it sees and the hidden state does not learn from it: no gradient passes on.

    Attributes:
        network: From Z̃ to a logarithm (of the rate) or a logit (of the probability), beside the usual one.
        usual: The logarithm or logit of an average place.
        interval: Of the grid on which visits lie; 0 where they may come at any time.
    """

    network: Perceptron
    usual: Float[Array, ""]
    interval: Float[Array, ""]

    def __init__(self, hidden: int, widths: tuple[int, ...], *, key: PRNGKeyArray):
        self.network = Perceptron(hidden, 1, widths, key=key)
        self.usual = jnp.zeros(())
        self.interval = jnp.zeros(())

    def __call__(self, hidden: Float[Array, "*places hidden"]) -> Float[Array, "*places"]:
        """The logarithm or logit at each state."""
        states = jax.lax.stop_gradient(hidden)
        raw = jax.vmap(self.network)(states.reshape(-1, states.shape[-1]))
        return raw.reshape(states.shape[:-1]) + jax.lax.stop_gradient(self.usual)

    @property
    def _on_grid(self) -> Array:
        return self.interval > 0

    def chance(self, raw: Float[Array, "draws *places"]) -> Float[Array, "*places"]:
        """The probability of a visit at a time of the grid, or the rate of visits; the mean over draws."""
        return jnp.where(self._on_grid, jax.nn.sigmoid(raw), jnp.exp(raw)).mean(axis=0)

    def log_likelihood(self, raw: Float[Array, "draws patients cuts horizons"], visits: Visits) -> Float[Array, ""]:
        """Of the visits: of each time of a grid, or of a point process with its integral as a sum over places.

        Args:
            raw: As the head gives it.
            visits: Where patients came, and where they could have come.
        """
        visit = jnp.where(self._on_grid, jax.nn.log_sigmoid(raw), raw)
        none = jnp.where(self._on_grid, jax.nn.log_sigmoid(-raw), -jnp.exp(raw))
        return jnp.sum((visits.came * visit + visits.exposure * none).mean(axis=0))

    def weights(
        self,
        raw: Float[Array, "draws *places"],
        shares: Float[Array, "*places outcomes"],
        *,
        draws_axis: DeviceAxis = (),
        patients_axis: DeviceAxis = (),
    ) -> Float[Array, "*places 1"]:
        """What each outcome that was seen stands for: the inverse of its chance, with a mean of one over the shares.

        Args:
            raw: As the head gives it.
            shares: How much each outcome counts.
            draws_axis: Of devices that have other draws.
            patients_axis: Of devices that have other patients.
        """
        counts = shares.sum(axis=-1)
        inverse = self.chance(self.usual[None]) / jax.lax.pmean(self.chance(raw), draws_axis)
        held = jnp.where(counts > 0, jnp.clip(inverse, 1 / LARGEST_WEIGHT, LARGEST_WEIGHT), 0.0)
        weighted, plain = jax.lax.psum((jnp.sum(held * counts), counts.sum()), patients_axis)
        return jax.lax.stop_gradient(held * plain / jnp.maximum(weighted, jnp.finfo(jnp.float32).tiny))[..., None]
