"""How close the models come to the physical limit, and how long a fit takes.

    python -m bench.engine_table fit      one BNCDE.large() that has the device to itself: its seconds
    python -m bench.engine_table bounds   whether its forecasts stay within what can be, where days are random
    python -m bench.engine_table page     docs/results/engine.json and its page

Accuracy is what `counterpath reproduce continuous-time --scale paper` found; here it stands in one table, with the time
of a fit beside it. The fitted model is kept in the folder `engine-table` (or `--to FOLDER`) for `bench.effects` and
`bench.model_uncertainty`.
"""

from __future__ import annotations

import json
import time
from collections import defaultdict
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any

import jax
import numpy as np
import typer

import counterpath as cp
from bench.provenance import RESULTS, last_result, provenance, write_result
from counterpath.experiments.answers import judged_model
from counterpath.experiments.cells import Cell, read_cells
from counterpath.experiments.measures import closeness
from counterpath.experiments.recipes import USUAL
from counterpath.experiments.scales import SCALES
from counterpath.experiments.tumor_worlds import ARMS, CONTINUOUS, CUT_DAYS, HORIZONS, RANDOMISED, TumorWorld

PAPER = SCALES["paper"]
WORLDS = (ARMS.name, RANDOMISED.name, CONTINUOUS.name)
COLUMNS = {  # figure: how a mean of it is written
    "CRPS ÷ oracle": "{:.2f}",
    "95% holds": "{:.1%}",
    "99% holds": "{:.1%}",
    "95% width ÷ oracle": "{:.2f}",
    "largest mean ÷ largest outcome": "{:.2f}",
}
OVER_FITS = {"largest mean ÷ largest outcome": np.max}  # of others the mean

app = typer.Typer(add_completion=False, pretty_exceptions_enable=False)
Folder = typer.Option(Path("engine-table"), "--to")


@app.command()
def fit(folder: Path = Folder) -> None:
    """Time one fit, from a cohort to a model."""
    train, validation = RANDOMISED.learners(PAPER, 0)
    began = time.perf_counter()
    model = cp.BNCDE.large(5.0).fit(train, validation, progress=False)
    content = provenance("python -m bench.engine_table fit") | {
        "device": jax.devices()[0].device_kind,
        "patients": len(train),
        "fit_seconds": time.perf_counter() - began,
        "epochs": model.history_["epoch"].max(),
    }
    folder.mkdir(parents=True, exist_ok=True)
    model.save(kept(folder, RANDOMISED, cp.BNCDE.large))
    (folder / "fit.json").write_text(json.dumps(content, indent=2) + "\n", encoding="utf-8")
    print(f"{content['fit_seconds']:.0f} s, {content['epochs']} epochs")


def kept(folder: Path, world: TumorWorld, made: Callable[..., cp.BNCDE]) -> Path:
    """Where a fit is."""
    return folder / f"{world.name}.{made.__qualname__}.safetensors"


BOUNDS = ("largest mean ÷ largest outcome", "largest median ÷ largest outcome", "forecasts that are no number")


@app.command()
def bounds(folder: Path = Folder, large: bool = True) -> None:
    """Fit once in each world with random treatment days, and look for forecasts that nobody could believe.

    Fits that are kept are asked again, and one that was interrupted goes on: on two cores a large one takes an hour.
    """
    made = cp.BNCDE.large if large else cp.BNCDE
    found: dict[str, dict[str, list[float]]] = {}
    for world in (RANDOMISED, CONTINUOUS):
        path = kept(folder, world, made)
        if not path.exists():
            folder.mkdir(parents=True, exist_ok=True)
            run = path.with_suffix(".checkpoint")
            made(max(HORIZONS)).fit(*world.learners(PAPER, 0), checkpoint=run).save(path)
            run.unlink()
        model = cp.load(path)
        judged = judged_model(model, world, PAPER, HORIZONS, None)
        by_days = [closeness(judged, horizon).figures for horizon in HORIZONS]
        found[world.name] = {name: [figures[name] for figures in by_days] for name in BOUNDS}
        print(world.name, found[world.name], flush=True)
    device = jax.devices()[0]
    content = provenance(f"python -m bench.engine_table bounds{'' if large else ' --no-large'}") | {
        "model": made.__qualname__,
        "device": None if device.platform == "cpu" else device.device_kind,
        "horizons": list(HORIZONS),
        "worlds": found,
    }
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "bounds.json").write_text(json.dumps(content, indent=2) + "\n", encoding="utf-8")


def rows_of(cells: Iterable[Cell]) -> list[dict[str, Any]]:
    """Of each model in each world: means over seeds, by days ahead."""
    values: dict[tuple[str, str], dict[str, dict[float, list[float]]]] = {}
    seeds: dict[tuple[str, str], set[int]] = defaultdict(set)
    for cell in cells:
        own = values.setdefault((cell.world, cell.model), {name: defaultdict(list) for name in COLUMNS})
        seeds[cell.world, cell.model].add(cell.seed)
        for name in own.keys() & cell.figures.keys():
            own[name][cell.horizon].append(cell.figures[name])
    return [
        {
            "world": world,
            "model": model,
            "fits": len(seeds[world, model]),
            **{
                name: {
                    f"{days:g}": float(OVER_FITS.get(name, np.mean)(found)) for days, found in sorted(by_days.items())
                }
                for name, by_days in values[world, model].items()
            },
        }
        for world in WORLDS
        for model in USUAL
        if (world, model) in values
    ]


def page_of(content: dict[str, Any]) -> str:
    """What came out, world by world."""
    alone = content["fit"]
    parts = [
        "# How close the models come\n\n"
        f"{PAPER.train:,} training patients, {PAPER.validation:,} for stopping, {PAPER.test:,} test patients known up "
        f"to day {CUT_DAYS:g} under what was really given; every patient counts, seen on that day or not. Means over "
        "fits on patients of their own, as many as the brackets say (and on what, where it was another run), at 1, 2, "
        "3, 4 and 5 days. One fit serves all of them (`BNCDE.paper` and `TECDE.paper`: a fit for each, from records up "
        "to that day, since they learn from the last cut of each patient alone). CRPS "
        "and width are divided by the oracle's, which knows the simulator. The last column is the "
        "largest expected volume of any patient in any fit beside the largest outcome.\n\n"
        f"One fit of `BNCDE.large()` that had the device to itself took **{alone['fit_seconds']:.0f} s** from a cohort "
        f"to a model: preparing, compiling and training, {alone['epochs']} epochs of {alone['patients']:,} patients on "
        f"one {alone['device']} (`{alone['command']}`, commit `{alone['commit'][:10]}`).\n\n"
        "How the figures spread over fits, and on which commit each was made: [the same as an "
        "experiment](paper/continuous-time.md), of which this page is a summary.\n"
    ]
    for world in WORLDS:
        rows = [row for row in content["rows"] if row["world"] == world]
        if rows:
            parts.append(
                f"\n## {world.capitalize()}\n\n| model | {' | '.join(COLUMNS)} |\n{'|---' * (1 + len(COLUMNS))}|\n"
            )
        for row in rows:
            entries = [_by_days(row[name], form) for name, form in COLUMNS.items()]
            about = f"; {row['about']}" if "about" in row else ""
            parts.append(f"| {row['model']} ({row['fits']}{about}) | {' | '.join(entries)} |\n")
    return "".join(parts) + _bounds_part(content.get("bounds"))


def _bounds_part(bounds: dict[str, Any] | None) -> str:
    if bounds is None:
        return ""
    machine = bounds["device"] or f"{bounds['processor']} ({bounds['cores']} cores)"
    lines = [
        "\n## No forecast out of bounds\n",
        f"`{bounds['model']}()` fitted once more in each world to the same {PAPER.train:,} patients "
        f"(`{bounds['command']}`, commit `{bounds['commit'][:10]}`, {machine}), asked about the same {PAPER.test:,} "
        "test patients at 1 to 5 days.\n",
        f"| world | {' | '.join(BOUNDS)} |",
        "|---" * (1 + len(BOUNDS)) + "|",
    ]
    for world, figures in bounds["worlds"].items():
        largest = [", ".join(f"{value:.2f}" for value in figures[name]) for name in BOUNDS[:2]]
        lines.append(f"| {world} | {' | '.join(largest)} | {max(figures[BOUNDS[2]]):.0%} |")
    return "\n".join(lines) + "\n"


def _by_days(values: dict[str, float], form: str) -> str:
    """One for each horizon up to the last that there is."""
    if not values:
        return "–"
    days = [f"{horizon:g}" for horizon in HORIZONS if horizon <= max(map(float, values))]
    return ", ".join(form.format(values[day]) if day in values else "–" for day in days)


@app.command()
def page(folder: Path = Folder, results: Path = RESULTS) -> None:
    """The page, from the cells of the experiment, and from the fits that are there or were in the last page.

    A row of the last page that says what it is about, an earlier run, stays until there are cells in its place.
    """
    cells = [c for c in read_cells(results / "paper", PAPER.name).values() if c.experiment == "continuous-time"]
    last, rows = last_result("engine", results), rows_of(cells)
    made = {(row["world"], row["model"]) for row in rows}
    rows += [row for row in last["rows"] if "about" in row and (row["world"], row["model"]) not in made]
    content: dict[str, Any] = {"rows": rows}
    for name in ("fit", "bounds"):
        made_here = folder / f"{name}.json"
        if made_here.exists():
            content[name] = json.loads(made_here.read_text(encoding="utf-8"))
        elif name in last:
            content[name] = last[name]
    write_result("engine", content, page_of(content), results)


if __name__ == "__main__":
    app()
