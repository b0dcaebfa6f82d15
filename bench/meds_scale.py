"""How long it takes, and how much memory, to import a large MEDS data set, by its events and by its files."""

from __future__ import annotations

import json
import subprocess
import sys
import tempfile
from pathlib import Path

import numpy as np
import polars as pl

from bench.provenance import provenance, write_result

EVENTS_PER_SUBJECT, HOURS = 2_500, 60
# Events and files: more of both, and as many events in more files.
SIZES = ((2_500_000, 25), (5_000_000, 50), (10_000_000, 100), (10_000_000, 10), (10_000_000, 400))
SPEC = "icu-haemodynamics"
CODES = {  # code, unit and usual value of what the spec takes, once an hour
    "LAB//220180//mmHg": ("mmHg", 65.0),
    "LAB//220179//mmHg": ("mmHg", 120.0),
    "LAB//220181//mmHg": ("mmHg", 80.0),
    "LAB//220045//bpm": ("bpm", 85.0),
}
OTHERS = 2_000  # codes that the spec does not take

# Runs in a process of its own, so that the peak of memory is this job's alone.
JOB = """
import json, sys, time
import flexible_schema, meds, pyarrow.parquet
import counterpath as cp
from counterpath.importers import read_meds

def peak():
    # Of this program alone; what getrusage says would hold the peak of the one that started it.
    (line,) = (line for line in open("/proc/self/status") if line.startswith("VmHWM"))
    return int(line.split()[1]) / 2**20

libraries = peak()
start = time.perf_counter()
if sys.argv[2] == "whole":
    import polars as pl
    print(json.dumps({"rows": pl.read_parquet(sys.argv[1] + "/data/**/*.parquet").height, "peak_gb": peak()}))
else:
    cohort = read_meds(sys.argv[1], sys.argv[2])
    print(json.dumps({
        "patients": len(cohort),
        "records": cohort.records.rows,
        "seconds": time.perf_counter() - start,
        "libraries_gb": libraries,
        "peak_gb": peak(),
    }))
"""


def main() -> None:
    runs, whole = [], {}
    for events, files in SIZES:
        with tempfile.TemporaryDirectory() as folder:
            write_events(Path(folder), events, files)
            run = {"events": events, "files": files} | _job(folder, SPEC)
            if events == SIZES[-1][0] and not whole:
                whole = _job(folder, "whole")
        runs.append(run)
        print(
            f"{events:>11,} events in {files:>4} files  {run['seconds']:6.1f} s  peak {run['peak_gb']:.2f} GB, "
            f"of which libraries {run['libraries_gb']:.2f}",
            flush=True,
        )
    content = provenance("python -m bench.meds_scale") | {"runs": runs, "whole": whole}
    write_result("meds-scale", content, page(content))


def _job(folder: str, what: str) -> dict:
    done = subprocess.run([sys.executable, "-c", JOB, folder, what], capture_output=True, text=True, check=True)
    return json.loads(done.stdout)


def write_events(folder: Path, events: int, files: int) -> None:
    """Stays of intensive care, most of whose events the spec does not take."""
    subjects = np.array_split(np.arange(events // EVENTS_PER_SUBJECT), files)
    data = folder / "data" / "train"
    data.mkdir(parents=True)
    for number, some in enumerate(subjects):
        stays_of(some, np.random.default_rng(number)).write_parquet(data / f"{number}.parquet")


def stays_of(subjects: np.ndarray, rng: np.random.Generator) -> pl.DataFrame:
    """Events of these subjects, sorted."""
    begin, end = (np.full(len(subjects), hour * 3600.0) for hour in (0, HOURS))
    parts = [
        _rows(subjects, begin, "ICU_ADMISSION//MICU"),
        _rows(subjects, end, "ICU_DISCHARGE//MICU"),
        _rows(subjects, begin + 7_200, "INFUSION_START//221906", 0.1, "mcg/kg/min", order=1),
        _rows(subjects, begin + 36_000, "INFUSION_END//221906", 0.1, "mcg/kg/min", order=1),
    ]
    hourly = np.repeat(subjects, HOURS - 1)
    for code, (unit, usual) in CODES.items():
        times = np.tile(np.arange(HOURS - 1) * 3600.0, len(subjects)) + rng.uniform(0, 3600, len(hourly))
        parts.append(_rows(hourly, times, code, rng.normal(usual, usual / 20, len(hourly)), unit))
    rest = EVENTS_PER_SUBJECT - sum(part.height for part in parts) // len(subjects)
    others = np.repeat(subjects, rest)
    codes = pl.Series([f"LAB//{number}//mg/dL" for number in range(300_000, 300_000 + OTHERS)])
    chosen = codes.gather(rng.integers(0, OTHERS, len(others)))
    parts.append(
        _rows(others, rng.uniform(0, HOURS * 3600, len(others)), chosen, rng.normal(size=len(others)), "mg/dL")
    )
    return pl.concat(parts).sort("subject_id", "time", maintain_order=True)


def _rows(
    subjects: np.ndarray,
    seconds: np.ndarray,
    code: str | pl.Series,
    value: object = None,
    unit: str = "",
    order: int = 0,
) -> pl.DataFrame:
    return pl.DataFrame({"subject_id": subjects, "seconds": seconds}).select(
        pl.col("subject_id").cast(pl.Int64),
        (pl.datetime(2150, 1, 1) + pl.duration(microseconds=pl.col("seconds") * 1e6)).alias("time"),
        pl.lit(code).alias("code"),
        pl.lit(value).cast(pl.Float32).alias("numeric_value"),
        pl.lit(unit or None, dtype=pl.String).alias("unit"),
        pl.col("subject_id").cast(pl.Int64).alias("icustay_id"),
        pl.lit(order or None, dtype=pl.Int64).alias("order_id"),
    )


def page(content: dict) -> str:
    rows = "\n".join(
        f"| {r['events']:,} | {r['files']:,} | {r['patients']:,} | {r['records']:,} | {r['seconds']:.1f} "
        f"| {r['peak_gb']:.2f} | {r['peak_gb'] - r['libraries_gb']:.2f} |"
        for r in content["runs"]
    )
    return f"""# Importing a large MEDS data set

Written by `{content["command"]}` on {content["processor"]} ({content["cores"]} cores), Python {content["python"]},
polars {content["versions"]["polars"]}, commit `{content["commit"][:10]}`. Figures: `meds-scale.json`.

`cp.read_meds` with the ready spec `{SPEC}` on made-up stays of {EVENTS_PER_SUBJECT:,} events, a tenth of which it
takes. Each line is a process of its own; the peak counts everything in it, the last column what came on top of the
libraries. To read the {content["whole"]["rows"]:,} events of one of these as a whole, and do nothing with them, has a
peak of {content["whole"]["peak_gb"]:.2f} GB.

| events | files | stays | records kept | seconds | peak (GB) | on top (GB) |
|---|---|---|---|---|---|---|
{rows}
"""


if __name__ == "__main__":
    main()
