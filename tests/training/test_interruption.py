"""Ctrl-C is heard, even where Python drops the exception."""

import signal
import threading

import pytest

from counterpath.training.interruption import hearing_interrupts


@pytest.fixture(autouse=True)
def usual_handler():
    """As in a terminal; a process in the background may have been started with Ctrl-C switched off."""
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    yield
    signal.signal(signal.SIGINT, before)


def test_an_interrupt_that_was_dropped_is_raised_at_the_next_look():
    with hearing_interrupts() as stop_if_interrupted:
        stop_if_interrupted()
        with pytest.raises(KeyboardInterrupt):
            signal.raise_signal(signal.SIGINT)  # as usual; but suppose that nobody heard it
        with pytest.raises(KeyboardInterrupt):
            stop_if_interrupted()
    assert signal.getsignal(signal.SIGINT) is signal.default_int_handler


def test_a_handler_of_the_users_own_stays():
    heard = []
    before = signal.signal(signal.SIGINT, lambda *_: heard.append("mine"))
    try:
        with hearing_interrupts() as stop_if_interrupted:
            signal.raise_signal(signal.SIGINT)
            stop_if_interrupted()
    finally:
        signal.signal(signal.SIGINT, before)
    assert heard == ["mine"]


def test_other_threads_leave_signals_alone():
    found = []

    def train():
        with hearing_interrupts():
            found.append(signal.getsignal(signal.SIGINT))

    thread = threading.Thread(target=train)
    thread.start()
    thread.join()
    assert found == [signal.default_int_handler]
