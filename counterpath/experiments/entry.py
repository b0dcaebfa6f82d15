"""What a user asks for: experiments by name, checked before any work, run, and their pages written."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import jax

from counterpath.cohort.findings import did_you_mean
from counterpath.experiments.catalogue import EXPERIMENTS
from counterpath.experiments.cells import ReproductionError
from counterpath.experiments.experiment import Experiment
from counterpath.experiments.pages import write_pages
from counterpath.experiments.recipes import ORACLE, RECIPES
from counterpath.experiments.record_worlds import records
from counterpath.experiments.runner import Reproduction, Say
from counterpath.experiments.scales import SCALES, Scale


def reproduce(
    names: Sequence[str],
    *,
    scale: str = "laptop",
    seeds: Sequence[int] | None = None,
    models: Sequence[str] = (),
    worlds: Sequence[str] = (),
    horizons: Sequence[float] = (),
    data: Path | None = None,
    folder: Path,
    again: bool = False,
    command: str = "",
    say: Say = print,
    progress: bool = True,
) -> list[Path]:
    """Run experiments, or what is missing of them, and write their pages.

    Args:
        names: Of experiments, or `all`.
        scale: `paper`, `laptop`, `smoke`, or `demo` for a small extract of real records.
        seeds: Of training; default: as many as the scale has.
        models: Only these; default: all.
        worlds: Likewise.
        horizons: Likewise, in days or hours.
        data: Records for the experiments on records: the hourly file of MIMIC-Extract, or a cohort's folder.
        folder: Where results are, or will be.
        again: Measure anew what is there, such as for figures that a newer version measures; kept fits are asked.
        command: That is recorded with them.
        say: Called with what is being done.
        progress: Show that of training.
    """
    if scale not in SCALES:
        raise ReproductionError(f"There is no scale {scale!r}. Choose one of {', '.join(SCALES)}.")
    if data is not None and not data.exists():
        raise ReproductionError(f"There is no {data}.")
    own = SCALES[scale]
    chosen = _possible(own, data, say) if "all" in names else {name: _experiment(name, own, data) for name in names}
    _check("model", models, {ORACLE, *RECIPES})
    _check("world", worlds, {world.name for experiment in chosen.values() for world in experiment.worlds})
    _check("horizon", horizons, {days for found in chosen.values() for days in own.among(found.horizons)})
    if data is not None and any(experiment.on_records for experiment in chosen.values()):
        records(data)  # what is wrong with them is said before any work
    asked = own.seeds if seeds is None else tuple(seeds)
    with _programs(quick=own.only_runs):
        Reproduction(
            tuple(chosen.values()),
            own,
            asked,
            tuple(models),
            tuple(worlds),
            tuple(horizons),
            data,
            folder,
            again,
            command,
            say,
            progress,
        ).run()
    return write_pages(folder, own)


@contextmanager
def _programs(*, quick: bool) -> Iterator[None]:
    """Compiled as well as possible, or quickly."""
    before = jax.config.read("jax_disable_most_optimizations")
    jax.config.update("jax_disable_most_optimizations", quick or before)
    try:
        yield
    finally:
        jax.config.update("jax_disable_most_optimizations", before)


def _check(what: str, asked: Sequence[Any], known: Collection[Any]) -> None:
    for one in asked:
        if one not in known:
            options = sorted(str(other) for other in known)
            raise ReproductionError(f"There is no {what} {str(one)!r} here. {did_you_mean(str(one), options)}")


def _experiment(name: str, scale: Scale, data: Path | None) -> Experiment:
    if name not in EXPERIMENTS:
        raise ReproductionError(f"There is no experiment {name!r}. {did_you_mean(name, [*EXPERIMENTS, 'all'])}")
    found = EXPERIMENTS[name]
    if found.on_records and data is None:
        raise ReproductionError(
            f"{name!r} is about records that you have. Say which: --data all_hourly_data.h5 of MIMIC-Extract, or the "
            "folder of a cohort."
        )
    if scale.of_records and not found.on_records:
        raise ReproductionError(f"Scale {scale.name!r} is for records, and {name!r} simulates. Use laptop.")
    return found


def _possible(scale: Scale, data: Path | None, say: Say) -> dict[str, Experiment]:
    """All that can be run; what is left out is said."""
    found = {}
    for name in EXPERIMENTS:
        try:
            found[name] = _experiment(name, scale, data)
        except ReproductionError as error:
            say(f"Left out: {error}")
    if not found:
        raise ReproductionError(f"Nothing is left to run at scale {scale.name!r}.")
    return found
