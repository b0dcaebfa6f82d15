"""How much work a reproduction does: as in the paper, what a laptop can do, or a check that all runs."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

NOISES = tuple(round(0.01 * step, 2) for step in range(1, 11))  # of the test patients' growth, per day


@dataclass(frozen=True, eq=False)
class Scale:
    """How many patients, seeds and steps.

    Attributes:
        name: On the command line.
        train: Simulated patients to learn from, for each seed others. (Of records all are used.)
        validation: Patients who decide when to stop, likewise.
        test: Patients to judge on, the same for all; of records, forecasts.
        noise_patients: Of those, how many are followed through all levels of noise.
        oracle_draws: Of the oracle's distribution for each patient.
        seeds: Training seeds, each with its own patients.
        noises: Levels of the test patients' noise.
        horizons: Of each experiment the first and the last of these; none for all.
        bncde: Settings of `BNCDE`; `large` among them says which preset.
        tecde: Settings of `TECDE`, and of the members of an ensemble.
        members: Of an ensemble.
        paper: Settings that differ from those of `BNCDE.paper`.
        depths: Numbers of layers whose time is measured.
        draws: Numbers of draws whose time is measured.
        caution: What its figures do not say; with one, nothing is judged.
        presets: Which sizes the names in tables stand for.
        only_runs: Whether programs are compiled quickly, not well.
        of_records: Whether it is for experiments on a user's records alone.
    """

    name: str
    train: int
    validation: int
    test: int
    noise_patients: int
    oracle_draws: int
    seeds: tuple[int, ...]
    noises: tuple[float, ...] = NOISES
    horizons: tuple[float, ...] = ()
    bncde: Mapping[str, Any] = field(default_factory=dict)
    tecde: Mapping[str, Any] = field(default_factory=dict)
    members: int = 5
    paper: Mapping[str, Any] = field(default_factory=dict)
    depths: tuple[int, ...] = (1, 2, 3, 4, 5)
    draws: tuple[int, ...] = (1, 10, 30, 100)
    caution: str = ""
    presets: str = ""
    only_runs: bool = False
    of_records: bool = False

    def among(self, horizons: tuple[float, ...]) -> tuple[float, ...]:
        """Those of an experiment that are looked at."""
        if not self.horizons:
            return horizons
        found = [horizon for horizon in horizons if horizon in self.horizons]
        return tuple(sorted({*found[:1], *found[-1:]}))


# Sizes of `BNCDE.large`, so that a baseline is as large and learns as long.
_AS_LARGE = {"field_widths": (128, 128), "batch_size": 128, "cuts_per_step": 16, "steps": 3_000}
_TINY = {
    "hidden": 4,
    "field_widths": (8,),
    "embedding_widths": (),
    "head_widths": (),
    "cells": 32,
    "plan_cells": 5,
    "batch_size": 16,
    "cuts_per_step": 2,
    "draws": 1,
    "steps": 12,
    "fits_noise": False,
}

SCALES = {
    scale.name: scale
    for scale in (
        Scale(
            "paper",
            train=10_000,
            validation=1_000,
            test=10_000,
            noise_patients=1_000,
            oracle_draws=1_000,
            seeds=(0, 1, 2, 3, 4),
            bncde={"large": True},
            tecde=_AS_LARGE,
            presets="`BNCDE` is `BNCDE.large()` here; `TECDE` and the members of the ensemble have its size and steps.",
        ),
        Scale(
            "laptop",
            train=1_000,
            validation=150,
            test=1_000,
            noise_patients=300,
            oracle_draws=500,
            seeds=(0, 1, 2),
            noises=(0.01, 0.04, 0.07, 0.10),
            members=3,
            paper={"epochs": 60},
            presets="`BNCDE` and `TECDE` have their defaults here.",
            depths=(1, 2, 3),
            draws=(1, 10, 30),
        ),
        Scale(
            "smoke",
            train=48,
            validation=16,
            test=24,
            noise_patients=24,
            oracle_draws=60,
            seeds=(0,),
            noises=(0.01, 0.10),
            horizons=(1.0, 3.0, 5.0),  # two for every experiment that draws something over them
            bncde=_TINY | {"posteriors": 1, "drift_widths": (2,)},
            tecde=_TINY,
            members=2,
            paper={"epochs": 2, "field_widths": (8,), "drift_widths": (2,), "fits_noise": False},
            depths=(1, 2),
            draws=(1, 10),
            caution="This only shows that everything runs; **the figures mean nothing.**",
            only_runs=True,
        ),
        Scale(
            "demo",
            train=0,
            validation=0,
            test=1_000,
            noise_patients=300,
            oracle_draws=1_000,
            seeds=(0, 1, 2, 3, 4),
            noises=(0.01, 0.04, 0.07, 0.10),
            members=3,
            caution="**A demonstration on a small extract.** It shows that the whole way works on real records, and "
            "that is all that may be concluded from it.",
            of_records=True,
        ),
    )
}
