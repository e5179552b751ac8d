"""Handling of Ctrl-C in the middle of an update."""

from __future__ import annotations

import signal
import threading
from collections.abc import Iterator
from contextlib import contextmanager


@contextmanager
def deferred_interrupt() -> Iterator[threading.Event]:
    """Set the event at the first Ctrl-C, so that the current update can end; a second one raises KeyboardInterrupt."""
    received = threading.Event()
    if threading.current_thread() is not threading.main_thread():
        yield received
        return

    def handle(*_: object) -> None:
        received.set()
        signal.signal(signal.SIGINT, signal.default_int_handler)

    before = signal.signal(signal.SIGINT, handle)
    try:
        yield received
    finally:
        signal.signal(signal.SIGINT, before)
