"""What a page says of how its figures were made: on how many patients, by which commands, on which machines."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping, Sequence
from typing import Any

from counterpath.cohort.findings import counted
from counterpath.experiments.cells import Cell
from counterpath.experiments.expected_effects import PATIENTS as ASKED_ABOUT_EFFECTS
from counterpath.experiments.experiment import Experiment
from counterpath.experiments.recipes import ORACLE, WEIGHTED_AS_PUBLISHED
from counterpath.experiments.record_worlds import FIRST_CUT
from counterpath.experiments.scales import Scale
from counterpath.experiments.world import USUAL_NOISE

FEW = 200  # patients who are asked about
# How it was measured before it was mended, by what a record lacks: of which measures, and what it means.
ONCE = {
    "interval_ends": {
        "faithfulness": "Ends of intervals ({}) are quantiles of the draws, which hold a little less than the exact "
        "ends that `prediction.interval` gives.",
        "sharpness": "Widths ({}) are between quantiles of the draws, a little less than between the exact ends that "
        "`prediction.interval` gives.",
        "point_error": f"Where the noise is above {USUAL_NOISE:g}, errors ({{}}) are of other patients than at "
        f"{USUAL_NOISE:g}: the first step of a curve is not noise alone.",
    }
}
# The same of fits: what their records lack, of which models, and what it means.
ONCE_FITTED = {
    "visits": (
        WEIGHTED_AS_PUBLISHED,
        "Weights of {models} (commits {commits}) did nothing: visits were learned after the one cut of each patient, "
        "which lies before an outcome that was seen, so that everybody seemed to be seen there and all outcomes "
        "counted alike.",
    )
}


def setting(experiment: Experiment, cells: Sequence[Cell], scale: Scale) -> str:
    """Who was learned from and who was asked about."""
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
    learned = f"{caution}{scale.train:,} training patients, {scale.validation:,} for stopping"
    if "runtime" in experiment.measures:
        return f"{learned}; {len(seeds)} training {own}."
    asked = min(scale.test, ASKED_ABOUT_EFFECTS) if "effects" in experiment.measures else scale.test
    noisy = (
        f", {scale.noise_patients:,} where the noise is above {USUAL_NOISE:g}"
        if "point_error" in experiment.measures and scale.noise_patients < scale.test
        else ""
    )
    presets = f" {scale.presets}" if scale.presets else ""
    return (
        f"{learned}, {asked:,} test patients known up to day 54{noisy}; {len(seeds)} training {own}, unless a line "
        f"says otherwise.{presets}"
    )


def origins(experiment: Experiment, cells: Sequence[Cell]) -> str:
    """By which commands, on which machines and commits, and on which test patients the figures were made."""
    by_origin: dict[tuple[str, ...], set[str]] = defaultdict(set)
    for cell in cells:
        record = cell.record
        machine, commit = record["device"] or record["processor"], _commit(record)
        patients = f", test patients of seed {record['test_seed']:,}" if "test_seed" in record else ""
        about = f"{machine}, commit `{commit}`{patients}{_fitted_otherwise(record)}: `{record['command']}`"
        by_origin[commit, about].add(f"{cell.model} in {cell.world}")
    found = "".join(f"- {', '.join(sorted(whose))}: {about}\n" for (_, about), whose in sorted(by_origin.items()))
    for mark, cautions in ONCE.items():
        older = sorted(
            {f"`{(cell.record['commit'] or 'no commit')[:10]}`" for cell in cells if mark not in cell.record}
        )
        for measure in experiment.measures:
            if older and measure in cautions:
                found += f"\n{cautions[measure].format('commits ' + ', '.join(older))}\n"
    for mark, (models, caution) in ONCE_FITTED.items():
        older = [cell for cell in cells if cell.model in models and mark not in (cell.record.get("fitted") or {})]
        if older:
            commits = sorted({f"`{_commit(cell.record.get('fitted') or cell.record)}`" for cell in older})
            names = " and ".join(f"`{name}`" for name in sorted({cell.model for cell in older}))
            found += f"\n{caution.format(models=names, commits=', '.join(commits))}\n"
    return found


def _fitted_otherwise(record: Mapping[str, Any]) -> str:
    """Where a fit was kept, and asked by another state of the program or on another machine."""
    if "fitted" not in record:
        return ""
    fitted = record["fitted"]
    if fitted is None:
        return ", asked of fits that an earlier state made"
    machine, asked_on = (of["device"] or of["processor"] for of in (fitted, record))
    parts = [] if fitted["commit"] == record["commit"] else [f"at commit `{_commit(fitted)}`"]
    parts += [] if machine == asked_on else [f"on {machine}"]
    return f", fitted {' '.join(parts)}" if parts else ""


def _commit(record: Mapping[str, Any]) -> str:
    return (record["commit"] or "no commit")[:10]
