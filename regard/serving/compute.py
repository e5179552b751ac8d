"""The one thread in which models are loaded and run."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import TypeVar

T = TypeVar("T")


class ComputeThread:
    """Runs functions one after the other in a thread of its own, while the event loop goes on.

    torch uses all cores for one computation; two at a time would only be in each other's way.
    """

    def __init__(self) -> None:
        self._executor = ThreadPoolExecutor(1, "regard-compute")

    async def run(self, function: Callable[[], T]) -> T:
        """Run a function in the thread and return its result, or raise its error."""
        return await asyncio.get_running_loop().run_in_executor(self._executor, function)

    def close(self) -> None:
        """Wait until the function that is running has ended; those that wait are cancelled."""
        self._executor.shutdown(wait=True, cancel_futures=True)
