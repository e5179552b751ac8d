"""The log of a training as server-sent events: what is there, and what is appended while it runs."""

from __future__ import annotations

import asyncio
import json
import time
from collections.abc import AsyncIterator, Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

MAX_LINE = 1 << 26  # bytes of an entry
MAX_ENTRIES = 2_000  # that are read at a time
POLL_SECONDS = 0.4
STREAM_SECONDS = 120.0  # after which a stream ends; the browser asks for the rest
LIVE = ("running", "stopping", "unfinished")
"""states of a training whose log may grow: another program may train a model that is not finished"""
OMITTED = ("probes", "steps", "validation_seconds", "final_seconds", "update_seconds")
"""fields of entries that a curve does not need; the traces come from `history`"""


@dataclass
class LogTail:
    """Reads the entries of a growing log. A line that is still being written is left for the next time."""

    path: Path
    position: int = 0  # bytes that were read
    restarted: bool = False  # whether the log was shortened or replaced since: entries begin anew

    def read(self) -> list[dict[str, Any]]:
        """Return the entries since the last call."""
        self.restarted = False
        try:
            size = self.path.stat().st_size
            if size < self.position:
                self._restart()
            with self.path.open("rb") as file:
                return self._entries(file)
        except FileNotFoundError:
            if self.position:
                self._restart()
            return []

    def _entries(self, file: Any) -> list[dict[str, Any]]:
        entries: list[dict[str, Any]] = []
        file.seek(self.position)
        while len(entries) < MAX_ENTRIES and (line := file.readline(MAX_LINE)).endswith(b"\n"):
            try:
                entry = json.loads(line)
            except (
                ValueError,
                RecursionError,
            ):  # the log was replaced, and this is the middle of a line
                if self.restarted or not self.position:
                    self.position += len(line)  # or a line that is damaged
                    continue
                self._restart()
                file.seek(0)
                entries = []
                continue
            self.position += len(line)
            if isinstance(entry, dict):
                entries.append({name: value for name, value in entry.items() if name not in OMITTED})
        return entries

    def _restart(self) -> None:
        self.position, self.restarted = 0, True


async def log_events(
    tail: LogTail,
    describe: Callable[[], dict[str, Any]],
    is_stopping: Callable[[], bool] = lambda: False,
    seconds: float = STREAM_SECONDS,
) -> AsyncIterator[str]:
    """Yield events: `status` when the training's description changed, `entries` of its log, `restart` when the log
    begins anew, and `end` when nothing more will come. The id of an event is the place in the log.

    `is_stopping`: whether the server ends, which waits for its streams.
    """
    until, before = time.monotonic() + seconds, None
    while True:
        status = describe()  # first: what was logged before a training ended is read after it
        if status != before:
            before = status
            yield event("status", status, tail.position)
        entries = await asyncio.to_thread(tail.read)
        if tail.restarted:
            yield event("restart", {}, 0)
        if entries:
            yield event("entries", entries, tail.position)
        elif status["state"] not in LIVE:
            yield event("end", {}, tail.position)
            return
        if time.monotonic() > until or is_stopping():
            return
        if len(entries) < MAX_ENTRIES:
            await asyncio.sleep(POLL_SECONDS)


def event(name: str, data: Any, position: int) -> str:
    """Return a server-sent event. JSON has no line breaks, so its data are one line."""
    return f"id: {position}\nevent: {name}\ndata: {json.dumps(data, ensure_ascii=False)}\n\n"
