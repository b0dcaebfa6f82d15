"""The vector field f(Z, t | ω): a network whose weights are an argument."""

from __future__ import annotations

import math
from collections.abc import Callable
from itertools import accumulate
from typing import Literal

import equinox as eqx
import jax
import jax.numpy as jnp
from jaxtyping import Array, Float, PRNGKeyArray

Activation = Literal["relu", "silu", "tanh"]
ACTIVATIONS: dict[str, Callable] = {"relu": jax.nn.relu, "silu": jax.nn.silu, "tanh": jnp.tanh}

# Matrix and bias of each layer, at one time or along a path.
Layers = tuple[tuple[Float[Array, "... _ _"], Float[Array, "... _"]], ...]


class VectorField(eqx.Module):
    """An MLP from (Z, t) to a matrix of hidden × channels, with tanh at its end, so that no step can explode.

    Part of the state may be the path itself: its present value, in some unit, is carried along by rows that are not
    learned. The MLP sees it, and need not spend Z on remembering it.

    Attributes:
        hidden: Size of Z.
        channels: Number of channels of the path that drives it.
        widths: Of the hidden layers.
        activation: Between them.
        carry: The rows that are not learned; None for none.
    """

    hidden: int = eqx.field(static=True)
    channels: int = eqx.field(static=True)
    widths: tuple[int, ...] = eqx.field(static=True)
    activation: Activation = eqx.field(static=True, default="relu")
    carry: Float[Array, "carried channels"] | None = None

    @property
    def carried(self) -> int:
        """How much of the state is the path itself."""
        return 0 if self.carry is None else self.carry.shape[0]

    @property
    def shapes(self) -> tuple[tuple[int, int], ...]:
        """Outputs and inputs of each layer."""
        sizes = (self.hidden + self.carried + 1, *self.widths, self.hidden * self.channels)
        return tuple(zip(sizes[1:], sizes[:-1], strict=True))

    @property
    def size(self) -> int:
        """Number of weights, d_ω."""
        return sum(outputs * (inputs + 1) for outputs, inputs in self.shapes)

    def layers(self, weights: Float[Array, "*path weights"]) -> Layers:
        """A flat vector of weights (or a path of them) as matrices and biases."""
        sizes = [size for outputs, inputs in self.shapes for size in (outputs * inputs, outputs)]
        parts = jnp.split(weights, list(accumulate(sizes))[:-1], axis=-1)  # its gradient is one concatenation
        matrices = [
            part.reshape(*weights.shape[:-1], *shape) for part, shape in zip(parts[::2], self.shapes, strict=True)
        ]
        return tuple(zip(matrices, parts[1::2], strict=True))

    def fan_in_std(self) -> Float[Array, " weights"]:
        """1/√fan-in of each weight: the scale at which a layer keeps the size of what passes through it."""
        return jnp.concatenate(
            [jnp.full(outputs * (inputs + 1), 1 / math.sqrt(inputs)) for outputs, inputs in self.shapes]
        )

    def usual_start(self, key: PRNGKeyArray) -> Float[Array, " weights"]:
        """Random matrices at the scale of their fan-in, and no biases."""
        parts = []
        for layer_key, (outputs, inputs) in zip(jax.random.split(key, len(self.shapes)), self.shapes, strict=True):
            parts += [jax.random.normal(layer_key, (outputs * inputs,)) / math.sqrt(inputs), jnp.zeros(outputs)]
        return jnp.concatenate(parts)

    def __call__(
        self, state: Float[Array, " state"], clock: Float[Array, ""], layers: Layers
    ) -> Float[Array, "hidden channels"]:
        """The matrix f(Z, t | ω) that is multiplied with an increment of the path.

        Args:
            state: Z, and what is carried along.
            clock: t, from 0 to 1.
            layers: ω, as `layers` gives it.
        """
        return self.with_signals(state, clock, layers)[0]

    def with_signals(
        self, state: Float[Array, " state"], clock: Float[Array, ""], layers: Layers
    ) -> tuple[Float[Array, "hidden channels"], list[Float[Array, " _"]]]:
        """The matrix, and on the way to it what leaves each inner layer before its activation.

        The solver asks for these and for their `slopes`: a field of another form says both.
        """
        *inner, (matrix, bias) = layers
        signal, before = jnp.append(state, clock), []
        for weight, shift in inner:
            before.append(weight @ signal + shift)
            signal = ACTIVATIONS[self.activation](before[-1])
        return jnp.tanh(matrix @ signal + bias).reshape(self.hidden, self.channels), before

    def slopes(
        self,
        slope: Float[Array, "hidden channels"],
        matrix: Float[Array, "hidden channels"],
        before: list[Float[Array, " _"]],
        layers: Layers,
    ) -> tuple[list[Float[Array, " _"]], Float[Array, " state"]]:
        """From the slope of a loss along the matrix to those along what leaves each layer, and along the state."""
        slopes = [(slope * (1 - matrix**2)).ravel()]
        for (weight, _), values in zip(layers[:0:-1], before[::-1], strict=True):
            _, pull_back = jax.vjp(ACTIVATIONS[self.activation], values)
            slopes.append(*pull_back(weight.T @ slopes[-1]))
        return slopes[::-1], (layers[0][0].T @ slopes[-1])[:-1]

    def weight_slopes(
        self,
        states: Float[Array, "*many state"],
        clocks: Float[Array, "*many"],
        before: list[Float[Array, "*many _"]],
        slopes: list[Float[Array, "*many _"]],
    ) -> Layers:
        """Slopes along the layers, of all cells and patients for whom they are the same."""
        first = jnp.concatenate([states, clocks[..., None]], axis=-1)
        signals = [first, *(ACTIVATIONS[self.activation](values) for values in before)]
        flat = [[a.reshape(-1, a.shape[-1]) for a in both] for both in zip(slopes, signals, strict=True)]
        return tuple((own.T @ signal, own.sum(axis=0)) for own, signal in flat)

    def carried_steps(self, path_steps: Float[Array, "*steps channels"]) -> Float[Array, "*steps carried"]:
        """By how much a step of the path moves what is carried along, whatever the weights."""
        if self.carry is None:
            return jnp.zeros((*path_steps.shape[:-1], 0))
        return path_steps @ jax.lax.stop_gradient(self.carry).T
