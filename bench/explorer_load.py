"""How quickly the explorer answers one user, and fifty at once, on loopback."""

from __future__ import annotations

import asyncio
import re
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

import httpx2
import numpy as np

from bench.provenance import provenance, write_result
from counterpath.explorer.server import demo_model

USERS, SECONDS, IDLE_QUESTIONS = 50, 60.0, 60
HORIZONS, DRAWS, AT = [1.0, 2.0, 3.0, 4.0, 5.0], 100, 50.0
START = "from counterpath.cli import main; main()"
THINKS = 0.5  # seconds of a user between an answer and the next question, on average


def main() -> None:
    with tempfile.TemporaryDirectory() as place:
        folder = Path(place)
        _, patients = demo_model(folder, progress=False)
        patients.save(folder / "patients")
        names = [str(name) for name in patients.patients]
        arguments = ["explore", folder / "tumours.safetensors", "--data", folder / "patients", "--port", "0"]
        command = [sys.executable, "-c", START, *map(str, arguments)]
        with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as server:
            try:
                found = re.search(r"http://[^/]+", server.stdout.readline() if server.stdout else "")
                assert found is not None
                measured = asyncio.run(_measure(found.group(), names))
            finally:
                server.kill()
    content = provenance("python -m bench.explorer_load") | measured
    write_result("explorer-load", content, page_of(content))
    idle = f"idle {measured['idle_median_s'] * 1e3:.0f} ms"
    crowd = f"median {measured['median_s'] * 1e3:.0f} ms, 99th percentile {measured['p99_s'] * 1e3:.0f} ms"
    print(f"{idle}; {measured['answers']:,} answers to {USERS} users: {measured['errors']} errors, {crowd}")


async def _measure(url: str, names: list[str]) -> dict[str, Any]:
    async with httpx2.AsyncClient(base_url=url, timeout=60, limits=httpx2.Limits(max_connections=USERS)) as client:
        while (await client.get("/api/ready")).status_code != 200:
            await asyncio.sleep(0.2)
        idle = [await _ask(client, names[i % len(names)], 0.1 * i) for i in range(IDLE_QUESTIONS)]
        crowd = await _crowd(client, names, SECONDS)
    waits = np.array([wait for wait, _ in crowd])
    return {
        "users": USERS,
        "seconds": SECONDS,
        "idle_median_s": float(np.median([wait for wait, _ in idle])),
        "answers": len(crowd),
        "errors": sum(status != 200 for _, status in crowd),
        "median_s": float(np.median(waits)),
        "p99_s": float(np.quantile(waits, 0.99)),
    }


async def _crowd(client: httpx2.AsyncClient, names: list[str], seconds: float) -> list[tuple[float, int]]:
    end, found = time.perf_counter() + seconds, []

    async def user(number: int) -> None:
        rng = np.random.default_rng(number)
        while time.perf_counter() < end:
            found.append(await _ask(client, names[rng.integers(len(names))], float(rng.uniform(0, 5))))
            await asyncio.sleep(rng.exponential(THINKS))

    await asyncio.gather(*(user(number) for number in range(USERS)))
    return found


async def _ask(client: httpx2.AsyncClient, patient: str, at: float) -> tuple[float, int]:
    """Seconds until the answer, and its status."""
    plan = {"doses": [{"treatment": "chemotherapy", "time": at % 5.0, "dose": 5.0}]}
    body = {"patient": patient, "at": AT, "plan": plan, "horizons": HORIZONS, "draws": DRAWS}
    began = time.perf_counter()
    answer = await client.post("/api/predict", json=body)
    return time.perf_counter() - began, answer.status_code


def page_of(content: dict[str, Any]) -> str:
    return f"""# The explorer under load

Written by `{content["command"]}` on {content["processor"]} ({content["cores"]} cores), Python {content["python"]},
jax {content["versions"]["jax"]}, commit `{content["commit"][:10]}`.
Figures: `explorer-load.json`.

`counterpath explore` with a `BNCDE()` of four posteriors on loopback, asked by a program on the same machine; each
question is one patient, one plan, {DRAWS} draws of the weights and {len(HORIZONS)} horizons.

| | |
|---|---|
| one user, median | {content["idle_median_s"] * 1e3:.0f} ms |
| answers to {USERS} users in {content["seconds"]:.0f} s, who think for {THINKS:g} s | {content["answers"]:,} |
| errors | {content["errors"]} |
| median | {content["median_s"] * 1e3:.0f} ms |
| 99th percentile | {content["p99_s"] * 1e3:.0f} ms |
"""


if __name__ == "__main__":
    main()
