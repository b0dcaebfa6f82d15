"""Explorers for tests: one that is really served, and one within the process."""

from __future__ import annotations

import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager

import httpx2
import polars as pl
import uvicorn
from small_models import fit_small, small_bncde
from starlette.testclient import TestClient

import counterpath as cp
from counterpath.cohort import Cohort
from counterpath.estimators import Estimator
from counterpath.explorer import create_app
from counterpath.explorer.server import listen

NASTY = "<script>window.harmed = true</script>"


def some_model() -> Estimator:
    """Small, and fitted."""
    return fit_small(small_bncde(epochs=4))


def some_patients() -> Cohort:
    """Twelve whom the model has not seen; the name of one would like to be a program."""
    cohort = cp.simulate_tumor_growth(12, seed=5).cohort
    return cohort.renamed(pl.Series([NASTY if i == 3 else f"P/{i}" for i in range(12)]))


class ready(TestClient):  # noqa: N801 (used as a context)
    """Within the process, once it is ready."""

    def __init__(self, model: Estimator, cohort: Cohort | None = None, **options):
        super().__init__(create_app(model, cohort, **options), base_url="http://127.0.0.1:8000")
        self.wanted = {"Authorization": f"Bearer {options['token']}"} if "token" in options else {}

    def __enter__(self):
        super().__enter__()
        while self.get("/api/ready", headers=self.wanted).status_code == 503:
            time.sleep(0.05)
        return self


@contextmanager
def served(model: Estimator, cohort: Cohort | None, **options) -> Iterator[str]:
    """Its address, once it is ready."""
    listener = listen("127.0.0.1", 0)
    config = uvicorn.Config(create_app(model, cohort, **options), log_level="error", access_log=False, ws="none")
    server = uvicorn.Server(config)
    thread = threading.Thread(target=server.run, kwargs={"sockets": [listener]}, daemon=True)
    thread.start()
    url = f"http://127.0.0.1:{listener.getsockname()[1]}"
    try:
        for _ in range(600):
            try:
                if httpx2.get(f"{url}/api/ready").status_code == 200:
                    break
            except httpx2.TransportError:
                pass
            time.sleep(0.1)
        yield url
    finally:
        server.should_exit = True
        thread.join(10)
        listener.close()
