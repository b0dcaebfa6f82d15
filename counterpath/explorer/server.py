"""Serving the explorer: on this machine alone unless a token guards it."""

from __future__ import annotations

import asyncio
import socket
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from tempfile import TemporaryFile
from urllib.parse import quote

import h11
import uvicorn
from uvicorn.protocols.http.h11_impl import H11Protocol, RequestResponseCycle

from counterpath.cohort import Cohort, CohortError
from counterpath.estimators import BNCDE, Estimator, load
from counterpath.estimators.model_file import ModelFileError
from counterpath.explorer.app import create_app
from counterpath.explorer.guard import LOCAL_NAMES
from counterpath.simulators import simulate_tumor_growth
from counterpath.training.compiled import keep_compiled

DEMO_PATIENTS, DEMO_TRAIN, DEMO_STEPS = 100, 300, 600
MOST_CONNECTIONS = 500
IDLE_SECONDS = 5
LOOK_SECONDS = 10  # until a request's head must be there, and some of an answer taken


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
    name = f"[{host}]" if ":" in host else host
    where = f"http://{name}:{listener.getsockname()[1]}/"
    opened_with = f"?token={quote(token, safe='')}" if token else ""
    say(f"The explorer is at {where}{opened_with}. Ctrl-C stops it.")
    config = uvicorn.Config(
        app,
        log_level="error",
        access_log=False,  # addresses would hold patients' names
        server_header=False,
        limit_concurrency=MOST_CONNECTIONS,
        http=Impatient,
        timeout_keep_alive=IDLE_SECONDS,
        timeout_graceful_shutdown=IDLE_SECONDS,
        ws="none",
    )
    uvicorn.Server(config).run(sockets=[listener])


class Impatient(H11Protocol):
    """Closes a connection on which the head of a request is not there in time, or whose client takes no answer."""

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        """Look at it from time to time."""
        super().connection_made(transport)
        self._look_again()

    def _look_again(self) -> None:
        self.loop.call_later(LOOK_SECONDS, self._look, self.cycle, self.transport.get_write_buffer_size())

    def _look(self, last: RequestResponseCycle | None, unsent_then: int) -> None:
        if self.transport.is_closing() and not unsent_then:
            return
        unsent = self.transport.get_write_buffer_size()
        asks_in_vain = self.conn.their_state is h11.IDLE and not unsent  # however it trickles in
        takes_nothing = unsent > 0 and unsent == unsent_then
        if self.cycle is last and (asks_in_vain or takes_nothing):
            self.transport.abort()
        else:
            self._look_again()


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
    with suppress(FileNotFoundError, ModelFileError):  # there is none yet, or it has been spoiled
        return load(path), patients
    _check_can_be_kept(folder)  # before some minutes of work
    model = BNCDE(5.0, steps=DEMO_STEPS).fit(
        simulate_tumor_growth(patients=DEMO_TRAIN, seed=0).cohort, progress=progress
    )
    model.save(path)
    return model, patients


def _check_can_be_kept(folder: Path) -> None:
    try:
        folder.mkdir(parents=True, exist_ok=True)
        with TemporaryFile(dir=folder):
            pass
    except OSError as error:
        raise OSError(
            f"The model cannot be kept in {folder} ({error.strerror}). Let XDG_CACHE_HOME name a folder to write in."
        ) from error
