"""The one thread in which models are loaded and run."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import TypeVar

from regard.runtime.heap import HeapTrimmer
from regard.serving.errors import RequestError

T = TypeVar("T")


class ComputeThread:
    """Runs functions one after the other in a thread of its own, while the event loop goes on.

    torch uses all cores for one computation; two at a time would only be in each other's way. At most `max_waiting`
    functions wait; a RequestError refuses more. Batches of many shapes fragment the
    heap, which is trimmed now and then.
    """

    def __init__(self, max_waiting: int = 512) -> None:
        self._executor = ThreadPoolExecutor(1, "regard-compute")
        self._max_waiting, self._trimmer = max_waiting, HeapTrimmer()
        self.pending = 0  # functions that wait or run

    async def run(self, function: Callable[[], T]) -> T:
        """Run a function in the thread and return its result, or raise its error."""
        if self.pending > self._max_waiting:
            raise too_busy()
        self.pending += 1
        try:
            return await asyncio.get_running_loop().run_in_executor(self._executor, self._run, function)
        finally:
            self.pending -= 1

    def _run(self, function: Callable[[], T]) -> T:
        try:
            return function()
        finally:
            self._trimmer.trim_if_due()

    def close(self) -> None:
        """Wait until the function that is running has ended; those that wait are cancelled."""
        self._executor.shutdown(wait=True, cancel_futures=True)


def too_busy() -> RequestError:
    """Return the error for a request that finds no room."""
    return RequestError(503, "too many requests are waiting; try again in a second", {"Retry-After": "1"})
