"""Several models of one architecture, trained at once."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from os import PathLike

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import polars as pl
from rich.console import Console

from counterpath.cohort import Cohort, CohortError, Schema
from counterpath.cohort.grid import share_in_shared_cells
from counterpath.estimators.neural import DATA_SEED, NeuralEstimator
from counterpath.models import NeuralCDE
from counterpath.paths.tabulation import Tabulation
from counterpath.predictive import Experience
from counterpath.training import Checkpoint, Clock, EpochReport, Examples, TrainingSettings, tabulate, train
from counterpath.training.compiled import keep_compiled
from counterpath.training.examples import stack_examples, stack_padded
from counterpath.training.loop import Report
from counterpath.training.progress import show_progress
from counterpath.training.spread import use_all_cores
from counterpath.training.visits import usual_visits, visit_interval


@dataclass(frozen=True)
class _Prepared:
    """A training cohort, ready for the network."""

    schema: Schema
    tabulation: Tabulation
    examples: Examples
    held: Examples
    experience: Experience
    visit_interval: float | None

    def start(self, network: NeuralCDE) -> NeuralCDE:
        """The network, told how often patients are seen on average."""
        visits = self.examples.targets.visits
        if visits is None or self.visit_interval is None:
            return network
        usual = (jnp.asarray(usual_visits(visits)), jnp.asarray(self.visit_interval))
        return eqx.tree_at(lambda n: (n.intensity_head.usual, n.intensity_head.interval), network, usual)


def fit_members(
    members: Sequence[NeuralEstimator],
    trains: Sequence[Cohort],
    validations: Sequence[Cohort | None],
    *,
    progress: bool = True,
    checkpoint: str | PathLike[str] | None = None,
    watch: Callable[[EpochReport], None] | None = None,
) -> None:
    """Train several models of one architecture at once: one per seed, on the same or on different patients.

    Args:
        members: Models that differ in their seed only. Each may have several posteriors; all train at once.
        trains: One cohort for all, or one per model.
        validations: Likewise.
        progress: Show it.
        checkpoint: A file that keeps the run.
        watch: Called after each epoch.
    """
    use_all_cores()
    keep_compiled()
    say = Console(stderr=True, quiet=not progress, highlight=False).print
    first = members[0]
    pairs = list(zip(trains, validations, strict=True))
    found: dict[tuple[int, int], _Prepared] = {}  # members of an ensemble have patients in common
    for pair in pairs:
        if _same(pair) not in found:
            found[_same(pair)] = _prepare(first, *pair, say)
    prepared = list(found.values())
    of_member = [found[_same(pair)] for pair in pairs] * (len(members) if len(pairs) == 1 else 1)
    networks = [
        own.start(member.new_network(own.tabulation, seed))
        for member, own in zip(members, of_member, strict=True)
        for seed in member.network_seeds
    ]
    if len(prepared) == 1:
        examples, held, clock = prepared[0].examples, prepared[0].held, Clock.of(prepared[0].tabulation)
    else:
        of_network = [own for own in of_member for _ in range(first.posteriors)]
        examples, held = stack_examples([p.examples for p in of_network]), stack_examples([p.held for p in of_network])
        clock = stack_padded([Clock.of(p.tabulation) for p in of_network])
    with show_progress(type(first).__name__, shown=progress) as report:
        trained = train(
            networks,
            examples,
            held,
            clock,
            settings_of_run(first, prepared[0].examples, prepared[0].tabulation),
            seeds=[seed for member in members for seed in member.network_seeds],
            mixed=first.posteriors,
            report=_both(report, watch),
            checkpoint=None if checkpoint is None else Checkpoint(checkpoint, _fingerprint(members, of_member)),
        )
    for i, (member, own) in enumerate(zip(members, of_member, strict=True)):
        member.tabulation_ = own.tabulation
        own_networks = range(i * first.posteriors, (i + 1) * first.posteriors)
        member.networks_ = tuple(trained.networks[number] for number in own_networks)
        rows = trained.history.filter(pl.col("member").is_in(own_networks))
        member.history_ = rows.with_columns(pl.col("member") - own_networks.start).rename({"member": "posterior"})
        member.schema = own.schema
        member.experience_ = own.experience
        if trained.spread is not None:
            targets = trained.scored.targets
            assert targets.units is not None
            scored = (trained.scored.inputs.horizon_step, targets.shares, targets.units)
            step, shares, units = (
                np.asarray(part if len(prepared) == 1 else part[own_networks.start]) for part in scored
            )
            spread = np.where(shares > 0, trained.spread[i] * units.astype(np.float64), np.nan)
            member.experience_ = own.experience.with_spread(own.tabulation.plan_grid.edges[step + 1], spread)


def settings_of_run(first: NeuralEstimator, examples: Examples, tabulation: Tabulation) -> TrainingSettings:
    """A step costs what the settings say, and no cut is in it twice, however many cuts a window has."""
    settings, there = first.training, examples.targets.shares.shape[-3]
    if first.architecture.informative_sampling and first.architecture.cuts == "last":
        # As many outcomes per step as without the other cut, at which visits are learned; that cut lies in the same
        # window, or has one of its own.
        twice = {"cuts_per_step": 2 * settings.cuts_per_step} if there > 1 else {"batch_size": 2 * settings.batch_size}
        settings = replace(settings, **twice)
    cells, plan_cells = tabulation.grid.cells, tabulation.plan_grid.cells
    cuts = min(settings.cuts_per_step, there)
    times = (cells + settings.cuts_per_step * plan_cells) / (cells + cuts * plan_cells)
    return replace(settings, cuts_per_step=cuts, batch_size=round(times * settings.batch_size))


def _same(pair: tuple[Cohort, Cohort | None]) -> tuple[int, int]:
    """Which training and validation cohort these are."""
    train_cohort, validation = pair
    return id(train_cohort), id(validation)


def _prepare(
    first: NeuralEstimator, train_cohort: Cohort, validation: Cohort | None, say: Callable[..., None]
) -> _Prepared:
    if validation is None:
        if first.validation_share <= 0:
            raise CohortError("validation_share must be positive where no validation patients are given.")
        train_cohort, validation = train_cohort.split(
            (1 - first.validation_share, first.validation_share), seed=first.seed
        )
        say(f"{len(validation):,} of {len(train_cohort) + len(validation):,} patients are held out for validation.")
    tabulation = first.new_tabulation(train_cohort)
    shared = share_in_shared_cells(train_cohort.records, train_cohort.history_end, tabulation.grid)
    say(
        f"{tabulation.grid.cells} cells over {tabulation.grid.lookback:g} {train_cohort.schema.time_unit}s; "
        f"{shared:.0%} of the records share one with another of their patient."
    )
    rng = np.random.default_rng([DATA_SEED, first.seed, 1])
    cuts = first.architecture.cuts
    interval = visit_interval(train_cohort, first.max_horizon) if first.architecture.informative_sampling else None
    balanced = first.training.balancing > 0 and bool(train_cohort.schema.treatments)
    examples = tabulate(train_cohort, tabulation, cuts=cuts, rng=rng, interval=interval, is_balanced=balanced)
    held = tabulate(validation, tabulation, cuts=cuts, rng=rng, is_scored=True)
    experience = Experience.of(train_cohort, first.max_horizon)
    return _Prepared(train_cohort.schema, tabulation, examples, held, experience, interval)


def _both(show: Report | None, watch: Report | None) -> Report | None:
    if show is None or watch is None:
        return show or watch

    def report(epoch: EpochReport) -> None:
        show(epoch)
        watch(epoch)

    return report


def _fingerprint(members: Sequence[NeuralEstimator], of_member: Sequence[_Prepared]) -> str:
    """Of everything that a run depends on."""
    digest = hashlib.sha256()
    prepared = {id(own): own for own in of_member}
    if len(prepared) > 1:
        digest.update(repr([list(prepared).index(id(own)) for own in of_member]).encode())
    for member in members:
        digest.update(repr((type(member).__name__, member.max_horizon, member.architecture)).encode())
        digest.update(repr((member.training, member.network_seeds)).encode())
    for leaf in jax.tree.leaves(
        [(part.inputs, part.targets) for own in prepared.values() for part in (own.examples, own.held)]
    ):
        digest.update(repr(leaf.shape).encode())
        digest.update(np.asarray(leaf).tobytes())
    return digest.hexdigest()
