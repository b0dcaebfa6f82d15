"""Pages and figures, rendered from the results alone."""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Sequence
from pathlib import Path

import numpy as np

from counterpath.cohort.findings import counted
from counterpath.experiments.catalogue import EXPERIMENTS
from counterpath.experiments.cells import Cell, read_cells, write_experiment
from counterpath.experiments.experiment import Aim, Curve, Experiment
from counterpath.experiments.measures import BELIEVING
from counterpath.experiments.recipes import ORACLE
from counterpath.experiments.record_worlds import FIRST_CUT
from counterpath.experiments.scales import Scale
from counterpath.experiments.verdicts import Verdict, judge
from counterpath.experiments.world import World
from counterpath.figures.experiments import Row, draw_curves

FOOLED = f"{ORACLE}{BELIEVING}"
FEW = 200  # patients who are asked about
SHARES = ("holds", "of effects")  # figures that are shown as percentages
ONCE = {  # how it was measured before it was mended, by what a record lacks
    "interval_ends": "Some figures ({}) are of intervals whose ends are quantiles of the draws; these hold 0.2 points "
    "too few. And where the noise is not the usual one, they are of other patients.",
}


def write_pages(folder: Path, scale: Scale) -> list[Path]:
    """Gather all cells of a folder, and write a page for each experiment and one about all."""
    by_experiment: dict[str, list[Cell]] = defaultdict(list)
    for cell in read_cells(folder, scale.name).values():
        by_experiment[cell.experiment].append(cell)
    written, verdicts = [], {}
    for name, experiment in EXPERIMENTS.items():
        cells = by_experiment.get(name, [])
        if not cells:
            continue
        write_experiment(name, scale.name, cells, folder)
        pictures = _draw(experiment, cells, scale, folder)
        verdicts[name] = _verdicts(experiment, cells, scale)
        path = folder / f"{name}.md"
        path.write_text(page_of(experiment, cells, scale, pictures), encoding="utf-8")
        written.append(path)
    index = folder / "index.md"
    index.write_text(_index(verdicts, scale), encoding="utf-8")
    return [index, *written]


def page_of(experiment: Experiment, cells: Sequence[Cell], scale: Scale, pictures: Sequence[str]) -> str:
    """What was asked, what came out, and what is missing."""
    parts = [f"# {experiment.title}\n\n{experiment.question}\n\n{_setting(cells, scale)}\n"]
    verdicts = _verdicts(experiment, cells, scale)
    if verdicts:
        parts.append(f"\n## What came out\n\n{_verdict_table(verdicts, experiment.unit)}{_reasons(verdicts)}")
    for picture in pictures:
        parts.append(f"\n![{experiment.title}]({picture})\n")
    for world in experiment.worlds:
        for figure in experiment.shown:
            table = _table(experiment, cells, scale, world, figure)
            if table:
                where = f" ({world.name})" if len(experiment.worlds) > 1 else ""
                parts.append(f"\n### {figure}{where}\n\n{table}")
    missing = _missing(experiment, cells, scale)
    if missing:
        parts.append(f"\nNot measured: {'; '.join(missing)}.\n")
    parts.append(f"\n## How it was made\n\n{_origins(cells)}")
    return "".join(parts)


def _setting(cells: Sequence[Cell], scale: Scale) -> str:
    seeds = {cell.seed for cell in cells if cell.model != ORACLE}
    own = "seeds, each with patients of its own" if len(seeds) > 1 else "seed"
    caution = f"{scale.caution} " if scale.caution else ""
    record = cells[0].record
    if "data" in record:
        number = record["patients"]
        own = "seeds, each with a split of its own between the first two" if len(seeds) > 1 else "seed"
        if number["test"] < FEW and not caution:
            caution = f"**Only {counted(number['test'], 'patient')} are asked about: figures carry much chance.** "
        about = f"Outcome: {record['outcome']}; treatments: {', '.join(record['treatments']) or 'none'}"
        if "drivers" in record:
            about += f"; the outcome follows {' and '.join(record['drivers'])}, its gain is {record['gain']}"
        return (
            f"{caution}{number['train']:,} training patients of `{record['data']}`, {number['validation']:,} for "
            f"stopping, {record['forecasts']:,} forecasts for {number['test']:,} others, from hour {FIRST_CUT} on; "
            f"{len(seeds)} training {own}. {about}."
        )
    return (
        f"{caution}{scale.train:,} training patients, {scale.validation:,} for stopping, {scale.test:,} test patients "
        f"known up to day 54; {len(seeds)} training {own}."
    )


def _origins(cells: Sequence[Cell]) -> str:
    """By which commands, on which machines and commits, and on which test patients the figures were made."""
    by_origin: dict[tuple[str, ...], set[str]] = defaultdict(set)
    for cell in cells:
        record = cell.record
        machine, commit = record["device"] or record["processor"], (record["commit"] or "no commit")[:10]
        patients = f", test patients of seed {record['test_seed']:,}" if "test_seed" in record else ""
        about = f"{machine}, commit `{commit}`{patients}: `{record['command']}`"
        by_origin[commit, about].add(f"{cell.model} in {cell.world}")
    found = "".join(f"- {', '.join(sorted(whose))}: {about}\n" for (_, about), whose in sorted(by_origin.items()))
    for mark, caution in ONCE.items():
        older = sorted({f"`{cell.record['commit'][:10]}`" for cell in cells if mark not in cell.record})
        if older:
            found += f"\n{caution.format('commits ' + ', '.join(older))}\n"
    return found


def _verdicts(experiment: Experiment, cells: Sequence[Cell], scale: Scale) -> list[tuple[World, Verdict]]:
    horizons = experiment.horizons[-scale.horizons :]
    return [
        (world, judge(aim, _values(cells, world, aim.figure), horizons))
        for world in experiment.worlds
        for aim in experiment.aims
    ]


def _values(cells: Sequence[Cell], world: World, figure: str) -> dict[tuple[str, float], dict[int, float]]:
    """By model and horizon, of each seed."""
    found: dict[tuple[str, float], dict[int, float]] = defaultdict(dict)
    for cell in cells:
        if cell.world == world.name and figure in cell.figures:
            found[cell.model, cell.horizon][cell.seed] = cell.figures[figure]
    return found


def _verdict_table(verdicts: Sequence[tuple[World, Verdict]], unit: str) -> str:
    lines = [
        f"| claim or aim | of | world | verdict | mean ± std over seeds, by {unit}s ahead |",
        "|---|---|---|---|---|",
    ]
    lines += [
        f"| {verdict.aim.text} | {_whose(verdict.aim)} | {world.name} | **{verdict.word}** | {verdict.found} |"
        for world, verdict in verdicts
    ]
    return "\n".join(lines) + "\n"


def _reasons(verdicts: Sequence[tuple[World, Verdict]]) -> str:
    """Why aims do not hold everywhere, where that was looked into."""
    reasons = {verdict.aim: verdict.aim.why for _, verdict in verdicts if verdict.is_missed and verdict.aim.why}
    return "".join(f"\nWhy not “{aim.text}” ({aim.model}): {why}\n" for aim, why in reasons.items())


def _whose(aim: Aim) -> str:
    return f"{'the paper' if aim.whose == 'paper' else 'ours'}, of {aim.model}"


def _table(experiment: Experiment, cells: Sequence[Cell], scale: Scale, world: World, figure: str) -> str:
    values = _values(cells, world, figure)
    horizons = experiment.horizons[-scale.horizons :]
    models = [
        model for model in (*experiment.models, ORACLE) if any((model, horizon) in values for horizon in horizons)
    ]
    if not models:
        return ""
    heads = [f"{horizon:g} {world.unit}{'s' if horizon > 1 else ''}" for horizon in horizons]
    lines = [f"| model | {' | '.join(heads)} |", "|---" * (1 + len(heads)) + "|"]
    for model in models:
        entries = [_entry(figure, [*values.get((model, horizon), {}).values()]) for horizon in horizons]
        lines.append(f"| {model} | {' | '.join(entries)} |")
    return "\n".join(lines) + "\n"


def _entry(figure: str, values: Sequence[float]) -> str:
    if not values:
        return "–"
    factor = 100.0 if any(word in figure for word in SHARES) else 1.0
    mean, std = factor * float(np.mean(values)), factor * float(np.std(values, ddof=1)) if len(values) > 1 else 0.0
    digits = 1 if factor > 1 else max(2 - math.floor(math.log10(abs(mean))), 0) if mean else 3
    if 0 < std < 1 and factor == 1:
        digits = max(-math.floor(math.log10(std)), 0)  # as many as the spread leaves meaning to
    spread = f" ± {std:.{digits}f}" if len(values) > 1 else ""
    return f"{mean:.{digits}f}{spread}" + ("%" if factor > 1 else "")


def _missing(experiment: Experiment, cells: Sequence[Cell], scale: Scale) -> list[str]:
    there = defaultdict(set)
    for cell in cells:
        there[cell.world, cell.model].add((cell.horizon, cell.seed))
    found, wanted = [], scale.seeds[: experiment.at_most]
    for world in experiment.worlds:
        for model in experiment.models:
            lacking = [
                f"Δ = {horizon:g}" if seeds == len(wanted) else f"{counted(seeds, 'seed')} at Δ = {horizon:g}"
                for horizon in experiment.horizons[-scale.horizons :]
                if (seeds := sum((horizon, seed) not in there[world.name, model] for seed in wanted))
            ]
            if lacking:
                found.append(f"{model} in {world.name}: {', '.join(lacking)}")
    return found


def _draw(experiment: Experiment, cells: Sequence[Cell], scale: Scale, folder: Path) -> list[str]:
    pictures = []
    horizons = experiment.horizons[-scale.horizons :]
    columns = [f"Δ = {horizon:g}" for horizon in horizons]
    for world in experiment.worlds:
        own = [cell for cell in cells if cell.world == world.name]
        rows = [row for curve in experiment.curves if (row := _row(curve, own, scale)).curves]
        if not rows:
            continue
        name = experiment.name if len(experiment.worlds) == 1 else f"{experiment.name}.{world.name}"
        title = experiment.title if len(experiment.worlds) == 1 else f"{experiment.title} ({world.name})"
        draw_curves(
            rows,
            columns,
            experiment.models,
            [ORACLE, FOOLED],
            title=title,
            paths=[folder / f"{name}.png", folder / f"{name}.svg"],
        )
        pictures.append(f"{name}.svg")
    return pictures


def _row(curve: Curve, cells: Sequence[Cell], scale: Scale) -> Row:
    curves: dict[tuple[str, str], list[list[float]]] = defaultdict(list)
    for cell in cells:
        for model, name in ((cell.model, curve.name), (FOOLED, curve.name + BELIEVING)):
            if name in cell.curves:
                curves[model, f"Δ = {cell.horizon:g}"].append(cell.curves[name])
    at = getattr(scale, curve.at) if isinstance(curve.at, str) else curve.at
    return Row(curve.label, curve.over, at, curve.scale, curve.reference, curves)


def _index(verdicts: dict[str, list[tuple[World, Verdict]]], scale: Scale) -> str:
    lines = [
        "# The paper, reproduced",
        "",
        f"Scale `{scale.name}`: {_amount(scale)}{len(scale.seeds)} training seeds. Each page has all figures; "
        "`counterpath reproduce` makes them.",
        *(["", scale.caution] if scale.caution else []),
        "",
        "| experiment | claim or aim | of | world | verdict |",
        "|---|---|---|---|---|",
    ]
    for name, found in verdicts.items():
        lines += [
            f"| [{name}]({name}.md) | {verdict.aim.text} | {_whose(verdict.aim)} | {world.name} | {verdict.word} |"
            for world, verdict in found
        ]
    missing = {name: experiment for name, experiment in EXPERIMENTS.items() if name not in verdicts}
    simulated = [name for name, experiment in missing.items() if not (experiment.on_records or scale.of_records)]
    on_records = [name for name, experiment in missing.items() if experiment.on_records]
    if simulated:
        lines += ["", f"Not run yet: {', '.join(simulated)}."]
    if on_records:
        lines += ["", f"About records that you have, with `--data`: {', '.join(on_records)}."]
    return "\n".join(lines) + "\n"


def _amount(scale: Scale) -> str:
    return "" if scale.of_records else f"{scale.train:,} training and {scale.test:,} test patients, "
