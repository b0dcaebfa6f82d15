"""Runs experiments: fits what is missing, asks it, keeps every answer."""

from __future__ import annotations

import os
import warnings
from collections import defaultdict
from collections.abc import Callable, Iterable, Mapping
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from counterpath.cohort.findings import counted
from counterpath.estimators import DeepEnsemble, Estimator
from counterpath.estimators.neural import NeuralEstimator
from counterpath.experiments import measures
from counterpath.experiments.answers import Judged, judged_model, judged_oracle
from counterpath.experiments.catalogue import EXPERIMENTS
from counterpath.experiments.cells import Cell, Place, ReproductionError, finite, read_cells
from counterpath.experiments.expected_effects import Effects
from counterpath.experiments.experiment import Experiment
from counterpath.experiments.fits import fit_seeds, record_of_fit
from counterpath.experiments.measures import Found
from counterpath.experiments.provenance import device, provenance
from counterpath.experiments.recipes import ORACLE, RECIPES
from counterpath.experiments.record_worlds import RecordWorld, digest
from counterpath.experiments.runtime import runtime
from counterpath.experiments.scales import Scale
from counterpath.experiments.world import USUAL_NOISE, World
from counterpath.predictive import UnsupportedPlanWarning

Say = Callable[[str], None]
NOTHING: Mapping[str, Any] = {}
CORES_OF_A_MODEL = 3  # that is asked: one model leaves the others idle for much of the time


@dataclass(frozen=True)
class _Fit:
    """A configuration whose seeds train at once."""

    world: World
    model: str
    horizon: float


@dataclass(frozen=True)
class Reproduction:
    """Some experiments at one scale.

    Attributes:
        experiments: Which.
        scale: How much work.
        seeds: Training seeds.
        models: Only these; none for all.
        worlds: Likewise.
        days: Likewise, of the horizons.
        data: Records of the user, for the experiments that are about records.
        folder: Where results are written; files of the work go into its folder `work`.
        again: Whether cells that are there are measured anew; fits that were kept are asked again.
        command: That asked for it.
        say: Called with what is being done.
        progress: Show that of training.
    """

    experiments: tuple[Experiment, ...]
    scale: Scale
    seeds: tuple[int, ...]
    models: tuple[str, ...]
    worlds: tuple[str, ...]
    days: tuple[float, ...]
    data: Path | None
    folder: Path
    again: bool
    command: str
    say: Say
    progress: bool

    @property
    def work(self) -> Path:
        """Fits, the oracle's answers, and cells."""
        return self.folder / "work"

    @property
    def _cores(self) -> int:
        return os.cpu_count() or 1

    def wanted(self) -> list[Place]:
        """All cells, in the order in which they are to be made."""
        return [
            (experiment.name, world.name, model, horizon, seed)
            for experiment in self.experiments
            for world in experiment.worlds
            if not self.worlds or world.name in self.worlds
            for model in (ORACLE, *experiment.models)
            if not self.models or model in self.models
            if model != ORACLE or (world.has_oracle and "runtime" not in experiment.measures)
            for horizon in self.horizons(experiment)
            for seed in (self._seeds(experiment) if model != ORACLE else (0,))
        ]

    def _seeds(self, experiment: Experiment) -> tuple[int, ...]:
        left_out = () if experiment.at_most is None else self.scale.seeds[experiment.at_most :]
        return tuple(seed for seed in self.seeds if seed not in left_out)

    def horizons(self, experiment: Experiment) -> tuple[float, ...]:
        """Days ahead, at this scale."""
        return tuple(days for days in self.scale.among(experiment.horizons) if not self.days or days in self.days)

    def run(self) -> None:
        """Make what is missing."""
        there = read_cells(self.folder, self.scale.name)
        self._check_records(there.values())
        missing = [place for place in self.wanted() if self.again or place not in there]
        self.say(f"{len(missing):,} of {counted(len(self.wanted()), 'cell')} to make.")
        by_fit: dict[_Fit, list[Place]] = defaultdict(list)
        for place in missing:
            by_fit[self._fit_of(place)].append(place)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", UnsupportedPlanWarning)  # a few in a thousand, and the same for all models
            for fit, places in by_fit.items():
                self._run_fit(fit, places)

    def _check_records(self, cells: Iterable[Cell]) -> None:
        """Results about one user's records are not mixed with those about another's."""
        kept = {cell.record["digest"]: cell.record["data"] for cell in cells if "digest" in cell.record}
        if self.data is not None and (others := kept.keys() - {digest(self.data)}):
            names = ", ".join(sorted(kept[other] for other in others))
            raise ReproductionError(
                f"{self.folder} holds results about {names}, and the content of {self.data.name} is another. Use "
                "another folder."
            )

    def _fit_of(self, place: Place) -> _Fit:
        name, world, model, horizon, _ = place
        own = next(w for w in EXPERIMENTS[name].worlds if w.name == world)
        if isinstance(own, RecordWorld) and self.data is not None:
            own = own.made_of(self.data)
        return _Fit(own, model, horizon if model in RECIPES and RECIPES[model].per_horizon else max(own.horizons))

    def _run_fit(self, fit: _Fit, places: list[Place]) -> None:
        timed = [place for place in places if "runtime" in EXPERIMENTS[place[0]].measures]
        for place in timed:
            self.say(f"{place[0]}: seed {place[-1]}.")
            self._write(fit.world, place, runtime(self.scale, place[-1]))
        places = [place for place in places if place not in timed]
        if not places:
            return
        about = f"{fit.model} in {fit.world.name}"
        if fit.model == ORACLE:
            self.say(f"{about}: asked.")
            self._measure_all(self._oracle(fit.world), places)
            return
        seeds = tuple(sorted({place[-1] for place in places}))
        self.say(f"{about}, Δ = {fit.horizon:g}: {counted(len(seeds), 'fit')}.")
        recipe = RECIPES[fit.model]
        fits = self.work / "fits"
        models = fit_seeds(
            recipe, fit.world, self.scale, fit.horizon, seeds, fits, command=self.command, progress=self.progress
        )
        horizons = (fit.horizon,) if recipe.per_horizon else fit.world.horizons
        self.say(f"{about}: asked.")

        def measure(seed: int) -> None:
            own = [place for place in places if place[-1] == seed]
            kept = isinstance(
                models[seed], (NeuralEstimator, DeepEnsemble)
            )  # others are fitted whenever they are asked
            made = {"fitted": record_of_fit(fits, recipe, fit.world, fit.horizon, seed)} if kept else {}
            self._measure_all(self._judged(models[seed], fit.world, horizons), own, made)

        with ThreadPoolExecutor(max(self._cores // CORES_OF_A_MODEL, 1)) as pool:
            list(pool.map(measure, seeds))

    def _judged(self, model: Estimator, world: World, horizons: tuple[float, ...]) -> Judged:
        oracle = self._oracle(world) if world.has_oracle else None
        return judged_model(model, world, self.scale, horizons, oracle)

    def _oracle(self, world: World) -> Judged:
        return judged_oracle(world, self.scale, self.work / "oracle", workers=self._cores)

    def _measure_all(self, judged: Judged, places: list[Place], made: Mapping[str, Any] = NOTHING) -> None:
        for place in places:
            found = Found()
            for name in EXPERIMENTS[place[0]].measures:
                found = found | self._measure(name)(judged, place[3])
            if place[2] == ORACLE and "point_error" in EXPERIMENTS[place[0]].measures:
                found = found | self._fooled_oracle(judged, place[3])
            self._write(judged.world, place, found, made)

    def _measure(self, name: str) -> Callable[[Judged, float], Found]:
        if name == "effects":
            return Effects(self.work / "oracle", self._cores)
        return getattr(measures, name)

    def _fooled_oracle(self, judged: Judged, horizon: float) -> Found:
        """The oracle's errors if it believes in the usual noise whatever the patients' is."""
        fooled = judged_oracle(
            judged.world, self.scale, self.work / "oracle", workers=self._cores, believes=USUAL_NOISE
        )
        curves = measures.point_error(fooled, horizon).curves
        return Found(curves={name + measures.BELIEVING: values for name, values in curves.items()})

    def _write(self, world: World, place: Place, found: Found, made: Mapping[str, Any] = NOTHING) -> None:
        kept = finite(found)
        record = provenance(self.command) | world.setting(self.scale)
        record |= {"device": device(), "interval_ends": "exact", **made}
        Cell(*place, self.scale.name, kept.figures, kept.curves, record).write(self.work / "cells")
