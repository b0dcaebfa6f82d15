"""Pages and figures, rendered from the results alone."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping, Sequence
from pathlib import Path

from counterpath.cohort.findings import counted
from counterpath.experiments.catalogue import EXPERIMENTS
from counterpath.experiments.cells import Cell, read_cells, write_experiment
from counterpath.experiments.experiment import Aim, Experiment
from counterpath.experiments.origins import origins, setting
from counterpath.experiments.pictures import draw
from counterpath.experiments.recipes import ORACLE
from counterpath.experiments.scales import Scale
from counterpath.experiments.stated import stated
from counterpath.experiments.strays import strays
from counterpath.experiments.verdicts import Verdict, judge
from counterpath.experiments.world import World

SHARES = ("holds", "of effects")  # figures that are shown as percentages
By = Mapping[str, Sequence[Cell]]


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
        verdicts[name] = _verdicts(experiment, by_experiment, scale)
        pictures = draw(experiment, cells, scale, folder)
        path = folder / f"{name}.md"
        path.write_text(_page(experiment, cells, verdicts[name], scale, pictures), encoding="utf-8")
        written.append(path)
    index = folder / "index.md"
    index.write_text(_index(verdicts, scale), encoding="utf-8")
    return [index, *written]


def _page(
    experiment: Experiment,
    cells: Sequence[Cell],
    verdicts: Sequence[tuple[World, Verdict]],
    scale: Scale,
    pictures: Sequence[str],
) -> str:
    """What was asked, what came out, and what is missing."""
    parts = [f"# {experiment.title}\n\n{experiment.question}\n\n{setting(experiment, cells, scale)}\n"]
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
    parts.append(_listed("Far from the other seeds", strays(experiment, cells, scale)))
    parts.append(_listed("Not measured", _missing(experiment, cells, scale)))
    parts.append(f"\n## How it was made\n\n{origins(experiment, cells)}")
    return "".join(parts)


def _listed(title: str, lines: Sequence[str]) -> str:
    return f"\n{title}:\n\n" + "".join(f"- {line}\n" for line in lines) if lines else ""


def _verdicts(experiment: Experiment, by: By, scale: Scale) -> list[tuple[World, Verdict]]:
    found = [
        (world, judge(aim, _values(_of_aim(aim, experiment, by), world, aim.figure), _horizons(aim, experiment, scale)))
        for world in experiment.worlds
        for aim in experiment.aims
    ]
    return [(world, verdict.withheld) for world, verdict in found] if scale.caution else found


def _horizons(aim: Aim, experiment: Experiment, scale: Scale) -> tuple[float, ...]:
    """At which an aim is judged: what grows does so from the shorter ones on."""
    own = scale.among(experiment.horizons)
    if not (aim.grows and experiment.follows):
        return own
    return (*scale.among(EXPERIMENTS[experiment.follows].horizons), *own)


def _of_aim(aim: Aim, experiment: Experiment, by: By) -> Sequence[Cell]:
    shorter = by.get(experiment.follows, []) if aim.grows and experiment.follows else []
    return [*shorter, *by[experiment.name]]


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
    reasons = {verdict.aim: verdict.aim.why for _, verdict in verdicts if verdict.is_open and verdict.aim.why}
    return "".join(f"\nWhy not “{aim.text}” ({aim.model}): {why}\n" for aim, why in reasons.items())


def _whose(aim: Aim) -> str:
    return f"{'the paper' if aim.whose == 'paper' else 'ours'}, of {aim.model}"


def _table(experiment: Experiment, cells: Sequence[Cell], scale: Scale, world: World, figure: str) -> str:
    values = _values(cells, world, figure)
    horizons = scale.among(experiment.horizons)
    models = [
        model for model in (*experiment.models, ORACLE) if any((model, horizon) in values for horizon in horizons)
    ]
    if not models:
        return ""
    heads = [f"{horizon:g} {world.unit}{'s' if horizon > 1 else ''}" for horizon in horizons]
    lines = [f"| model | {' | '.join(heads)} |", "|---" * (1 + len(heads)) + "|"]
    most = max(map(len, values.values()))
    for model in models:
        own = [list(values.get((model, horizon), {}).values()) for horizon in horizons]
        seeds = max(map(len, own))
        fewer = f" ({counted(seeds, 'seed')})" if seeds < most and model != ORACLE else ""
        percent = any(word in figure for word in SHARES)
        entries = [stated(found, percent=percent) if found else "–" for found in own]
        lines.append(f"| {model}{fewer} | {' | '.join(entries)} |")
    return "\n".join(lines) + "\n"


def _missing(experiment: Experiment, cells: Sequence[Cell], scale: Scale) -> list[str]:
    """Fits of models, answers of the oracle, and figures that nobody has."""
    there, figures = defaultdict(set), {figure for cell in cells for figure in cell.figures}
    for cell in cells:
        there[cell.world, cell.model].add((cell.horizon, cell.seed))
    found = []
    for world in experiment.worlds:
        for model in (*experiment.models, ORACLE):
            wanted = scale.seeds[: experiment.at_most]
            if model == ORACLE:
                wanted = (0,) if world.has_oracle and "runtime" not in experiment.measures else ()
            lacking = [
                f"Δ = {horizon:g}" if seeds == len(wanted) else f"{counted(seeds, 'seed')} at Δ = {horizon:g}"
                for horizon in scale.among(experiment.horizons)
                if (seeds := sum((horizon, seed) not in there[world.name, model] for seed in wanted))
            ]
            if lacking:
                found.append(f"{model} in {world.name}: {', '.join(lacking)}")
    unknown = [figure for figure in experiment.shown if figure not in figures]
    return found + ([f"of anybody: {', '.join(unknown)}"] if unknown else [])


def _index(verdicts: dict[str, list[tuple[World, Verdict]]], scale: Scale) -> str:
    lines = [
        "# The paper's experiments on little data" if scale.caution else "# The paper, reproduced",
        "",
        f"Scale `{scale.name}`: {_amount(scale)}{len(scale.seeds)} training seeds. Each page has all figures; "
        "`counterpath reproduce` makes them. What verdicts mean: [how to reproduce](../../how-to/reproduce.md)."
        + (f" {scale.presets}" if scale.presets else ""),
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
