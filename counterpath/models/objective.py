"""The evidence lower bound of the whole data set, estimated without bias from a batch.

    L = Σ_outcomes avg_{cuts that predict it} E_q log p(y | cut, ω, ω̃) − KL(encoder) − KL(decoder)

Each observed outcome counts once however many cuts predict it, and each KL once for the data set.
"""

from __future__ import annotations

from typing import NamedTuple

import equinox as eqx
import jax.numpy as jnp
from jaxtyping import Array, Float, Key

from counterpath.dynamics import Increments
from counterpath.models.inputs import Inputs, Targets
from counterpath.models.intensity import DeviceAxis
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


class Bound(NamedTuple):
    """Parts of the bound.

    Attributes:
        log_likelihood: An unbiased estimate of the expected log likelihood of a batch's outcomes.
        kl: Of the data set.
        visits: Log likelihood of the batch's visits, where these are learned; its gradient reaches their head alone.
        decisions: Cross-entropy of the batch's treatments, where representations are balanced: to be made small, which
            for hidden states means large.
    """

    log_likelihood: Float[Array, ""]
    kl: Float[Array, ""]
    visits: Float[Array, ""]
    decisions: Float[Array, ""]


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
    draws_axis: DeviceAxis = (),
    patients_axis: DeviceAxis = (),
) -> Bound:
    """Its parts, estimated from some patients.

    Where visits are learned, outcomes count by the inverse of their chance to be seen.

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
        draws_axis: Of devices that have other draws of the same batch.
        patients_axis: Of devices that have other patients of it.
    """
    targets = batch.targets
    hidden, path_kl = network.hidden_and_kl(batch.inputs, keys, durations, plan_durations, increments)
    mean, std = network.read_out(hidden, batch.inputs, keys, dropout_keys)
    if not outcome_noise:
        std = jnp.ones_like(std)
    shares, visits, decisions = targets.shares, jnp.zeros(()), jnp.zeros(())
    if network.intensity_head is not None and targets.visits is not None:
        raw = network.intensity_head(hidden)
        shares = shares * network.intensity_head.weights(
            raw, shares, draws_axis=draws_axis, patients_axis=patients_axis
        )
        visits = network.intensity_head.log_likelihood(raw, targets.visits)
    if network.treatment_head is not None and targets.decisions is not None:
        decisions = network.treatment_head.cross_entropy(hidden, targets.decisions)
    densities = log_density(likelihood, targets.changes, mean, std).mean(axis=0)
    return Bound(jnp.sum(densities * shares), path_kl + network.initial_kl(), visits, decisions)
