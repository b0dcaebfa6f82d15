"""Serving the explorer: on this machine alone unless a token guards it."""

from __future__ import annotations

import socket
from collections.abc import Callable
from pathlib import Path

import uvicorn

from counterpath.cohort import Cohort, CohortError
from counterpath.estimators import BNCDE, Estimator, load
from counterpath.explorer.app import create_app
from counterpath.explorer.guard import LOCAL_NAMES
from counterpath.simulators import simulate_tumor_growth
from counterpath.training.compiled import keep_compiled

DEMO_PATIENTS, DEMO_TRAIN, DEMO_STEPS = 100, 300, 600
MOST_CONNECTIONS = 500
IDLE_SECONDS = 5


def serve(
    model: Estimator,
    cohort: Cohort | None,
    *,
    host: str,
    port: int,
    token: str | None,
    say: Callable[[str], None],
) -> None:
    """Until it is stopped.

    Args:
        model: Fitted.
        cohort: Whom one can choose.
        host: Address to listen on.
        port: Likewise; 0 for any that is free.
        token: Without which nothing is answered.
        say: Told the address.
    """
    local = host in (*LOCAL_NAMES, "::1")
    if not local and not token:
        raise CohortError(f"Anybody who reaches {host} could ask. Add --token, or leave --host out.")
    keep_compiled()
    app = create_app(model, cohort, token=token, local_only=local)
    listener = listen(host, port)
    where = f"http://{host}:{listener.getsockname()[1]}/"
    say(f"The explorer is at {where}{f'?token={token}' if token else ''}. Ctrl-C stops it.")
    config = uvicorn.Config(
        app,
        log_level="error",
        access_log=False,  # addresses would hold patients' names
        server_header=False,
        limit_concurrency=MOST_CONNECTIONS,
        timeout_keep_alive=IDLE_SECONDS,
        timeout_graceful_shutdown=IDLE_SECONDS,
        ws="none",
    )
    uvicorn.Server(config).run(sockets=[listener])


def listen(host: str, port: int) -> socket.socket:
    """A socket at the address, which sends at once."""
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    # The protocol is named, since asyncio sends answers at once (not after Nagle's 40 ms) on such sockets alone.
    listener = socket.socket(family, socket.SOCK_STREAM, socket.IPPROTO_TCP)
    listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    try:
        listener.bind((host, port))
    except OSError as error:
        listener.close()
        raise OSError(f"Cannot listen on {host}:{port} ({error.strerror}). Choose another --port.") from error
    return listener


def demo_model(folder: Path, *, progress: bool) -> tuple[Estimator, Cohort]:
    """A small model of simulated patients, trained once and kept, and patients whom it has not seen."""
    patients = simulate_tumor_growth(patients=DEMO_PATIENTS, seed=1).cohort
    path = folder / "tumours.safetensors"
    if path.exists():
        return load(path), patients
    model = BNCDE(5.0, steps=DEMO_STEPS).fit(
        simulate_tumor_growth(patients=DEMO_TRAIN, seed=0).cohort, progress=progress
    )
    folder.mkdir(parents=True, exist_ok=True)
    model.save(path)
    return model, patients
