"""The Bayesian neural controlled differential equation (Hess et al., ICLR 2024)."""

from __future__ import annotations

from typing import Any, Literal

from counterpath.cohort.transforms import TransformName
from counterpath.dynamics import Increments
from counterpath.dynamics.vector_field import Activation
from counterpath.estimators.architecture import Architecture
from counterpath.estimators.neural import NeuralEstimator
from counterpath.models import Likelihood
from counterpath.models.sizes import PosteriorStart
from counterpath.paths import Interpolation
from counterpath.training import TrainingSettings
from counterpath.training.cut_times import Cuts


class BNCDE(NeuralEstimator):
    """Potential outcomes under any plan, at any time up to `max_horizon`, with their full uncertainty.

    A neural CDE reads the irregular history, a second one follows the plan, and their weights are random: stochastic
    processes whose posterior is learned. `BNCDE()` is for a laptop, `BNCDE.large()` for thousands of patients and a
    GPU, and `BNCDE.paper()` is the published configuration.
    """

    def __init__(
        self,
        max_horizon: float,
        *,
        lookback: float | None = None,
        seed: int = 0,
        posteriors: int = 4,
        hidden: int = 16,
        field_widths: tuple[int, ...] = (64, 64),
        activation: Activation = "silu",
        embedding_widths: tuple[int, ...] = (64,),
        head_widths: tuple[int, ...] = (64,),
        drift_widths: tuple[int, ...] = (4,),
        initial_law: Literal["learned", "paper"] = "learned",
        prior_std: float = 1.0,
        prior_rate: float = 0.1,
        diffusion: float = 0.003,
        start_scale: float = 0.5,
        start_std: float = 0.03,
        likelihood: Likelihood = "normal",
        skewed: bool = True,
        temperature: float = 0.1,
        transform: TransformName = "auto",
        interpolation: Interpolation = "hold",
        plain_path: bool = False,
        corrects_last: bool = True,
        linear_response: bool = True,
        cuts: Cuts = "many",
        cells: int = 64,
        plan_cells: int = 20,
        cells_per_move: int = 4,
        steps: int = 2_000,
        epochs: int | None = None,
        batch_size: int = 16,
        cuts_per_step: int = 16,
        draws: int = 1,
        learning_rate: float = 5e-3,
        drift_learning_rate: float = 1e-3,
        readout_learning_rate: float = 5e-3,
        schedule: Literal["linear", "cosine", "constant"] = "linear",
        optimiser: Literal["layered", "plain"] = "layered",
        kl_ramp: float = 0.5,
        increments: Increments = "two-point",
        patience: int | None = None,
        fits_noise: bool = True,
        informative_sampling: bool = False,
        balancing: float = 0.0,
        validation_share: float = 0.1,
    ):
        """Everything but `max_horizon` has a default that was chosen on validation data.

        Args:
            max_horizon: The longest horizon that may be asked for, in the cohort's unit.
            lookback: The longest history that is followed step by step; what is older is summarised. Default: the
                longest history of the training patients.
            seed: Of everything random.
            posteriors: How many are learned, each from a start of its own, and mixed: the more, the closer and the
                more honest, for as many times the work.
            hidden: Size of the hidden state Z.
            field_widths: Hidden layers of the vector fields.
            activation: Of the vector fields: `relu`, `silu` or `tanh`.
            embedding_widths: Hidden layers from a window's first value to Z_0.
            head_widths: Hidden layers from Z̃ to the law of the outcome.
            drift_widths: Hidden layers of the drift networks.
            initial_law: Of the weights at t = 0: `learned` mean and scale against a prior, or the paper's N(ν, σ²).
            prior_std: s_0, in units of 1/√fan-in.
            prior_rate: θ of the Ornstein–Uhlenbeck prior, per clock.
            diffusion: σ.
            start_scale: Size of the first weights, in units of 1/√fan-in.
            start_std: Spread of the weights at the start of training, in units of the prior's.
            likelihood: `normal`, or `student_t` for outliers.
            skewed: Noise has a std of its own below and above its centre.
            temperature: The likelihood counts 1/temperature. Bayes' rule is 1, as in `large`; below, the KL holds back
                less, without which a laptop's few steps would not come as close.
            transform: Of the outcomes: `auto`, `log`, `robust` or `standard`.
            interpolation: Of the history: `hold`, `rectilinear`, `linear` or `hermite`.
            plain_path: Only time, values and treatments drive the encoder, with steps of their own size.
            corrects_last: Predict the change since the outcome was last seen, instead of the outcome itself.
            linear_response: Predict it as a change from where the patient's own linear response leads: to time, and to
                each treatment, as learned from the record.
            cuts: Training trajectories are cut `many` times, or once, before the `last` outcome.
            cells: The most steps of a history.
            plan_cells: The most steps of a plan.
            cells_per_move: Steps of a history over which the weights stay, since they change far more slowly than
                patients do; 1 costs two fifths more time.
            steps: Of training; fewer where patients turn out to be too few for so many.
            epochs: Instead of `steps`: passes over the patients.
            batch_size: Patients per step.
            cuts_per_step: Cuts of each patient per step.
            draws: Of the weights per step.
            learning_rate: Of the laws of the weights.
            drift_learning_rate: Of the drift networks.
            readout_learning_rate: Of embedding and head.
            schedule: After a warm-up `linear` or `cosine` down to zero; or `constant`.
            optimiser: Adam with a step for each layer of a vector field and a shorter memory, or `plain`.
            kl_ramp: Share of training over which the KL comes in: the means learn before the weights spread.
            increments: Of Brownian motion: `gaussian` or `two-point`.
            patience: Validation scores without improvement after which training stops; None: never.
            fits_noise: After training, choose the size of the noise on validation patients.
            informative_sampling: Learn how often patients are seen, and let each outcome count by the inverse.
            balancing: α of balanced representations: hidden states learn to tell nothing of the treatments to come, at
                this weight; the paper has 0.01 where it uses them. It lowers variance, not confounding.
            validation_share: Share of patients held out where `fit` gets no validation cohort.
        """
        posterior = PosteriorStart(initial_law, start_std, prior_std, prior_rate, diffusion, tuple(drift_widths))
        architecture = Architecture(
            lookback=lookback,
            cells=cells,
            plan_cells=plan_cells,
            cells_per_move=cells_per_move,
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
            dropout=0.0,
            start_scale=start_scale,
            posterior=posterior,
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
            drift_learning_rate=drift_learning_rate,
            readout_learning_rate=readout_learning_rate,
            schedule=schedule,
            optimiser=optimiser,
            kl_ramp=kl_ramp,
            patience=patience,
            fits_noise=fits_noise,
            temperature=temperature,
            balancing=balancing,
            likelihood=likelihood,
            increments=increments,
        )
        super().__init__(
            max_horizon, architecture, training, seed=seed, posteriors=posteriors, validation_share=validation_share
        )

    @classmethod
    def large(cls, max_horizon: float, *, seed: int = 0, steps: int = 3_000, **options: Any) -> BNCDE:
        """For thousands of patients and a GPU: wider fields, larger batches, more steps.

        Args:
            max_horizon: The longest horizon that may be asked for.
            seed: Of everything random.
            steps: Of training; fewer where patients turn out to be too few for so many.
            **options: As for `BNCDE`.
        """
        larger = {"field_widths": (128, 128), "batch_size": 128, "temperature": 1.0}
        return cls(max_horizon, seed=seed, steps=steps, **(larger | options))

    @classmethod
    def paper(
        cls,
        max_horizon: float,
        *,
        seed: int = 0,
        diffusion: float = 0.001,
        epochs: int = 500,
        cells_per_move: int = 4,
    ) -> BNCDE:
        """The published configuration: one horizon, one cut per patient, small step sizes, standardised outcome.

        Where the paper contradicts itself the mathematics decides; see docs/explanation/deviations.md.

        Args:
            max_horizon: The one horizon that is learned.
            seed: Of everything random.
            diffusion: σ.
            epochs: At most; training stops after ten without improvement.
            cells_per_move: As for `BNCDE`.
        """
        return cls(
            max_horizon,
            seed=seed,
            posteriors=1,
            hidden=8,
            field_widths=(128, 128),
            activation="relu",
            embedding_widths=(),
            head_widths=(),
            drift_widths=(16, 64, 64, 64, 16),
            initial_law="paper",
            cells_per_move=cells_per_move,
            prior_rate=1.0,
            diffusion=diffusion,
            start_scale=1.0,
            temperature=1.0,
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
            increments="two-point",
            learning_rate=1e-4,
            drift_learning_rate=1e-4,
            readout_learning_rate=1e-3,
            schedule="constant",
            optimiser="plain",
            skewed=False,
            kl_ramp=0.0,
            patience=10,
            fits_noise=False,
        )
