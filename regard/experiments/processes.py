"""Runs in processes of their own, several at a time."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, replace
from pathlib import Path
from typing import Any, ClassVar, Protocol

from regard.runtime.processes import WorkerProcess
from regard.training.progress import Screen

POLL_SECONDS = 0.1
STOP_SECONDS = 60.0  # seconds in which a run may write its checkpoint when it is interrupted
ERRORS = "stderr.txt"  # in the run's folder, while it runs: what its process wrote on standard error


class Job(Protocol):
    """One run: a dataclass whose values can be written as JSON."""

    __dataclass_fields__: ClassVar[dict[str, Any]]

    @property
    def name(self) -> str: ...

    @property
    def run(self) -> str:
        """the folder of the run"""

    @property
    def threads(self) -> int | None: ...

    @property
    def device(self) -> str | None: ...

    @property
    def is_done(self) -> bool:
        """whether the run has ended with a result"""

    def execute(self, screen: Screen) -> None:
        """Do the run, or go on where it stopped."""


class RunProcess(WorkerProcess):
    """The process of one run, and what it does at present."""

    def __init__(self, job: Job) -> None:
        self.job, self.began = job, time.monotonic()
        self.activity = "starting"
        self.fraction = 0.0  # of the updates
        self._failure: str | None = None
        # Beside the run's folder, which the run may delete to begin anew.
        errors = Path(job.run).with_name(f"{Path(job.run).name}-{ERRORS}")
        kind = type(job)
        task = {"module": kind.__module__, "kind": kind.__name__, "job": asdict(job)}
        super().__init__("regard.experiments.worker", task, errors, job.threads, self._follow)

    @property
    def seconds(self) -> float:
        return time.monotonic() - self.began

    def finish(self) -> str | None:
        """Return why the run failed, or None if it has a result. The process must have ended."""
        code, last_line = self.wait_for_end()
        if self.job.is_done:
            return None
        if code < 0:
            return f"its process was killed by signal {-code}"
        return self._failure or last_line or f"its process ended with code {code}"

    def _follow(self, event: Mapping[str, Any]) -> None:
        """Update the state of the run by an event."""
        self._failure = event.get("failed", self._failure)
        self.activity = event.get("text", self.activity)
        if event.get("total"):
            self.fraction = event["done"] / event["total"]


def run_all(
    jobs: Sequence[Job],
    at_once: int,
    watch: Callable[[Sequence[RunProcess], int], None],
    ended: Callable[[RunProcess, str | None], None],
    gpus: Sequence[str] = (),
) -> None:
    """Run the jobs, `at_once` at a time. A job that fails does not end the others.

    `gpus`: each run gets the one of these that the fewest others use; with none of them, the device of its job.

    `watch(active, waiting)` is called again and again with the runs that are active and the number of those that wait;
    `ended(run, failure)` when one has ended. An interrupt stops all runs; each writes a checkpoint first.
    """
    waiting, active = list(jobs), []  # type: list[Job], list[RunProcess]
    try:
        while waiting or active:
            while waiting and len(active) < at_once:
                active.append(RunProcess(_on_free_gpu(waiting.pop(0), gpus, [run.job for run in active])))
            watch(active, len(waiting))
            time.sleep(POLL_SECONDS)
            for run in [each for each in active if each.has_ended]:
                active.remove(run)
                ended(run, run.finish())
    finally:
        _stop(active)


def _on_free_gpu(job: Any, gpus: Sequence[str], active: Sequence[Job]) -> Any:
    """Return the job with the GPU that the fewest active ones use."""
    used = [each.device for each in active]
    return replace(job, device=min(gpus, key=used.count)) if gpus else job


def _stop(active: Sequence[RunProcess]) -> None:
    """Stop runs: with a checkpoint if they manage to write one in time, and at once after a second interrupt."""
    try:
        for run in active:
            run.stop()
        deadline = time.monotonic() + STOP_SECONDS
        while time.monotonic() < deadline and not all(run.has_ended for run in active):
            time.sleep(POLL_SECONDS)
    finally:
        for run in active:
            run.kill()
