"""The head η^a of balanced representations: it guesses treatments, and hidden states learn to keep them from it."""

from __future__ import annotations

import equinox as eqx
import jax
import jax.numpy as jnp
from jaxtyping import Array, Float, PRNGKeyArray

from counterpath.models.inputs import Decisions


class TreatmentHead(eqx.Module):
    """From Z or Z̃ to the chance of each treatment: one linear map, as in the paper, without dropout.

    Attributes:
        linear: To logits.
    """

    linear: eqx.nn.Linear

    def __init__(self, hidden: int, treatments: int, *, key: PRNGKeyArray):
        self.linear = eqx.nn.Linear(hidden, treatments, key=key)

    def __call__(self, hidden: Float[Array, "*places hidden"]) -> Float[Array, "*places treatments"]:
        """Logits; of what the solver carries along with the hidden state nothing is used, since it is not learned."""
        learned = hidden[..., : self.linear.in_features]
        flat = learned.reshape(-1, learned.shape[-1])
        return jax.vmap(self.linear)(flat).reshape(*learned.shape[:-1], -1)

    def cross_entropy(
        self, hidden: Float[Array, "draws patients cuts horizons hidden"], decisions: Decisions
    ) -> Float[Array, ""]:
        """Of the decisions, whose gradient is turned round on its way from the head to the hidden states.

        So the head learns to guess treatments, and hidden states learn to make that hard.

        Args:
            hidden: Where decisions were made.
            decisions: What was given.
        """
        reversed_hidden = 2 * jax.lax.stop_gradient(hidden) - hidden
        logits = self(reversed_hidden)
        each = jax.nn.softplus(logits) - decisions.given * logits
        return jnp.sum(each.mean(axis=(0, -1)) * decisions.shares)
