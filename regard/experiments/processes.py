"""Runs in processes of their own, several at a time."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import sysconfig
import threading
import time
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import asdict, replace
from pathlib import Path
from typing import Any, ClassVar, Protocol

from regard.experiments.worker import STOP
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


class RunProcess:
    """The process of one run, and what it does at present."""

    def __init__(self, job: Job) -> None:
        self.job, self.began = job, time.monotonic()
        self.activity = "starting"
        self.fraction = 0.0  # of the updates
        self._failure: str | None = None
        # Beside the run's folder, which the run may delete to begin anew.
        self._errors = Path(job.run).with_name(f"{Path(job.run).name}-{ERRORS}")
        self._errors.parent.mkdir(parents=True, exist_ok=True)
        with self._errors.open("wb") as errors:
            self._process = subprocess.Popen(
                # -P: files of the present folder, such as a random.py, must not take the place of modules
                [sys.executable, "-P", "-m", "regard.experiments.worker"],
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=errors,
                env=_environment(job.threads),
                start_new_session=True,  # Ctrl-C comes to this process alone, which then stops the others
            )
        self._reader = threading.Thread(target=self._read, daemon=True)
        self._reader.start()
        kind = type(job)
        self._send(json.dumps({"module": kind.__module__, "kind": kind.__name__, "job": asdict(job)}))

    @property
    def seconds(self) -> float:
        return time.monotonic() - self.began

    @property
    def has_ended(self) -> bool:
        return self._process.poll() is not None

    def finish(self) -> str | None:
        """Return why the run failed, or None if it has a result. The process must have ended."""
        self._reader.join()
        self._close()
        tail = self._errors.read_text(encoding="utf-8", errors="replace").strip().split("\n")[-1]
        self._errors.unlink(missing_ok=True)
        if self.job.is_done:
            return None
        code = self._process.returncode
        if code < 0:
            return f"its process was killed by signal {-code}"
        return self._failure or tail or f"its process ended with code {code}"

    def stop(self) -> None:
        """Let the run write a checkpoint and end."""
        self._send(STOP)

    def kill(self) -> None:
        """End the process at once, if it still runs."""
        if not self.has_ended:
            self._process.kill()
        self._process.wait()
        self._reader.join()
        self._close()
        self._errors.unlink(missing_ok=True)

    def _send(self, line: str) -> None:
        assert self._process.stdin is not None
        with suppress(OSError):  # the process has ended
            self._process.stdin.write(f"{line}\n".encode())
            self._process.stdin.flush()

    def _close(self) -> None:
        for stream in (self._process.stdin, self._process.stdout):
            if stream is not None:
                with suppress(OSError):
                    stream.close()

    def _read(self) -> None:
        """Follow the events of the process until it ends."""
        assert self._process.stdout is not None
        for line in self._process.stdout:
            event = _event(line)
            self._failure = event.get("failed", self._failure)
            self.activity = event.get("text", self.activity)
            if event.get("total"):
                self.fraction = event["done"] / event["total"]


def _event(line: bytes) -> dict[str, Any]:
    """Return the event of a line; an empty one for anything that a library printed."""
    try:
        event = json.loads(line)
    except ValueError:
        return {}
    return event if isinstance(event, dict) else {}


def _environment(threads: int | None) -> dict[str, str]:
    """Return the environment of a run: it imports the same package as this process.

    Threads that wait must not take time from the other runs.
    """
    environment = os.environ | {"OMP_WAIT_POLICY": "PASSIVE"}
    package = str(Path(__file__).parents[2])
    if package not in (sysconfig.get_path("purelib"), sysconfig.get_path("platlib")):  # not installed there
        paths = [package, *filter(None, [os.environ.get("PYTHONPATH")])]
        environment |= {"PYTHONPATH": os.pathsep.join(paths)}
    return environment if threads is None else environment | {"OMP_NUM_THREADS": str(threads)}


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


def available_cores() -> int:
    """Return the number of CPU cores that this process may use."""
    affinity = getattr(os, "sched_getaffinity", None)
    return max(1, len(affinity(0)) if affinity is not None else os.cpu_count() or 1)
