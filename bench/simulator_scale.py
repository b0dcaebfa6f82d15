"""How long it takes, and how much memory, to simulate tumour growth."""

from __future__ import annotations

import json
import subprocess
import sys

from bench.provenance import provenance, write_result

RUNS = [("daily", 10_000), ("daily", 30_000), ("daily", 100_000), ("continuous", 10_000)]

# Runs in a process of its own, on one core, so that time and memory are this job's alone.
JOB = """
import json, os, resource, sys, time
os.sched_setaffinity(0, {0})
import counterpath as cp
cp.simulate_tumor_growth(10)
start = time.perf_counter()
study = cp.simulate_tumor_growth(int(sys.argv[2]), seed=1, continuous=sys.argv[1] == "continuous")
seconds = time.perf_counter() - start
print(json.dumps({
    "records": study.cohort.records.rows,
    "seconds": seconds,
    "peak_gb": resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 2**20,
}))
"""


def main() -> None:
    record = provenance("make bench")
    runs = []
    for variant, patients in RUNS:
        job = subprocess.run(
            [sys.executable, "-c", JOB, variant, str(patients)], capture_output=True, text=True, check=True
        )
        runs.append({"variant": variant, "patients": patients} | json.loads(job.stdout))
        run = runs[-1]
        print(
            f"{variant:<10}  {patients:>8,} patients  {run['seconds']:6.2f} s  peak {run['peak_gb']:.2f} GB", flush=True
        )
    growth = (runs[2]["seconds"] / runs[2]["patients"]) / (runs[0]["seconds"] / runs[0]["patients"])
    print(f"Time per patient at 100,000 is {growth:.2f} of that at 10,000.")
    content = record | {"time_per_patient_largest_over_smallest": growth, "runs": runs}
    write_result("simulator-scale", content, page(content))


def page(content: dict) -> str:
    rows = "\n".join(
        f"| {r['variant']} | {r['patients']:,} | {r['records']:,} | {r['seconds']:.2f} | {r['peak_gb']:.2f} |"
        for r in content["runs"]
    )
    return f"""# Simulating tumour growth

Written by `{content["command"]}` on one core of {content["processor"]}, Python {content["python"]}, commit
`{content["commit"][:10]}`. Figures: `simulator-scale.json`. 60 days with treatments, visits and the cohort's tables.

| variant | patients | records | seconds | peak (GB) |
|---|---|---|---|---|
{rows}

Time per patient at 100,000 is {content["time_per_patient_largest_over_smallest"]:.2f} of that at 10,000: 1 is linear.
"""


if __name__ == "__main__":
    main()
