"""The trainings of the studio: one at a time, each in a process of its own; and those whose logs can be followed."""

from __future__ import annotations

import asyncio
import shlex
import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from regard.config import folder as folders
from regard.experiments.processes import STOP_SECONDS, RunProcess
from regard.serving.errors import RequestError
from regard.serving.store import ModelStore
from regard.serving.studio.training_job import DATA, JOB, StudioTraining, data_folder

POLL_SECONDS = 0.2
CLOSE_SECONDS = 20.0  # in which a training may write its checkpoint when the server ends


class Trainings:
    """The trainings in the work folder, of which one may be running, and the models of the store."""

    def __init__(self, folder: Path, store: ModelStore) -> None:
        self.folder, self._store = folder, store
        self._process: RunProcess | None = None
        self._watching: asyncio.Task[None] | None = None
        self._stopping = False
        self._failures: dict[str, str] = {}  # name → why its last run failed
        for job in self._jobs():
            if job.is_done:
                self._add(job)

    @property
    def active(self) -> StudioTraining | None:
        """the job of the training that is running"""
        job = None if self._process is None else self._process.job
        return job if isinstance(job, StudioTraining) else None

    def start(self, job: StudioTraining) -> None:
        """Begin a training, or go on with one; raise a RequestError if another one is running."""
        self.check_idle()
        self._failures.pop(job.name, None)
        self._stopping = False
        job.write()
        self._process = RunProcess(job)
        self._watching = asyncio.get_running_loop().create_task(self._watch(self._process, job))

    def check_idle(self) -> None:
        """Raise a RequestError if a training is running."""
        if self.active is not None:
            raise RequestError(409, f"training: {self.active.name} is running; one training at a time: stop it first")

    def resume(self, name: str) -> None:
        """Go on with a training of the work folder that was stopped."""
        job = next((each for each in self._jobs() if each.name == name), None)
        if job is None:
            raise RequestError(404, f"training: expected one of {self.folder}, got {name!r}")
        if job.is_done:
            raise RequestError(409, f"training: {name} has ended; there is nothing to resume")
        self.start(job)

    def stop(self, name: str) -> None:
        """Let the running training write a checkpoint and end."""
        if self.active is None or self.active.name != name or self._process is None:
            raise RequestError(409, f"training: {name} is not running")
        self._stopping = True
        self._process.stop()

    async def _watch(self, process: RunProcess, job: StudioTraining) -> None:
        """Wait for the end of a training; a finished model is added to the store."""
        stopped_at: float | None = None
        loop = asyncio.get_running_loop()
        while not process.has_ended:
            await asyncio.sleep(POLL_SECONDS)
            if self._stopping:
                stopped_at = loop.time() if stopped_at is None else stopped_at
                if loop.time() - stopped_at > STOP_SECONDS:
                    await asyncio.to_thread(process.kill)
        failure = await asyncio.to_thread(process.finish)
        if failure is None:
            self._add(job)
        elif not self._stopping:
            self._failures[job.name] = failure
        self._process = None

    async def close(self) -> None:
        """Stop the running training, with a checkpoint if it is written in time."""
        if self._process is None or self._watching is None:
            return
        self._stopping = True
        self._process.stop()
        done, _ = await asyncio.wait([self._watching], timeout=CLOSE_SECONDS)
        if not done:
            self._watching.cancel()
            await asyncio.to_thread(self._process.kill)

    # What can be looked at

    def describe_all(self) -> list[dict[str, Any]]:
        """Return all trainings: those of the work folder, the latest first, then the other models."""
        jobs = list(self._jobs())
        own = {Path(job.run).resolve() for job in jobs}
        others = [model for model in self._store if model.folder.resolve() not in own]
        listed = [self.describe(job.name) for job in jobs]
        return [*listed, *(self.describe(model.name) for model in others)]

    def describe(self, name: str) -> dict[str, Any]:
        """Return what is known of a training: whether it runs, ended, stopped or failed."""
        folder = self.folder_of(name)
        card = folders.read_card(folder) if (folder / folders.CARD).is_file() else {}
        job = next((each for each in self._jobs() if Path(each.run) == folder), None)
        process = self._process if job is not None and self.active is not None and self.active.run == job.run else None
        is_done = "scores" in card
        failure = self._failures.get(name)
        running = "stopping" if self._stopping else "running"
        idle = "finished" if is_done else "failed" if failure else "stopped" if job is not None else "unfinished"
        return {
            "name": name,
            "task": card.get("task") or (job.task if job is not None else None),
            "state": idle if process is None else running,
            "activity": None if process is None else process.activity,
            "fraction": None if process is None else round(process.fraction, 4),
            "failure": failure,
            "resumable": job is not None and process is None and not is_done,
            "command": shlex.join(["regard", *job.command]) if job is not None else card.get("command"),
        }

    def folder_of(self, name: str) -> Path:
        """Return the folder of a training or model; raise a RequestError if there is none of that name."""
        for model in self._store:
            if model.name == name:
                return model.folder
        for job in self._jobs():
            if job.name == name:
                return Path(job.run)
        raise RequestError(404, f"training: there is none of the name {name!r}")

    def new_folder(self, name: str) -> Path:
        """Return the folder for a new training; raise a RequestError if the name is taken.

        A training that failed before it began leaves its name free, and its data are removed.
        """
        folder = self.folder.absolute() / name
        if folder.exists() or any(each.name == name for each in self._store):
            raise RequestError(409, f"name: {name!r} is taken; expected another one")
        shutil.rmtree(data_folder(folder), ignore_errors=True)
        return folder

    def _jobs(self) -> Iterator[StudioTraining]:
        """Yield the jobs of the work folder, the latest first."""
        files = sorted(self.folder.glob(f"*{DATA}/{JOB}"), key=lambda file: -file.stat().st_mtime)
        for file in files:
            yield StudioTraining.read(file.parent.with_name(file.parent.name.removesuffix(DATA)))

    def _add(self, job: StudioTraining) -> None:
        folder = Path(job.run)
        if all(model.folder.resolve() != folder.resolve() for model in self._store):
            self._store.add(folder)
