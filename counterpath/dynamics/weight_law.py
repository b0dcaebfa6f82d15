"""The law of the weights: where they start, how they move, and how far that is from the prior.

    dω = (u(ω, t) − θ ω) dt + σ dB,     ω_0 ~ N(ν, diag s²)

against the prior dω = −θ ω dt + σ dB, ω_0 ~ N(0, diag s_0²), an Ornstein–Uhlenbeck process.
"""

from __future__ import annotations

from abc import abstractmethod

import equinox as eqx
import jax
import jax.numpy as jnp
from jaxtyping import Array, Float, PRNGKeyArray

from counterpath.dynamics.vector_field import ACTIVATIONS


class WeightProcess(eqx.Module):
    """A law of weight paths."""

    @abstractmethod
    def initial(self, key: PRNGKeyArray) -> Float[Array, " weights"]:
        """One draw of ω_0."""

    @abstractmethod
    def control(self, weights: Float[Array, " weights"], clock: Float[Array, ""]) -> Float[Array, " weights"]:
        """u(ω, t), by how much the drift differs from the prior's."""

    @abstractmethod
    def initial_kl(self) -> Float[Array, ""]:
        """KL of the initial law from its prior."""


class Drift(eqx.Module):
    """The network u(ω, t). Its last layer starts at zero: before any data the posterior moves like the prior.

    Attributes:
        layers: Matrices and biases.
        input_std: The scale of the weights, which the network divides by.
    """

    layers: list[tuple[Float[Array, "_ _"], Float[Array, " _"]]]
    input_std: Float[Array, " weights"]

    def __init__(self, input_std: Float[Array, " weights"], widths: tuple[int, ...], *, key: PRNGKeyArray):
        if not widths:
            raise ValueError("A drift network needs at least one hidden layer.")
        size = len(input_std)
        sizes = (size + 1, *widths, size)
        self.input_std = input_std
        self.layers = []
        for layer_key, inputs, outputs in zip(jax.random.split(key, len(sizes)), sizes[:-1], sizes[1:], strict=False):
            matrix = jax.random.normal(layer_key, (outputs, inputs)) / jnp.sqrt(inputs)
            self.layers.append((matrix, jnp.zeros(outputs)))
        matrix, bias = self.layers[-1]
        self.layers[-1] = (jnp.zeros_like(matrix), bias)

    def __call__(self, weights: Float[Array, " weights"], clock: Float[Array, ""]) -> Float[Array, " weights"]:
        """u(ω, t) = U a(P ω, t)."""
        return self.features(self.projection() @ weights, clock) @ self.answers()

    def projection(self) -> Float[Array, "units weights"]:
        """P: what the first layer sees of ω, in units of its scale."""
        return self.layers[0][0][:, :-1] / jax.lax.stop_gradient(self.input_std)

    def features(self, projected: Float[Array, " units"], clock: Float[Array, ""]) -> Float[Array, " features"]:
        """a: the values before the last layer, and a one for its bias."""
        (first, shift), *inner, _ = self.layers
        signal = ACTIVATIONS["relu"](projected + first[:, -1] * clock + shift)
        for weight, bias in inner:
            signal = ACTIVATIONS["relu"](weight @ signal + bias)
        return jnp.append(signal, 1.0)

    def answers(self) -> Float[Array, "features weights"]:
        """Uᵀ: the last layer, in units of the weights' scale, so that a step moves each by a like share of it."""
        matrix, bias = self.layers[-1]
        return jax.lax.stop_gradient(self.input_std) * jnp.concatenate([matrix.T, bias[None]])


class WeightLaw(WeightProcess):
    """The posterior over paths of weights.

    Attributes:
        initial_mean: ν.
        initial_log_std: log s, where it is learned; None for the paper's law N(ν, σ²), which then has no KL at t = 0:
            the prior is taken to start where the posterior does.
        prior_std: s_0.
        drift: u.
        diffusion: σ.
        prior_rate: θ, per unit of the clock.
    """

    initial_mean: Float[Array, " weights"]
    initial_log_std: Float[Array, " weights"] | None
    prior_std: Float[Array, " weights"]
    drift: Drift
    diffusion: Float[Array, ""]
    prior_rate: Float[Array, ""]

    def initial(self, key: PRNGKeyArray) -> Float[Array, " weights"]:
        """ν + s ε."""
        std = jax.lax.stop_gradient(self.diffusion) if self.initial_log_std is None else jnp.exp(self.initial_log_std)
        return self.initial_mean + std * jax.random.normal(key, self.initial_mean.shape)

    def control(self, weights: Float[Array, " weights"], clock: Float[Array, ""]) -> Float[Array, " weights"]:
        """u(ω, t)."""
        return self.drift(weights, clock)

    def initial_kl(self) -> Float[Array, ""]:
        """Σ log(s_0 / s) + (s² + ν²) / (2 s_0²) − ½."""
        if self.initial_log_std is None:
            return jnp.zeros(())
        prior_std = jax.lax.stop_gradient(self.prior_std)
        log_ratio = self.initial_log_std - jnp.log(prior_std)
        return jnp.sum(0.5 * (jnp.exp(2 * log_ratio) + (self.initial_mean / prior_std) ** 2 - 1) - log_ratio)


class FixedWeights(WeightProcess):
    """Weights that are known and do not move: an ordinary neural CDE."""

    weights: Float[Array, " weights"]

    def initial(self, key: PRNGKeyArray) -> Float[Array, " weights"]:
        """The weights."""
        return self.weights

    def control(self, weights: Float[Array, " weights"], clock: Float[Array, ""]) -> Float[Array, " weights"]:
        """They do not move."""
        return jnp.zeros_like(weights)

    def initial_kl(self) -> Float[Array, ""]:
        """There is no prior."""
        return jnp.zeros(())
