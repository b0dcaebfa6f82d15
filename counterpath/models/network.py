"""Encoder, decoder and head, for one patient and one draw of the weights."""

from __future__ import annotations

import equinox as eqx
import jax
import jax.numpy as jnp
from jaxtyping import Array, Float, Key, PRNGKeyArray

from counterpath.dynamics import FixedWeights, Increments, VectorField, WeightLaw, WeightPath, solve, weight_paths
from counterpath.dynamics.weight_law import Drift
from counterpath.models.head import OutcomeHead, Perceptron
from counterpath.models.inputs import Inputs
from counterpath.models.intensity import IntensityHead
from counterpath.models.sizes import NetworkSizes, PosteriorStart
from counterpath.models.treatment_head import TreatmentHead

Outcome = Float[Array, "draws patients cuts horizons outcomes"]
Sides = Float[Array, "draws patients cuts horizons outcomes sides"]


class Weights(eqx.Module):
    """Weights of encoder and decoder along their grids, of one draw or of several.

    Attributes:
        encoder: ω.
        decoder: ω̃.
        path_kl: Of both paths.
    """

    encoder: WeightPath
    decoder: WeightPath
    path_kl: Float[Array, "*draws"]

    @property
    def draw_axes(self) -> Weights:
        """Where the draws are, for `jax.vmap`."""
        return eqx.tree_at(
            lambda w: (w.encoder, w.decoder, w.path_kl), self, (self.encoder.draw_axes, self.decoder.draw_axes, 0)
        )


class NeuralCDE(eqx.Module):
    """Z_0 = η^e(X_0, static); encoder along the history; decoder along the plan; head η^p.

    Attributes:
        embedding: η^e.
        encoder_field: f^e.
        encoder_law: Of its weights.
        decoder_field: f^d.
        decoder_law: Of its weights.
        outcome_head: η^p.
        intensity_head: η^ζ, where visits are learned.
        treatment_head: η^a, where representations are balanced.
        cells_per_move: Cells of a history over which the encoder's weights stay the same.
    """

    embedding: Perceptron
    encoder_field: VectorField
    encoder_law: WeightLaw | FixedWeights
    decoder_field: VectorField
    decoder_law: WeightLaw | FixedWeights
    outcome_head: OutcomeHead
    intensity_head: IntensityHead | None = None
    treatment_head: TreatmentHead | None = None
    cells_per_move: int = eqx.field(static=True, default=1)

    def draw_weights(
        self,
        keys: Key[Array, " draws"],
        durations: Float[Array, " steps"],
        plan_durations: Float[Array, " plan_steps"],
        increments: Increments = "gaussian",
    ) -> Weights:
        """Draws of everything that is random, for all patients."""
        encoder_keys, decoder_keys = jax.vmap(jax.random.split, out_axes=1)(keys)
        encoder, encoder_kl = weight_paths(self.encoder_law, encoder_keys, durations, increments, self.cells_per_move)
        decoder, decoder_kl = weight_paths(self.decoder_law, decoder_keys, plan_durations, increments)
        return Weights(encoder, decoder, encoder_kl + decoder_kl)

    def initial_kl(self) -> Float[Array, ""]:
        """KL of both laws at t = 0."""
        return self.encoder_law.initial_kl() + self.decoder_law.initial_kl()

    def hidden_at_cuts(
        self, inputs: Inputs, weights: Weights, durations: Float[Array, " steps"]
    ) -> Float[Array, "patients cuts hidden"]:
        """Z at each cut, for the patients who share a draw."""
        clocks = jnp.cumsum(durations) - durations
        start = jnp.concatenate(
            [jax.vmap(self.embedding)(inputs.first), inputs.first[:, : self.encoder_field.carried]], axis=1
        )
        return solve(
            self.encoder_field, weights.encoder, start, clocks, inputs.steps, inputs.cut_step, inputs.cut_increments
        )

    def hidden_at_horizons(
        self,
        inputs: Inputs,
        weights: Weights,
        durations: Float[Array, " steps"],
        plan_durations: Float[Array, " plan_steps"],
    ) -> Float[Array, "patients cuts horizons hidden"]:
        """Z̃ at each horizon after each cut, for the patients who share a draw.

        Args:
            inputs: Of the patients.
            weights: Of the draw.
            durations: Of the encoder's steps on its clock.
            plan_durations: Of the decoder's steps on its clock.
        """
        clocks = jnp.cumsum(plan_durations) - plan_durations
        at_cuts = self.hidden_at_cuts(inputs, weights, durations)
        patients, cuts, _ = at_cuts.shape
        plan_starts = jnp.zeros((patients, cuts, self.decoder_field.carried - self.encoder_field.carried))
        starts, steps, horizon_step, horizon_increments = (
            rows.reshape(patients * cuts, *rows.shape[2:])  # each cut has a plan of its own
            for rows in (
                jnp.concatenate([at_cuts, plan_starts], axis=2),
                inputs.plan_steps,
                inputs.horizon_step,
                inputs.horizon_increments,
            )
        )
        ends = solve(self.decoder_field, weights.decoder, starts, clocks, steps, horizon_step, horizon_increments)
        return ends.reshape(patients, cuts, *ends.shape[1:])

    @property
    def has_fixed_weights(self) -> bool:
        """Whether all draws have the same hidden states."""
        return isinstance(self.encoder_law, FixedWeights)

    def outcomes(
        self,
        inputs: Inputs,
        keys: Key[Array, " draws"],
        durations: Float[Array, " steps"],
        plan_durations: Float[Array, " plan_steps"],
        *,
        increments: Increments = "gaussian",
        dropout_keys: Key[Array, "draws patients"] | None = None,
    ) -> tuple[Outcome, Sides, Float[Array, ""]]:
        """Centre and stds of the change of each outcome, for many patients and draws, and the mean KL of the paths.

        Args:
            inputs: Of many patients.
            keys: One per draw.
            durations: Of the encoder's steps on its clock.
            plan_durations: Of the decoder's steps on its clock.
            increments: Of the Brownian motion.
            dropout_keys: One per draw and patient, in training; default: the draw's, for all patients alike.
        """
        hidden, path_kl = self.hidden_and_kl(inputs, keys, durations, plan_durations, increments)
        mean, std = self.read_out(hidden, inputs, keys, dropout_keys)
        return mean, std, path_kl

    def hidden_and_kl(
        self,
        inputs: Inputs,
        keys: Key[Array, " draws"],
        durations: Float[Array, " steps"],
        plan_durations: Float[Array, " plan_steps"],
        increments: Increments = "gaussian",
    ) -> tuple[Float[Array, "draws patients cuts horizons hidden"], Float[Array, ""]]:
        """Z̃ for many patients and draws, and the mean KL of the paths."""
        path_keys = keys[:1] if self.has_fixed_weights else keys
        weights = self.draw_weights(path_keys, durations, plan_durations, increments)
        hidden = self.hidden_of(inputs, weights, durations, plan_durations)
        if self.has_fixed_weights:
            hidden = jnp.broadcast_to(hidden, (len(keys), *hidden.shape[1:]))
        return hidden, jnp.mean(weights.path_kl)

    def hidden_of(
        self,
        inputs: Inputs,
        weights: Weights,
        durations: Float[Array, " steps"],
        plan_durations: Float[Array, " plan_steps"],
    ) -> Float[Array, "draws patients cuts horizons hidden"]:
        """Z̃ for many patients, each under every draw."""
        axes = (None, weights.draw_axes, None, None)
        return jax.vmap(self.hidden_at_horizons, in_axes=axes)(inputs, weights, durations, plan_durations)

    def read_out(
        self,
        hidden: Float[Array, "draws patients cuts horizons hidden"],
        inputs: Inputs,
        keys: Key[Array, " draws"],
        dropout_keys: Key[Array, "draws patients"] | None = None,
    ) -> tuple[Outcome, Sides]:
        """The head at every state; what it drops is the draw's, or in training the patient's own."""

        def at_states(states, key):
            flat = states.reshape(-1, states.shape[-1])
            both = jax.vmap(lambda state: self.outcome_head(state, key=key))(flat)
            centre, std = (part.reshape(*states.shape[:-1], *part.shape[1:]) for part in both)
            return centre, std

        if inputs.hints is not None:
            hints = jnp.broadcast_to(inputs.hints, (*hidden.shape[:-1], inputs.hints.shape[-1]))
            hidden = jnp.concatenate([hidden, hints], axis=-1)
        of_draws = jax.vmap(at_states) if dropout_keys is None else jax.vmap(jax.vmap(at_states))
        centre, std = of_draws(hidden, keys if dropout_keys is None else dropout_keys)
        return centre, std * self.outcome_head.noise_factor(inputs.times)[..., None]


@eqx.filter_jit  # one compilation instead of one for each of many small operations
def build_network(
    sizes: NetworkSizes,
    start: PosteriorStart | None,
    *,
    key: PRNGKeyArray,
    carry: Float[Array, "carried channels"] | None = None,
    plan_carry: Float[Array, "plan_carried plan_channels"] | None = None,
) -> NeuralCDE:
    """A network before training; without a `PosteriorStart` its weights are fixed parameters."""
    embedding_key, encoder_key, decoder_key, head_key = jax.random.split(key, 4)
    intensity_key = jax.random.fold_in(head_key, 1)
    encoder_field = VectorField(sizes.hidden, sizes.channels, sizes.field_widths, sizes.activation, carry)
    decoder_field = VectorField(sizes.hidden, sizes.plan_channels, sizes.field_widths, sizes.activation, plan_carry)
    return NeuralCDE(
        Perceptron(sizes.known, sizes.hidden, sizes.embedding_widths, key=embedding_key),
        encoder_field,
        _law(encoder_field, start, sizes.start_scale, key=encoder_key),
        decoder_field,
        _law(decoder_field, start, sizes.start_scale, key=decoder_key),
        OutcomeHead(
            sizes.hidden + decoder_field.carried + sizes.hints,
            sizes.outcomes,
            sizes.head_widths,
            sizes.dropout,
            skewed=sizes.skewed,
            key=head_key,
        ),
        IntensityHead(sizes.hidden + decoder_field.carried, sizes.head_widths, key=intensity_key)
        if sizes.sees_visits
        else None,
        TreatmentHead(sizes.hidden, sizes.guessed, key=jax.random.fold_in(head_key, 2)) if sizes.guessed else None,
        sizes.cells_per_move,
    )


def _law(
    field: VectorField, start: PosteriorStart | None, start_scale: float, *, key: PRNGKeyArray
) -> WeightLaw | FixedWeights:
    mean_key, drift_key = jax.random.split(key)
    mean = start_scale * field.usual_start(mean_key)
    if start is None:
        return FixedWeights(mean)
    prior_std = start.prior_std * field.fan_in_std()
    return WeightLaw(
        mean,
        jnp.log(start.start_std * prior_std) if start.initial_law == "learned" else None,
        prior_std,
        Drift(field.fan_in_std(), start.drift_widths, key=drift_key),
        jnp.asarray(start.diffusion, dtype=jnp.float32),
        jnp.asarray(start.prior_rate, dtype=jnp.float32),
    )
