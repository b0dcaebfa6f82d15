"""What a network receives of patients: paths on the grid, cuts, plans and targets, as arrays of one shape."""

from __future__ import annotations

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float, Int

from counterpath.paths.tabulation import HistoryArrays, PlanArrays


class Inputs(eqx.Module):
    """Windows of patients, cuts in them, and what is given after each cut.

    Attributes:
        first: What is known where the window starts: the path's first value and static covariates.
        steps: Increments of the history's path.
        cut_step: The step that holds each cut.
        cut_increments: From the start of that step up to the cut.
        plan_steps: Increments of the plan's path after each cut.
        horizon_step: The step of the plan that holds each horizon.
        horizon_increments: From the start of that step up to the horizon.
        hints: For the head, at each horizon: where linear response leads, and how sure that is; None for none.
    """

    first: Float[Array, "*patients known"]
    steps: Float[Array, "*patients steps channels"]
    cut_step: Int[Array, "*patients cuts"]
    cut_increments: Float[Array, "*patients cuts channels"]
    plan_steps: Float[Array, "*patients cuts plan_steps plan_channels"]
    horizon_step: Int[Array, "*patients cuts horizons"]
    horizon_increments: Float[Array, "*patients cuts horizons plan_channels"]
    hints: Float[Array, "*patients cuts horizons hints"] | None = None

    @property
    def times(self) -> Float[Array, "*patients cuts horizons 2"]:
        """Known before each cut, and from there to each horizon, as the paths have them: their first channels."""

        def within(steps, step, increments):
            before = jnp.take_along_axis(jnp.cumsum(steps[..., 0], axis=-1) - steps[..., 0], step, axis=-1)
            return before + increments[..., 0]

        known = within(self.steps, self.cut_step, self.cut_increments)
        ahead = within(self.plan_steps, self.horizon_step, self.horizon_increments)
        return jnp.stack([jnp.broadcast_to(known[..., None], ahead.shape), ahead], axis=-1)

    @classmethod
    def of(cls, history: HistoryArrays, plan: PlanArrays, hints: np.ndarray | None) -> Inputs:
        """In single precision; the plans are those of all cuts of the first patient, then of the second, and so on."""
        patients, cuts = history.cut_step.shape

        def single(column: np.ndarray) -> Array:
            # `jnp.asarray` would compile a program for every shape.
            return jax.device_put(column.astype(np.float32 if column.dtype == np.float64 else np.int32))

        def by_patient(column: np.ndarray) -> Array:
            return single(column.reshape(patients, cuts, *column.shape[1:]))

        return cls(
            single(history.first),
            single(history.steps),
            single(history.cut_step),
            single(history.cut_increments),
            by_patient(plan.steps),
            by_patient(plan.horizon_step),
            by_patient(plan.horizon_increments),
            None if hints is None else single(hints),
        )


class Visits(eqx.Module):
    """At which horizons patients were seen.

    Attributes:
        came: How often each horizon counts as a visit.
        exposure: How often a time of a grid counts as one without a visit, or the time that a horizon stands for.
    """

    came: Float[Array, "*patients cuts horizons"]
    exposure: Float[Array, "*patients cuts horizons"]


class Decisions(eqx.Module):
    """What was given at each horizon, or soon after.

    Attributes:
        given: 1 for each treatment that was.
        shares: How much each horizon counts.
    """

    given: Float[Array, "*patients cuts horizons treatments"]
    shares: Float[Array, "*patients cuts horizons"]


class Targets(eqx.Module):
    """Outcomes after each cut.

    Attributes:
        changes: From where each outcome is predicted from, in units of the usual change.
        shares: How much each counts: 1 divided among the cuts that predict it, 0 where nothing was recorded.
        cuts: How many of the cuts of each patient are real.
        visits: At the horizons; None where they are not looked at.
        units: What one change is on the model's scale; None where that does not matter.
        unsure: Share of the noise's variance that is not known of where the change starts; None likewise.
        decisions: At the horizons; None where representations are not balanced.
    """

    changes: Float[Array, "*patients cuts horizons outcomes"]
    shares: Float[Array, "*patients cuts horizons outcomes"]
    cuts: Int[Array, "*patients"]
    visits: Visits | None = None
    units: Float[Array, "*patients cuts horizons outcomes"] | None = None
    unsure: Float[Array, "*patients cuts horizons outcomes"] | None = None
    decisions: Decisions | None = None
