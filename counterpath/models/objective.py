"""The evidence lower bound of the whole data set, estimated without bias from a batch.

    L = Σ_outcomes avg_{cuts that predict it} E_q log p(y | cut, ω, ω̃) − KL(encoder) − KL(decoder)

Each observed outcome counts once however many cuts predict it, and each KL once for the data set.
"""

from __future__ import annotations

import equinox as eqx
import jax.numpy as jnp
from jaxtyping import Array, Float, Key

from counterpath.dynamics import Increments
from counterpath.models.inputs import Inputs, Targets
from counterpath.models.likelihood import Likelihood, log_density
from counterpath.models.network import NeuralCDE


class Batch(eqx.Module):
    """Some patients with some of their cuts.

    Attributes:
        inputs: Of the patients.
        targets: Of the patients; shares are already multiplied so that their expected sum is that of all cuts.
    """

    inputs: Inputs
    targets: Targets


def evidence_bound(
    network: NeuralCDE,
    batch: Batch,
    durations: Float[Array, " steps"],
    plan_durations: Float[Array, " plan_steps"],
    *,
    keys: Key[Array, " draws"],
    dropout_keys: Key[Array, "draws patients"],
    likelihood: Likelihood,
    increments: Increments,
    outcome_noise: bool = True,
) -> tuple[Float[Array, ""], Float[Array, ""]]:
    """An unbiased estimate of the expected log likelihood of these patients, and of the KL of the data set.

    Args:
        network: With its laws.
        batch: Of patients and cuts.
        durations: Of the encoder's steps on its clock.
        plan_durations: Of the decoder's steps on its clock.
        keys: Of the draws of the weights, which all patients share.
        dropout_keys: Of what the head leaves out.
        likelihood: Of an outcome.
        increments: Of the Brownian motion.
        outcome_noise: Whether the head's std counts; without it the likelihood is that of squared error.
    """
    mean, std, path_kl = network.outcomes(
        batch.inputs, keys, durations, plan_durations, increments=increments, dropout_keys=dropout_keys
    )
    if not outcome_noise:
        std = jnp.ones_like(std)
    densities = log_density(likelihood, batch.targets.changes, mean, std).mean(axis=0)
    return jnp.sum(densities * batch.targets.shares), path_kl + network.initial_kl()
