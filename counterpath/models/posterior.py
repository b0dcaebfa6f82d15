"""Draws of the weights that are made once and used for every patient, plan and horizon."""

from __future__ import annotations

import math
import os
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float, Key

from counterpath.dynamics import Increments
from counterpath.models.inputs import Inputs
from counterpath.models.network import NeuralCDE, Weights

PATIENTS_AT_ONCE = 256
BYTES_KEPT = 2**30  # of weight paths
BYTES_AT_ONCE = 2**25  # of them, by one core of a CPU: more would only wait for memory


class Posterior:
    """Weight paths of many draws, keyed by (seed, draw, cell): they do not depend on who is asked about.

    Paths are made some draws at a time. They are kept where all fit into `BYTES_KEPT`, and made anew where they do not.

    Attributes:
        network: Trained.
        durations: Of the encoder's steps.
        plan_durations: Of the decoder's steps.
        draws: How many.
        seed: Of all draws.
    """

    def __init__(
        self,
        network: NeuralCDE,
        durations: Float[Array, " steps"],
        plan_durations: Float[Array, " plan_steps"],
        *,
        draws: int,
        seed: int,
        increments: Increments = "gaussian",
    ):
        self.network = network
        self.durations = durations
        self.plan_durations = plan_durations
        self.draws = draws
        self.seed = seed
        self.increments: Increments = increments
        self._keys = jax.vmap(lambda draw: jax.random.fold_in(jax.random.key(seed), draw))(jnp.arange(draws))
        path_draws = 1 if network.has_fixed_weights else draws
        size = len(durations) * network.encoder_field.size + len(plan_durations) * network.decoder_field.size
        most = max((BYTES_AT_ONCE if jax.default_backend() == "cpu" else BYTES_KEPT) // (4 * size), 1)
        self._at_once = -(-path_draws // -(-path_draws // most))  # parts of one size, as few as may be
        self._path_draws = path_draws
        self._keeps = 4 * size * path_draws <= BYTES_KEPT
        self._kept: dict[int, Weights] = {}

    def _weights(self, start: int) -> Weights:
        if start in self._kept:
            return self._kept[start]
        keys = self._some_keys(start)
        weights = _draw_weights(self.network, keys, self.durations, self.plan_durations, self.increments)
        if self._keeps:
            self._kept[start] = weights
        return weights

    def _some_keys(self, start: int) -> Key[Array, " draws"]:
        """As many as are drawn at once; where too few are left, the last again, so that the shape stays."""
        return self._keys[jnp.minimum(start + jnp.arange(self._at_once), self.draws - 1)]

    def outcomes(self, inputs: Inputs) -> tuple[np.ndarray, np.ndarray]:
        """Centre and stds of the change of each outcome: draws × patients × cuts × horizons × outcomes (× sides).

        Shapes are padded to a few sizes, so that other numbers of patients or horizons need no new compilation.
        """
        patients, horizons = inputs.horizon_step.shape[0], inputs.horizon_step.shape[2]
        head = self.network.outcome_head
        shape = (self.draws, patients, inputs.cut_step.shape[1], horizons, head.outcomes)
        results = [np.empty(shape, dtype=np.float32), np.empty((*shape, head.sides), dtype=np.float32)]
        host = jax.tree.map(np.asarray, inputs)
        groups = [slice(i, min(i + PATIENTS_AT_ONCE, patients)) for i in range(0, patients, PATIENTS_AT_ONCE)]
        padded = [_pad(jax.tree.map(lambda a, some=some: a[some], host)) for some in groups]

        def follow(first_draw: int) -> None:
            weights = self._weights(first_draw)
            keys = self._keys if self.network.has_fixed_weights else self._some_keys(first_draw)
            number = min(len(keys), self.draws - first_draw)
            for some, group in zip(groups, padded, strict=True):
                both = _outcomes(self.network, group, weights, keys, self.durations, self.plan_durations)
                for result, part in zip(results, both, strict=True):
                    kept = np.asarray(part)[:number, : some.stop - some.start, :, :horizons]
                    result[first_draw : first_draw + number, some] = kept

        first, *others = range(0, self._path_draws, self._at_once)
        follow(first)  # alone, so that only one thread compiles
        # A CPU runs such a program on one core, as its products are small; so each core gets draws of its own.
        with ThreadPoolExecutor(os.cpu_count()) as cores:
            list(cores.map(follow, others))
        return results[0], results[1]


class PosteriorMixture:
    """Posteriors of several networks, taken together: draw number j is of network j modulo their number.

    Attributes:
        networks: Trained.
        draws: How many, of all.
        seed: Of all draws.
    """

    def __init__(
        self,
        networks: Sequence[NeuralCDE],
        durations: Float[Array, " steps"],
        plan_durations: Float[Array, " plan_steps"],
        *,
        draws: int,
        seed: int,
        increments: Increments = "gaussian",
    ):
        self.networks = tuple(networks)
        self.draws = draws
        self.seed = seed
        most = -(-draws // len(networks))
        self._parts = [
            Posterior(network, durations, plan_durations, draws=most, seed=seed, increments=increments)
            for network in networks[:draws]
        ]

    def outcomes(self, inputs: Inputs) -> tuple[np.ndarray, np.ndarray]:
        """As for `Posterior`, with means of the posteriors set apart."""
        means, stds = zip(*(part.outcomes(inputs) for part in self._parts), strict=True)
        return self._in_turn(set_apart(np.stack(means))), self._in_turn(np.stack(stds))

    def _in_turn(self, parts: np.ndarray) -> np.ndarray:
        together = np.swapaxes(parts, 0, 1)
        return together.reshape(-1, *together.shape[2:])[: self.draws]


def set_apart(means: Any) -> Any:
    """Means of several posteriors, first axis, further from their common mean; draws of each are the second axis.

    How far posteriors lie from the mean of a few of them underestimates how far they lie from where all would meet: of
    S of them by √((S − 1) / S), as for any sample. The common mean and the spread within each stay.
    """
    number = means.shape[0]
    if number == 1:
        return means
    own = means.mean(axis=1, keepdims=True)
    return means + (math.sqrt(number / (number - 1)) - 1) * (own - own.mean(axis=0, keepdims=True))


@eqx.filter_jit
def _draw_weights(network, keys, durations, plan_durations, increments):
    return network.draw_weights(keys, durations, plan_durations, increments)


@eqx.filter_jit
def _outcomes(network, inputs, weights, keys, durations, plan_durations):
    hidden = network.hidden_of(inputs, weights, durations, plan_durations)
    if network.has_fixed_weights:
        hidden = jnp.broadcast_to(hidden, (len(keys), *hidden.shape[1:]))
    return network.read_out(hidden, inputs, keys)


def visit_chance(
    network: NeuralCDE,
    inputs: Inputs,
    keys: Key[Array, " draws"],
    durations: Float[Array, " steps"],
    plan_durations: Float[Array, " plan_steps"],
    increments: Increments,
) -> Float[np.ndarray, "patients cuts horizons"]:
    """Probability or rate of a visit, over draws of the weights; shapes are padded as by `Posterior.outcomes`."""
    patients, horizons = inputs.horizon_step.shape[0], inputs.horizon_step.shape[2]
    padded = _pad(jax.tree.map(np.asarray, inputs))
    return np.asarray(_visit_chance(network, padded, keys, durations, plan_durations, increments))[
        :patients, :, :horizons
    ]


@eqx.filter_jit
def _visit_chance(network, inputs, keys, durations, plan_durations, increments):
    hidden, _ = network.hidden_and_kl(inputs, keys, durations, plan_durations, increments)
    return network.intensity_head.chance(network.intensity_head(hidden))


def _pad(inputs: Inputs) -> Inputs:
    """Patients and horizons up to the next power of two; what is added is a copy of the last."""
    patients, horizons = inputs.horizon_step.shape[0], inputs.horizon_step.shape[2]

    def grow(array, axis, number):
        missing = _bucket(number) - number
        return np.concatenate([array, np.repeat(np.take(array, [-1], axis=axis), missing, axis=axis)], axis=axis)

    wider = eqx.tree_at(
        lambda i: jax.tree.leaves([i.horizon_step, i.horizon_increments, i.hints]),
        inputs,
        replace_fn=lambda array: grow(array, 2, horizons),
    )
    return jax.tree.map(lambda a: grow(a, 0, patients), wider)


def _bucket(number: int) -> int:
    return 1 << max(number - 1, 0).bit_length()
