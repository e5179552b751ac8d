"""The workers of one command, each a process: started, watched, replaced when they die, and stopped."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any

from regard.batch.worker import WorkerTask
from regard.runtime.processes import WorkerProcess

POLL_SECONDS = 0.1
STOP_SECONDS = 20.0  # seconds in which a worker may give back its shard when it is stopped
MAX_STARTS = 3  # workers in a row that die before they are ready
MAX_DEATHS = 10  # workers in a row that die before they have translated a shard


class ShardWorker(WorkerProcess):
    """A worker process, and what it has reported."""

    def __init__(self, task: WorkerTask, errors: Path) -> None:
        self.task = task
        self.ready = False
        self.lines = self.line_notices = 0  # lines translated, and their notices
        self.notices: list[str] = []  # about the models
        self.failure: str | None = None
        super().__init__("regard.batch.worker", asdict(task), errors, task.threads, self._follow)

    def _follow(self, event: dict[str, Any]) -> None:
        self.failure = event.get("failed", self.failure)
        self.ready = self.ready or "ready" in event
        self.lines += event.get("lines", 0)
        self.line_notices += event.get("notices", 0)
        self.notices += [event["notice"]] if "notice" in event else []


class WorkerPool:
    """Workers that translate shards until none is missing. A worker that dies is replaced by a new one."""

    def __init__(self, tasks: Sequence[WorkerTask], logs: Path, say: Callable[[str], None]) -> None:
        self._logs, self._say = logs, say
        self._starts = self._deaths_at_start = self._deaths = 0  # deaths: in a row
        self._ended: list[ShardWorker] = []
        self._active = [self._started(task) for task in tasks]

    @property
    def active(self) -> int:
        return len(self._active)

    @property
    def line_notices(self) -> int:
        """notices about lines, of all workers"""
        return sum(worker.line_notices for worker in (*self._active, *self._ended))

    def notices(self) -> list[str]:
        """Return the notices about the models, each once."""
        return list(dict.fromkeys(each for worker in (*self._ended, *self._active) for each in worker.notices))

    def check(self) -> None:
        """Replace workers that died; raise a ValueError if one reports that it cannot work, or if none ever starts."""
        for index, worker in reversed(list(enumerate(self._active))):
            if not worker.has_ended:
                continue
            code, last_line = worker.wait_for_end()
            self._ended.append(worker)
            if worker.failure is not None:
                raise ValueError(worker.failure)
            if code == 0:
                del self._active[index]
                continue
            cause = f"was killed by signal {-code}" if code < 0 else f"ended with code {code}"
            self._deaths_at_start = 0 if worker.ready else self._deaths_at_start + 1
            self._deaths = 0 if worker.lines else self._deaths + 1
            if self._deaths_at_start >= MAX_STARTS or self._deaths >= MAX_DEATHS:
                problem = "no worker can start" if not worker.ready else f"{self._deaths} workers in a row died"
                raise ValueError(f"{problem}: the last one {cause}{last_line and f': {last_line}'}")
            self._say(f"a worker {cause}; another takes its place")
            self._active[index] = self._started(worker.task)

    def stop(self) -> None:
        """Stop all workers; each gives its shard back. After a second interrupt, end them at once."""
        try:
            for worker in self._active:
                worker.stop() if worker.ready else worker.kill()  # one that is not ready has no shard
            deadline = time.monotonic() + STOP_SECONDS
            while time.monotonic() < deadline and not all(worker.has_ended for worker in self._active):
                time.sleep(POLL_SECONDS)
        finally:
            for worker in self._active:
                worker.kill()

    def _started(self, task: WorkerTask) -> ShardWorker:
        self._starts += 1
        return ShardWorker(task, self._logs / f"worker-{self._starts}.txt")
