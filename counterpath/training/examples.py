"""Training patients as arrays: windows, cuts in them, and the outcomes that followed each cut."""

from __future__ import annotations

import os
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, fields, replace
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float, Float64, Int64

from counterpath.cohort import Cohort, CohortError
from counterpath.cohort.cuts import events_from
from counterpath.cohort.grid import choose_grid, grid_through, window_starts
from counterpath.cohort.scaling import Scaler
from counterpath.models import Inputs, Targets
from counterpath.models.inputs import Decisions, Visits
from counterpath.paths import Interpolation
from counterpath.paths.linear_response import fit_linear_response
from counterpath.paths.tabulation import HistoryArrays, PlanArrays, PredictedFrom, Tabulation
from counterpath.training.cut_times import ROUNDING, Cuts, CutTimes, candidate_cuts
from counterpath.training.decisions import decisions, with_cuts_themselves
from counterpath.training.usual_sizes import usual_change, usual_level, usual_size
from counterpath.training.visits import with_cuts_for_visits, with_visits

PATIENTS_AT_ONCE = 256
SIZED_FROM = 2_000  # patients say well enough what the usual sizes are


@dataclass(frozen=True, eq=False)
class Examples:
    """Everything that training reads, on the device.

    Attributes:
        inputs: Of all patients and all their candidate cuts.
        targets: The outcomes that followed.
        outcomes: Number of outcomes that are predicted from at least one cut.
    """

    inputs: Inputs
    targets: Targets
    outcomes: Float[Array, "*members"]

    @property
    def patients(self) -> int:
        """Number of rows to draw batches from."""
        return int(self.targets.cuts.shape[-1])


def stack_padded(parts: list[Any]) -> Any:
    """The same arrays of several cohorts, with a leading axis; shorter ones are filled with zeros.

    A step with no increment and no duration changes nothing, and a target without a share does not count.
    """

    def stacked(*leaves):
        shape = np.max([leaf.shape for leaf in leaves], axis=0)
        fill = [[(0, int(wide - own)) for wide, own in zip(shape, leaf.shape, strict=True)] for leaf in leaves]
        return jnp.stack([jnp.pad(leaf, pad) for leaf, pad in zip(leaves, fill, strict=True)])

    return jax.tree.map(stacked, *parts)


def stack_examples(parts: list[Examples]) -> Examples:
    """Examples of several cohorts of equal size, with a leading axis."""
    if len({part.patients for part in parts}) > 1:
        raise CohortError("Cohorts that are trained on at once must have equally many patients (or windows).")
    inputs, targets = stack_padded([(part.inputs, part.targets) for part in parts])
    return Examples(inputs, targets, jnp.stack([part.outcomes for part in parts]))


def fit_tabulation(
    train: Cohort,
    scaler: Scaler,
    *,
    max_horizon: float,
    lookback: float | None,
    cells: int,
    plan_cells: int,
    interpolation: Interpolation,
    plain_path: bool,
    corrects_last: bool,
    linear_response: bool,
    cuts: Cuts,
    rng: np.random.Generator,
) -> Tabulation:
    """Grids and scales from the training patients.

    Args:
        train: Whole trajectories.
        scaler: Fitted on them.
        max_horizon: The longest horizon.
        lookback: The longest window; default: the longest history.
        cells: The most steps of a history.
        plan_cells: The most steps of a plan.
        interpolation: Of the history's path.
        plain_path: Time, values and treatments only, with steps of their own size.
        corrects_last: Whether outcomes are predicted as a change since they were last seen, or by themselves.
        linear_response: Whether each patient's own linear response leads on from there.
        cuts: Where trajectories are cut.
        rng: For cuts.
    """
    grid = choose_grid(train.records, train.history_end, lookback=lookback, cells=cells)
    found = candidate_cuts(train, grid, max_horizon, cuts, rng)
    if not found.present.any():
        raise CohortError(
            f"No outcome follows an earlier record within max_horizon={max_horizon:g} "
            f"{train.schema.time_unit}s, so nothing can be learnt. Choose a longer max_horizon."
        )
    plan_grid = grid_through(found.elapsed[found.present], max_horizon, plan_cells)
    plain = Tabulation.unscaled(
        train.schema,
        scaler,
        grid,
        plan_grid,
        interpolation,
        plain_path=plain_path,
        corrects_last=corrects_last,
        response=fit_linear_response(train, scaler) if linear_response else None,
    )
    if len(train) > SIZED_FROM:
        some = np.sort(rng.choice(len(train), SIZED_FROM, replace=False))
        train = train.take(some)
        found = candidate_cuts(train, grid, max_horizon, cuts, rng)
    arrays = _arrays(train, plain, found)
    return replace(
        plain,
        first_scale=usual_level(arrays.history) if not plain_path else usual_size(arrays.history.first),
        step_scale=plain.step_scale if plain_path else usual_size(arrays.history.steps),
        plan_step_scale=plain.plan_step_scale if plain_path else usual_size(arrays.plan.steps),
        plan_level_scale=plain.plan_level_scale if plain_path else usual_size(np.cumsum(arrays.plan.steps, axis=1)),
        change_scale=usual_change(arrays.changes) if corrects_last else plain.change_scale,
    )


def tabulate(
    cohort: Cohort,
    tabulation: Tabulation,
    *,
    cuts: Cuts,
    rng: np.random.Generator,
    interval: float | None = None,
    is_scored: bool = False,
    is_balanced: bool = False,
) -> Examples:
    """The cohort's windows, cuts and outcomes as arrays for the network.

    Args:
        cohort: Whole trajectories.
        tabulation: Grids and scales.
        cuts: Where trajectories are cut.
        rng: For cuts.
        interval: Of the grid on which visits lie, 0 for none; where it is given, visits are looked at too.
        is_scored: Whether how sure a model is of these patients will be looked at.
        is_balanced: Whether treatments are to be guessed.
    """
    longest = tabulation.max_horizon
    found = candidate_cuts(cohort, tabulation.grid, longest, cuts, rng, keeps_unfollowed=interval is not None)
    if interval is not None:
        place_visits = with_cuts_for_visits if cuts == "last" else with_visits
        found = place_visits(cohort, found, longest, interval, rng)
    if is_balanced:
        found = with_cuts_themselves(found)
    arrays = _arrays(cohort, tabulation, found)
    targets = Targets(
        jnp.asarray(np.nan_to_num(arrays.changes), dtype=jnp.float32),
        jnp.asarray(arrays.shares, dtype=jnp.float32),
        jnp.asarray(arrays.number, dtype=jnp.int32),
        None
        if interval is None
        else Visits(*(jnp.asarray(p, dtype=jnp.float32) for p in (arrays.came, arrays.exposure))),
        jnp.asarray(arrays.begin.units, dtype=jnp.float32) if is_scored else None,
        jnp.asarray((arrays.begin.unsure**2).sum(axis=-1), dtype=jnp.float32)
        if is_scored and arrays.begin.unsure is not None
        else None,
        _decisions(cohort, tabulation, found, float(arrays.shares.sum())) if is_balanced else None,
    )
    outcomes = jnp.asarray(arrays.shares.sum(), dtype=jnp.float32)
    return Examples(Inputs.of(arrays.history, arrays.plan, arrays.begin.hints), targets, outcomes)


def _decisions(cohort: Cohort, tabulation: Tabulation, found: CutTimes, outcomes: float) -> Decisions:
    """In rows as those of the windows: a patient with all cuts, or a single cut."""
    parts = decisions(cohort, found, tabulation.max_horizon, outcomes)
    if not _in_one_window(cohort, tabulation, found):
        parts = tuple(part[np.nonzero(found.is_real)][:, None] for part in parts)
    return Decisions(*(jnp.asarray(part, dtype=jnp.float32) for part in parts))


@dataclass(frozen=True, eq=False)
class _Arrays:
    """A row per window: of a patient with all cuts, or of a single cut."""

    history: HistoryArrays
    plan: PlanArrays
    begin: PredictedFrom
    changes: Float64[np.ndarray, "rows cuts targets outcomes"]
    shares: Float64[np.ndarray, "rows cuts targets outcomes"]
    number: Int64[np.ndarray, " rows"]
    came: Float64[np.ndarray, "rows cuts #targets"]
    exposure: Float64[np.ndarray, "rows cuts #targets"]


def _arrays(cohort: Cohort, tabulation: Tabulation, found: CutTimes) -> _Arrays:
    """In blocks of patients, so that what is made on the way stays in the cache; every core has some of them."""
    outcomes = len(cohort.schema.outcomes)
    scaled = tabulation.scaler.values(cohort.records.values)[:, :outcomes]
    later = np.where(found.present[..., None], scaled[found.row], np.nan)
    shares = _shares(found, later, cohort.records.rows)
    of_block = _one_window_each if _in_one_window(cohort, tabulation, found) else _one_window_per_cut

    def at(start: int) -> _Arrays:
        some = slice(start, start + PATIENTS_AT_ONCE)
        return of_block(cohort[some], tabulation, found.of(some), later[some], shares[some])

    with ThreadPoolExecutor(os.cpu_count()) as cores:
        blocks = list(cores.map(at, range(0, max(len(cohort), 1), PATIENTS_AT_ONCE)))
    return _joined(blocks)


def _joined(parts: list[Any]) -> Any:
    """One after the other, array by array."""
    if parts[0] is None:
        return None
    if isinstance(parts[0], np.ndarray):
        return np.concatenate(parts)
    names = [field.name for field in fields(parts[0])]
    return type(parts[0])(*(_joined([getattr(part, name) for part in parts]) for name in names))


def _one_window_each(cohort, tabulation, found, later, shares) -> _Arrays:
    times, elapsed = found.times, found.elapsed
    history = tabulation.windows(cohort, times)
    events = events_from(cohort.events.take(np.repeat(np.arange(len(cohort)), times.shape[1])), times.ravel())
    plan = tabulation.plans(events, elapsed.reshape(times.size, elapsed.shape[-1]))
    begin = tabulation.predicted_from(cohort, times, cohort.events, elapsed)
    return _Arrays(
        history, plan, begin, (later - begin.start) / begin.units, shares, found.number, found.came, found.exposure
    )


def _one_window_per_cut(cohort, tabulation, found, later, shares) -> _Arrays:
    patient, cut = np.nonzero(found.is_real)
    times, elapsed = found.times[patient, cut], found.elapsed[patient, cut]
    history = tabulation.histories(cohort.take(patient).until(times))
    plan = tabulation.plans(events_from(cohort.events.take(patient), times), elapsed)
    known = cohort.take(patient)
    begin = tabulation.predicted_from(known, times[:, None], known.events, elapsed[:, None])
    changes = (later[patient, cut][:, None] - begin.start) / begin.units
    came, exposure = (part[patient, cut][:, None] for part in (found.came, found.exposure))
    one = np.ones(len(patient), dtype=np.int64)
    return _Arrays(history, plan, begin, changes, shares[patient, cut][:, None], one, came, exposure)


def _in_one_window(cohort: Cohort, tabulation: Tabulation, found: CutTimes) -> bool:
    """Whether a single pass of the encoder serves all cuts of a patient."""
    last = np.max(found.times, axis=1)
    first = window_starts(cohort.records, last, np.inf)
    return tabulation.interpolation == "hold" and bool(
        np.all(last - first <= tabulation.grid.lookback * (1 + ROUNDING))
    )


def _shares(found: CutTimes, later: np.ndarray, rows: int) -> np.ndarray:
    """1 for each outcome, divided among the cuts that predict it; cuts beyond a patient's number count nothing."""
    counts = ~np.isnan(later) & found.is_real[:, :, None, None]
    shares = np.zeros(later.shape)
    for j in range(later.shape[-1]):
        predicted = np.bincount(found.row[counts[..., j]], minlength=rows)
        shares[..., j] = np.where(counts[..., j], 1.0 / np.maximum(predicted[found.row], 1), 0.0)
    return shares
