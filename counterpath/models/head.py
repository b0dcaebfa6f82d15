"""The head η^p: from a hidden state to the law of the outcomes."""

from __future__ import annotations

import equinox as eqx
import jax
import jax.numpy as jnp
from jaxtyping import Array, Float, PRNGKeyArray

SMALLEST_STD = 1e-3  # of the usual change: no outcome is known better than to a thousandth of it


class Perceptron(eqx.Module):
    """Linear layers with silu between them.

    Attributes:
        layers: From the first to the last.
    """

    layers: list[eqx.nn.Linear]

    def __init__(self, inputs: int, outputs: int, widths: tuple[int, ...], *, key: PRNGKeyArray):
        sizes = (inputs, *widths, outputs)
        keys = jax.random.split(key, len(sizes) - 1)
        self.layers = [eqx.nn.Linear(a, b, key=k) for a, b, k in zip(sizes[:-1], sizes[1:], keys, strict=True)]

    def __call__(self, signal: Float[Array, " inputs"]) -> Float[Array, " outputs"]:
        """The last layer's values."""
        return self.layers[-1](self.before_last(signal))

    def before_last(self, signal: Float[Array, " inputs"]) -> Float[Array, " features"]:
        """What the last layer receives."""
        for layer in self.layers[:-1]:
            signal = jax.nn.silu(layer(signal))
        return signal


class OutcomeHead(eqx.Module):
    """Centre and noise of the change of each outcome since it was last seen, in units of the usual change.

    Noise has a std of its own on each side of the centre, where it is skewed: a treatment that is given for the first
    time may take much away and never adds anything.

    Attributes:
        network: From Z̃ to centres and stds.
        dropout: Probability with which a value before the last layer is left out; 0 for none.
        outcomes: Number of outcomes.
        sides: Stds of each outcome: one for both sides, or one below and one above.
        noise_scale: Factor of each outcome's std where nothing is known yet and nothing has passed: 1 in training,
            chosen on validation patients afterwards.
        noise_growth: Of the factor's logarithm, with time known and with time ahead: 0 in training.
    """

    network: Perceptron
    dropout: float = eqx.field(static=True)
    outcomes: int = eqx.field(static=True)
    sides: int = eqx.field(static=True)
    noise_scale: Float[Array, " outcomes"]
    noise_growth: Float[Array, "outcomes times"]

    def __init__(
        self,
        hidden: int,
        outcomes: int,
        widths: tuple[int, ...],
        dropout: float = 0.0,
        *,
        skewed: bool = False,
        key: PRNGKeyArray,
    ):
        self.sides = 2 if skewed else 1
        self.network = Perceptron(hidden, (1 + self.sides) * outcomes, widths, key=key)
        self.dropout = dropout
        self.outcomes = outcomes
        self.noise_scale = jnp.ones(outcomes)
        self.noise_growth = jnp.zeros((outcomes, 2))

    def __call__(
        self, hidden: Float[Array, " hidden"], *, key: PRNGKeyArray
    ) -> tuple[Float[Array, " outcomes"], Float[Array, "outcomes sides"]]:
        """(μ, s) of the change, s without its factor.

        Args:
            hidden: Z̃.
            key: For dropout.
        """
        signal = self.network.before_last(hidden)
        if self.dropout:
            kept = jax.random.bernoulli(key, 1 - self.dropout, signal.shape)
            signal = jnp.where(kept, signal / (1 - self.dropout), 0.0)
        centre, raw_std = jnp.split(self.network.layers[-1](signal), [self.outcomes])
        std = (SMALLEST_STD + jax.nn.softplus(raw_std)).reshape(self.outcomes, self.sides)
        return centre, std

    def noise_factor(self, times: Float[Array, "*places times"]) -> Float[Array, "*places outcomes"]:
        """What the stds are multiplied by, where so much time is known and so much lies ahead."""
        scale, growth = jax.lax.stop_gradient((self.noise_scale, self.noise_growth))
        return scale * jnp.exp(times @ growth.T)
