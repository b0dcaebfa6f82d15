"""The treatment effect neural CDE (Seedat et al. 2022) with Monte Carlo dropout, and a version that knows its noise."""

from __future__ import annotations

from typing import Literal

from counterpath.cohort.transforms import TransformName
from counterpath.dynamics.vector_field import Activation
from counterpath.estimators.architecture import Architecture
from counterpath.estimators.neural import NeuralEstimator
from counterpath.paths import Interpolation
from counterpath.training import TrainingSettings
from counterpath.training.cut_times import Cuts


class TECDE(NeuralEstimator):
    """A neural CDE with fixed weights whose head drops values at random, in training and in prediction.

    As published it is trained on the squared error and its intervals hold model uncertainty alone;
    `outcome_noise=True` learns a normal law of the outcome, which is the fair comparison. It gets the same inputs,
    paths, cuts and optimiser as `BNCDE`; `TECDE.paper()` has the published sizes.
    """

    def __init__(
        self,
        max_horizon: float,
        *,
        outcome_noise: bool = False,
        dropout: float = 0.1,
        lookback: float | None = None,
        seed: int = 0,
        hidden: int = 16,
        field_widths: tuple[int, ...] = (64, 64),
        activation: Activation = "silu",
        embedding_widths: tuple[int, ...] = (64,),
        head_widths: tuple[int, ...] = (64,),
        start_scale: float = 0.5,
        skewed: bool = True,
        transform: TransformName = "auto",
        interpolation: Interpolation = "hold",
        plain_path: bool = False,
        corrects_last: bool = True,
        linear_response: bool = True,
        cuts: Cuts = "many",
        cells: int = 64,
        plan_cells: int = 20,
        steps: int = 2_000,
        epochs: int | None = None,
        batch_size: int = 32,
        cuts_per_step: int = 16,
        draws: int = 2,
        learning_rate: float = 5e-3,
        readout_learning_rate: float = 5e-3,
        schedule: Literal["linear", "cosine", "constant"] = "linear",
        optimiser: Literal["layered", "plain"] = "layered",
        patience: int | None = None,
        fits_noise: bool = True,
        informative_sampling: bool = False,
        balancing: float = 0.0,
        validation_share: float = 0.1,
    ):
        """As for `BNCDE`, without the laws of the weights.

        Args:
            max_horizon: The longest horizon that may be asked for.
            outcome_noise: Learn a normal law of the outcome instead of its mean alone.
            dropout: Probability with which a value of the head is left out.
            lookback: The longest history that is followed step by step.
            seed: Of everything random.
            hidden: Size of the hidden state.
            field_widths: Hidden layers of the vector fields.
            activation: Of the vector fields.
            embedding_widths: Hidden layers of the embedding.
            head_widths: Hidden layers of the head.
            start_scale: Size of the first weights of the vector fields, in units of 1/√fan-in.
            skewed: Noise has a std of its own below and above its centre.
            transform: Of the outcomes.
            interpolation: Of the history.
            plain_path: Only time, values and treatments drive the encoder, with steps of their own size.
            corrects_last: Predict the change since the outcome was last seen.
            linear_response: Predict it as a change from where the patient's own linear response leads: to time, and to
                each treatment, as learned from the record.
            cuts: `many` per trajectory, or one before the `last` outcome.
            cells: The most steps of a history.
            plan_cells: The most steps of a plan.
            steps: Of training; fewer where patients turn out to be too few for so many.
            epochs: Instead of `steps`.
            batch_size: Patients per step.
            cuts_per_step: Cuts of each patient per step.
            draws: Of the dropout per step.
            learning_rate: Of the vector fields.
            readout_learning_rate: Of embedding and head.
            schedule: `linear`, `cosine` or `constant`.
            optimiser: `layered` or `plain`.
            patience: Validation scores without improvement after which training stops.
            fits_noise: After training, choose the size of the noise on validation patients.
            informative_sampling: Learn how often patients are seen, and let each outcome count by the inverse.
            balancing: α of balanced representations: hidden states learn to tell nothing of the treatments to come, at
                this weight; the paper has 0.01 where it uses them. It lowers variance, not confounding.
            validation_share: Share of patients held out where `fit` gets no validation cohort.
        """
        architecture = Architecture(
            lookback=lookback,
            cells=cells,
            plan_cells=plan_cells,
            interpolation=interpolation,
            transform=transform,
            plain_path=plain_path,
            corrects_last=corrects_last,
            linear_response=linear_response,
            cuts=cuts,
            hidden=hidden,
            field_widths=tuple(field_widths),
            activation=activation,
            embedding_widths=tuple(embedding_widths),
            head_widths=tuple(head_widths),
            dropout=dropout,
            start_scale=start_scale,
            posterior=None,
            skewed=skewed,
            informative_sampling=informative_sampling,
        )
        training = TrainingSettings(
            steps=steps,
            epochs=epochs,
            batch_size=batch_size,
            cuts_per_step=cuts_per_step,
            draws=draws,
            learning_rate=learning_rate,
            drift_learning_rate=learning_rate,
            readout_learning_rate=readout_learning_rate,
            schedule=schedule,
            optimiser=optimiser,
            patience=patience,
            fits_noise=fits_noise,
            outcome_noise=outcome_noise,
            balancing=balancing,
        )
        super().__init__(
            max_horizon, architecture, training, seed=seed, posteriors=1, validation_share=validation_share
        )
        self.outcome_noise = outcome_noise

    @classmethod
    def paper(cls, max_horizon: float, *, outcome_noise: bool = False, seed: int = 0, epochs: int = 500) -> TECDE:
        """The published configuration, for one horizon."""
        return cls(
            max_horizon,
            outcome_noise=outcome_noise,
            seed=seed,
            hidden=8,
            field_widths=(128, 128),
            activation="relu",
            embedding_widths=(),
            head_widths=(),
            start_scale=1.0,
            transform="standard",
            interpolation="hermite",
            plain_path=True,
            corrects_last=False,
            linear_response=False,
            cuts="last",
            epochs=epochs,
            batch_size=64,
            cuts_per_step=1,
            draws=10,
            learning_rate=1e-4,
            readout_learning_rate=1e-3,
            schedule="constant",
            optimiser="plain",
            skewed=False,
            patience=10,
            fits_noise=False,
        )
