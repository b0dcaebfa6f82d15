"""The commands of the how-to pages on real records, as a reader would type them: what they take and what comes out.

python -m bench.real_records FOLDER     that holds the public demos of MIMIC-IV as MEDS and of MIMIC-III, hourly
"""

from __future__ import annotations

import json
import os
import re
import resource
import shlex
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

import numpy as np
import typer

import counterpath as cp
from bench.provenance import RESULTS, provenance, write_result
from counterpath.cohort import Cohort
from counterpath.predictive.evaluation import Evaluation, Scores

HOW_TO = Path(__file__).parents[1] / "docs" / "how-to"
# Title, page, what the data are called on disk, and what the page calls them.
EXTRACT = "all_hourly_data_mimic3demo.h5"
SOURCES = (
    ("MEDS: the public demo of MIMIC-IV", "meds.md", "mimic-iv-demo-meds", "mimic-iv-meds"),
    ("MIMIC-Extract: the public demo of MIMIC-III", "mimic-extract.md", EXTRACT, "all_hourly_data.h5"),
)
COMMANDS = re.compile(r"^```sh\n((?:counterpath .*\n)+)```", re.MULTILINE)
UNSEEN = re.compile(r"never observed for [\d,]+ of [\d,]+ patients asked about")
HORIZON = 6.0


def main(folder: Path, to: Path = RESULTS) -> None:
    """Type them all, and write down what came out."""
    studies = []
    for title, page, source, called in SOURCES:
        with tempfile.TemporaryDirectory() as place:
            studies.append({"title": title, "page": page} | typed(Path(place), page, folder / source, called))
        print(title, studies[-1]["seconds"], studies[-1]["models"]["BNCDE"]["all"], flush=True)
    content = provenance("python -m bench.real_records FOLDER") | {"studies": studies}
    write_result("real-records", content, page_of(content), to)


def typed(place: Path, page: str, source: Path, called: str) -> dict[str, Any]:
    """The commands of a page, in an empty folder."""
    (block,) = COMMANDS.findall((HOW_TO / page).read_text(encoding="utf-8"))
    (place / called).symlink_to(source.resolve())
    commands = [took(line, place) for line in block.splitlines()]
    learn, judge = (cp.read_cohort(place / name) for name in ("learn", "judge"))
    last = cp.LastValue(max_horizon=HORIZON).fit(learn)
    models = {"BNCDE": cp.load(place / "model.safetensors"), "LastValue": last}
    said = json.loads(run("counterpath check icu --json", place).stdout)
    return {
        "commands": commands,
        "seconds": sum(command["seconds"] for command in commands),
        "processor_seconds": sum(command["processor_seconds"] for command in commands),
        "verdict": said["verdict"],
        "learned_from": counts(learn),
        "judged_on": counts(judge),
        "support": UNSEEN.findall((place / "report.html").read_text(encoding="utf-8")),
        "models": {name: figures(model.evaluate(judge).unscaled()) for name, model in models.items()},
    }


def took(line: str, place: Path) -> dict[str, Any]:
    """Of one command; other work may share the cores."""
    before, began = resource.getrusage(resource.RUSAGE_CHILDREN), time.perf_counter()
    run(line, place)
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    used = after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime
    return {"command": line, "seconds": time.perf_counter() - began, "processor_seconds": used}


def run(line: str, place: Path) -> subprocess.CompletedProcess[str]:
    program = Path(sys.executable).with_name("counterpath")
    done = subprocess.run(
        [program, *shlex.split(line)[1:]], cwd=place, capture_output=True, text=True, check=False, env=os.environ
    )
    if done.returncode:
        raise SystemExit(f"{line}\n{done.stderr}")
    return done


def counts(cohort: Cohort) -> dict[str, int]:
    return {"stays": len(cohort), "persons": len(np.unique(cohort.person_of_patient))}


def figures(evaluation: Evaluation) -> dict[str, Any]:
    """Of all forecasts together and by how far ahead, in the outcome's unit, with standard errors by patient."""
    found = {score.bin: _figures(score) for score in evaluation.scores}
    return {"all": _figures(evaluation.overall), "by_elapsed": found, "verdict": evaluation.verdict}


def _figures(score: Scores) -> dict[str, Any]:
    held = score.coverage[0.95]
    return {
        "outcomes": score.points,
        "patients": score.patients,
        "coverage_95": [held.value, held.standard_error],
        "width_95": score.width[0.95],
        "crps": [score.crps.value, score.crps.standard_error],
    }


def page_of(content: dict[str, Any]) -> str:
    """A table for each source, and what it cost."""
    parts = [
        "# Real records, from a file to a report\n\n"
        f"Written by `{content['command']}` on {content['processor']} ({content['cores']} cores), Python "
        f"{content['python']}, jax {content['versions']['jax']}, commit `{content['commit'][:10]}`. Figures: "
        "`real-records.json`.\n\n"
        "The commands of two how-to pages, typed one after the other. The extracts are public and small, so this shows "
        "that the way works, and little else: what may and may not be concluded stands on each page. ± is one standard "
        "error, by patient.\n"
    ]
    for study in content["studies"]:
        learned, judged = (study[name] for name in ("learned_from", "judged_on"))
        parts.append(
            f"\n## {study['title']}\n\n"
            f"[The commands](../how-to/{study['page']}). {learned['stays']} stays of {learned['persons']} persons were "
            f"learned from, {judged['stays']} stays of {judged['persons']} others were judged. The report says of its "
            f"plan, and of what it is compared with: {'; '.join(study['support']) or 'nothing'}.\n\n"
            "| model | outcomes | 95% intervals held | median width | CRPS |\n|---|---|---|---|---|\n"
        )
        parts += [_row(f"`{name}`", model["all"]) for name, model in study["models"].items()]
        parts += [_row(f"`BNCDE`, {name}", own) for name, own in study["models"]["BNCDE"]["by_elapsed"].items()]
        parts.append(
            f"\n`counterpath evaluate`: {study['models']['BNCDE']['verdict']}\n\n"
            "| command | seconds | of processors |\n|---|---|---|\n"
        )
        parts += [
            f"| `{took['command']}` | {took['seconds']:.0f} | {took['processor_seconds']:.0f} |\n"
            for took in study["commands"]
        ]
        parts.append(f"| all | {study['seconds']:.0f} | {study['processor_seconds']:.0f} |\n")
    return "".join(parts)


def _row(name: str, own: dict[str, Any]) -> str:
    (held, held_error), (crps, crps_error) = own["coverage_95"], own["crps"]
    return (
        f"| {name} | {own['outcomes']:,} | {100 * held:.1f} ± {100 * held_error:.1f}% | {own['width_95']:.1f} "
        f"| {crps:.2f} ± {crps_error:.2f} |\n"
    )


if __name__ == "__main__":
    typer.run(main)
