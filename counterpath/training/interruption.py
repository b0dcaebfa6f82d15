"""Ctrl-C while a model is trained."""

from __future__ import annotations

import signal
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from types import FrameType


@contextmanager
def hearing_interrupts() -> Iterator[Callable[[], None]]:
    """A function that raises `KeyboardInterrupt` if there has been one, though nobody may have noticed.

    Python drops an exception that is raised within a callback of its garbage collector, and jax has such a callback: a
    Ctrl-C at that moment would be lost.
    """
    usual = signal.getsignal(signal.SIGINT)
    if usual is not signal.default_int_handler or threading.current_thread() is not threading.main_thread():
        yield lambda: None  # somebody else decides what Ctrl-C does
        return
    heard = False

    def note(number: int, frame: FrameType | None) -> None:
        nonlocal heard
        heard = True
        signal.default_int_handler(number, frame)

    def stop_if_interrupted() -> None:
        if heard:
            raise KeyboardInterrupt

    signal.signal(signal.SIGINT, note)
    try:
        yield stop_if_interrupted
    finally:
        signal.signal(signal.SIGINT, usual)
