"""How long it takes, and how much memory, to read a large cohort from Parquet and check it."""

from __future__ import annotations

import json
import subprocess
import sys
import tempfile
from pathlib import Path

import numpy as np
import polars as pl

from bench.provenance import provenance, write_result

SIZES = (12_500, 25_000, 50_000, 100_000)
ROWS_PER_PATIENT = 50
SCHEMA = """\
format = 1
time_unit = "hour"
outcomes = [{ name = "pressure", lower = 0.0 }]
covariates = [{ name = "heart_rate" }]
follow_up_end = "discharge"
"""

# Runs in a process of its own, so that the peak of memory is this job's alone.
JOB = """
import json, resource, sys, time
import counterpath as cp
cp.Cohort
start = time.perf_counter()
cohort = cp.read_cohort(sys.argv[1])
read = time.perf_counter()
report = cohort.check()
done = time.perf_counter()
print(json.dumps({
    "patients": len(cohort),
    "records": cohort.records.rows,
    "doses": cohort.events.rows,
    "read_s": read - start,
    "check_s": done - read,
    "peak_gb": resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 2**20,
    "verdict": report.verdict,
}))
"""


def main() -> None:
    runs = []
    for layout, sizes in (("long", SIZES), ("wide", SIZES[-1:])):
        for patients in sizes:
            with tempfile.TemporaryDirectory() as folder:
                write_tables(Path(folder), patients, layout)
                job = subprocess.run([sys.executable, "-c", JOB, folder], capture_output=True, text=True, check=True)
            run = {"layout": layout, "rows": patients * ROWS_PER_PATIENT} | json.loads(job.stdout)
            run["seconds"] = run["read_s"] + run["check_s"]
            runs.append(run)
            print(
                f"{layout}  {patients:>8,} patients  {run['rows']:>10,} rows  read {run['read_s']:6.2f} s  "
                f"check {run['check_s']:5.2f} s  peak {run['peak_gb']:.2f} GB",
                flush=True,
            )
    long = [run for run in runs if run["layout"] == "long"]
    growth = (long[-1]["seconds"] / long[-1]["rows"]) / (long[0]["seconds"] / long[0]["rows"])
    print(f"Time per row at {long[-1]['rows']:,} rows is {growth:.2f} of that at {long[0]['rows']:,}.")
    content = provenance("make bench") | {"time_per_row_largest_over_smallest": growth, "runs": runs}
    write_result("cohort-scale", content, page(content))


def write_tables(folder: Path, patients: int, layout: str) -> None:
    """Irregular visits with a pressure and a heart rate, five doses each, and a discharge."""
    rng = np.random.default_rng(patients)
    visits = ROWS_PER_PATIENT // 2 if layout == "long" else ROWS_PER_PATIENT
    ids = np.repeat(np.arange(patients), visits)
    times = np.sort(rng.uniform(0, 200, (patients, visits)), axis=1).ravel()
    wide = pl.DataFrame(
        {
            "patient": ids,
            "time": times,
            "pressure": rng.normal(80, 10, len(ids)).clip(20),
            "heart_rate": rng.normal(90, 12, len(ids)),
        }
    )
    table = wide.unpivot(index=["patient", "time"]).sort("patient", "time") if layout == "long" else wide
    table.write_parquet(folder / "observations.parquet")
    pl.DataFrame(
        {
            "patient": np.repeat(np.arange(patients), 5),
            "treatment": "fluid",
            "start": rng.uniform(0, 200, patients * 5),
            "dose": rng.choice([250.0, 500.0], patients * 5),
        }
    ).write_parquet(folder / "treatments.parquet")
    pl.DataFrame(
        {"patient": np.arange(patients), "age": rng.integers(20, 90, patients), "discharge": np.full(patients, 210.0)}
    ).write_parquet(folder / "static.parquet")
    (folder / "schema.toml").write_text(SCHEMA)


def page(content: dict) -> str:
    rows = "\n".join(
        f"| {r['layout']} | {r['patients']:,} | {r['rows']:,} | {r['doses']:,} "
        f"| {r['read_s']:.1f} | {r['check_s']:.1f} | {r['peak_gb']:.2f} |"
        for r in content["runs"]
    )
    return f"""# Reading and checking a large cohort

Written by `{content["command"]}` on {content["processor"]} ({content["cores"]} cores), Python {content["python"]},
polars {content["versions"]["polars"]}, commit `{content["commit"][:10]}`. Figures: `cohort-scale.json`.

`cp.read_cohort` reads a folder of Parquet files; `cohort.check()` looks for what a careful colleague would. Each line
is a process of its own; the peak counts everything in it.

| layout | patients | observation rows | doses | read (s) | check (s) | peak (GB) |
|---|---|---|---|---|---|---|
{rows}

Time per row of the largest long table is {content["time_per_row_largest_over_smallest"]:.2f} of that of the smallest:
1 is linear.
"""


if __name__ == "__main__":
    main()
