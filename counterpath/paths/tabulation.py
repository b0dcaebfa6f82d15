"""How a cohort becomes arrays: grids, scales and interpolation, which belong to a model and stay with it."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from jaxtyping import Float64, Int64

from counterpath.cohort import Cohort, Grid, Scaler, TreatmentEvents
from counterpath.cohort.grid import window_starts
from counterpath.cohort.schema import Schema
from counterpath.paths.channels import ANSWERS, LINEAR, Channel, Role, history_channels, plan_channels
from counterpath.paths.control_path import ControlPath, Interpolation, PathError, control_path
from counterpath.paths.hold import HoldPath
from counterpath.paths.increments import PathIncrements, partial_steps, path_increments
from counterpath.paths.linear_response import LinearResponse
from counterpath.paths.plan_path import PlanPath
from counterpath.paths.static_columns import static_columns, static_names
from counterpath.paths.treatment_channels import TreatmentPath


@dataclass(frozen=True, eq=False)
class HistoryArrays:
    """Windows of patients, and cuts in them.

    Attributes:
        first: What is known where the window starts.
        steps: Increments of the path.
        cut_step: The step that holds each cut.
        cut_increments: From the start of that step up to the cut.
    """

    first: Float64[np.ndarray, "patients known"]
    steps: Float64[np.ndarray, "patients steps channels"]
    cut_step: Int64[np.ndarray, "patients cuts"]
    cut_increments: Float64[np.ndarray, "patients cuts channels"]


@dataclass(frozen=True, eq=False)
class PlanArrays:
    """What is given after each of many cuts, and horizons.

    Attributes:
        steps: Increments of the plan's path.
        horizon_step: The step that holds each horizon.
        horizon_increments: From the start of that step up to the horizon.
    """

    steps: Float64[np.ndarray, "cuts plan_steps plan_channels"]
    horizon_step: Int64[np.ndarray, "cuts horizons"]
    horizon_increments: Float64[np.ndarray, "cuts horizons plan_channels"]


@dataclass(frozen=True, eq=False)
class PredictedFrom:
    """What a network corrects.

    Attributes:
        start: 0, the training mean; the last outcome; or where linear response leads from there.
        units: What counts as one.
        hints: For the network, about both; None without linear response.
        unsure: With standard normal numbers, how `start` would differ had the patient's records had other noise; as a
            share of what lies between it and the outcome. None without linear response.
    """

    start: Float64[np.ndarray, "patients cuts horizons outcomes"]
    units: Float64[np.ndarray, "patients cuts horizons outcomes"]
    hints: Float64[np.ndarray, "patients cuts horizons hints"] | None
    unsure: Float64[np.ndarray, "patients cuts horizons outcomes coefficients"] | None


@dataclass(frozen=True, eq=False)
class Tabulation:
    """The way from records to arrays.

    Attributes:
        schema: Of the training patients.
        scaler: Of their values.
        grid: Cells of the history.
        plan_grid: Cells of the plan, up to the longest horizon.
        interpolation: Of the history's path.
        plain_path: Whether the path holds only time, values and treatments, and its steps keep their own size, as in
            the paper; otherwise slopes, counts and times since, too, and each channel's steps are scaled alike.
        corrects_last: Whether outcomes are predicted as a change since they were last seen.
        response: What is usual for linear responses, which then lead on from the last outcome; None for none.
        first_scale: The usual size of each value known at a window's start.
        step_scale: The usual size of an increment of each channel.
        plan_step_scale: The same for the plan's channels.
        plan_level_scale: The usual size of each of the plan's channels.
        change_scale: What an outcome usually differs by from where it is predicted from, on the model's scale.
    """

    schema: Schema
    scaler: Scaler
    grid: Grid
    plan_grid: Grid
    interpolation: Interpolation
    plain_path: bool
    corrects_last: bool
    response: LinearResponse | None
    first_scale: Float64[np.ndarray, " known"]
    step_scale: Float64[np.ndarray, " channels"]
    plan_step_scale: Float64[np.ndarray, " plan_channels"]
    plan_level_scale: Float64[np.ndarray, " plan_channels"]
    change_scale: Float64[np.ndarray, " outcomes"]

    @classmethod
    def unscaled(
        cls,
        schema: Schema,
        scaler: Scaler,
        grid: Grid,
        plan_grid: Grid,
        interpolation: Interpolation,
        *,
        plain_path: bool,
        corrects_last: bool,
        response: LinearResponse | None = None,
    ) -> Tabulation:
        """Before the sizes of increments and changes are known."""
        channels = len(_kept(history_channels(schema), plain_path, response is not None))
        known = channels + len(static_names(schema))
        plan = len(_kept(plan_channels(schema), plain_path, response is not None))
        ones = (known, channels, plan, plan, len(schema.outcomes))
        sizes = (np.ones(number) for number in ones)
        return cls(schema, scaler, grid, plan_grid, interpolation, plain_path, corrects_last, response, *sizes)

    @property
    def max_horizon(self) -> float:
        """The longest horizon."""
        return self.plan_grid.lookback

    @property
    def parts(self) -> int:
        """Steps per cell: two where time moves before values jump."""
        return 2 if self.interpolation == "rectilinear" else 1

    def carried_units(self) -> tuple[np.ndarray, np.ndarray]:
        """Steps of the path, and of the plan's, in units of what is known: rows of the vector fields that carry both.

        The state of the encoder carries what was known at the window's start, the path's values kept up to date; that
        of the decoder, too, and what has been given of the plan.
        """
        known, channels = len(self.first_scale), len(self.step_scale)
        carry = np.zeros((known, channels))
        carry[:channels] = np.diag(self.step_scale / self.first_scale[:channels])
        plan_carry = np.concatenate(
            [np.zeros((known, len(self.plan_step_scale))), np.diag(self.plan_step_scale / self.plan_level_scale)]
        )
        return carry.astype(np.float32), plan_carry.astype(np.float32)

    @property
    def durations(self) -> Float64[np.ndarray, " steps"]:
        """Of the history's steps, on a clock from 0 to 1."""
        each = np.diff(self.grid.edges) / self.grid.lookback
        return each if self.parts == 1 else np.stack([each, np.zeros_like(each)], axis=1).ravel()

    @property
    def plan_durations(self) -> Float64[np.ndarray, " plan_steps"]:
        """Of the plan's steps, on a clock from 0 to 1."""
        return np.diff(self.plan_grid.edges) / self.plan_grid.lookback

    def windows(self, cohort: Cohort, cuts: Float64[np.ndarray, "patients cuts"]) -> HistoryArrays:
        """Many cuts of each patient in one window, for the path that is causal at every time.

        Args:
            cohort: Whole trajectories, or histories.
            cuts: Times at most a lookback after each patient's first record.
        """
        if self.interpolation != "hold":
            raise PathError(f"Only `hold` serves many cuts with one window; {self.interpolation!r} needs one for each.")
        start = window_starts(cohort.records, np.max(cuts, axis=1), self.grid.lookback)
        path, increments = self._path(cohort, start, np.max(cuts, axis=1))
        last = partial_steps(path, self.grid, start=start, cuts=cuts)
        return HistoryArrays(
            self._first(cohort, increments),
            increments.steps[..., self._kept] / self.step_scale,
            last.cell,
            last.steps[:, :, 0, self._kept] / self.step_scale,
        )

    def histories(self, cohort: Cohort) -> HistoryArrays:
        """Each patient cut at the end of the history, in a window of their own. Serves every interpolation."""
        end = cohort.history_end
        start = window_starts(cohort.records, end, self.grid.lookback)
        _, increments = self._path(cohort, start, end)
        steps = increments.steps[..., self._kept] / self.step_scale
        # What follows the end is zero, so the state after the last step is the state at the cut.
        last = np.full((len(cohort), 1), steps.shape[1] - 1)
        return HistoryArrays(self._first(cohort, increments), steps, last, steps[:, -1:])

    def plans(self, events: TreatmentEvents, horizons: Float64[np.ndarray, "cuts horizons"]) -> PlanArrays:
        """What is given, in elapsed time, and where the horizons lie."""
        zero = np.zeros(len(horizons))
        path = PlanPath(TreatmentPath(self.schema, self.scaler, events, self.plan_grid, zero))
        increments = path_increments(path, self.plan_grid, start=zero, end=np.full(len(zero), self.max_horizon))
        last = partial_steps(path, self.plan_grid, start=zero, cuts=horizons)
        return PlanArrays(
            increments.steps[..., self._kept_plan] / self.plan_step_scale,
            last.cell,
            last.steps[:, :, 0, self._kept_plan] / self.plan_step_scale,
        )

    def predicted_from(
        self,
        cohort: Cohort,
        cuts: Float64[np.ndarray, "patients cuts"],
        events: TreatmentEvents,
        elapsed: Float64[np.ndarray, "patients cuts horizons"],
    ) -> PredictedFrom:
        """What the network corrects at each horizon.

        Args:
            cohort: Whole trajectories, or histories.
            cuts: Where they are cut.
            events: What was given up to the cut, and what is given from then on.
            elapsed: Times after each cut.
        """
        outcomes = range(len(self.change_scale))
        if not self.corrects_last:
            nothing = np.zeros((*elapsed.shape, len(outcomes)))
            return PredictedFrom(nothing, nothing + 1.0, None, None)
        held = HoldPath.of(cohort, self.scaler, self.grid, cuts[:, 0], self.response)
        led = [held.led_to(j, cuts, events, elapsed) for j in outcomes]
        start, units = (np.stack(parts, axis=-1) for parts in ([own.there for own in led], [own.off for own in led]))
        hints, unsure = None, None
        if self.response is not None:
            hints = np.concatenate([self.response.hints(j, led[j]) for j in outcomes], axis=-1)
            unsure = np.stack([own.unsure for own in led], axis=-2)
        return PredictedFrom(start, units * self.change_scale, hints, unsure)

    @property
    def hints(self) -> int:
        """How many there are."""
        return 0 if self.response is None else 2 * len(self.change_scale)

    @property
    def _kept(self) -> list[int]:
        return _kept(history_channels(self.schema), self.plain_path, self.response is not None)

    @property
    def _kept_plan(self) -> list[int]:
        return _kept(plan_channels(self.schema), self.plain_path, self.response is not None)

    def _path(self, cohort: Cohort, start: np.ndarray, end: np.ndarray) -> tuple[ControlPath, PathIncrements]:
        path = control_path(
            cohort,
            self.scaler,
            self.grid,
            window_start=start,
            interpolation=self.interpolation,
            response=self.response,
        )
        return path, path_increments(path, self.grid, start=start, end=end)

    def _first(self, cohort: Cohort, increments: PathIncrements) -> np.ndarray:
        return (
            np.concatenate([increments.initial[:, self._kept], static_columns(cohort, self.scaler)], axis=1)
            / self.first_scale
        )


def _kept(channels: tuple[Channel, ...], plain_path: bool, linear: bool) -> list[int]:
    """Positions of the channels that a model uses."""
    made: tuple[Role, ...] = ("slope", "since", "unseen", "timing", *ANSWERS, "count") if plain_path else ()
    left_out = made if linear else (*made, *LINEAR)
    return [i for i, channel in enumerate(channels) if channel.role not in left_out]
