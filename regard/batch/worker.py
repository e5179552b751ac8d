"""A worker process (runtime/processes.py). Its task names the folder and the models."""

from __future__ import annotations

import json
import sys
import warnings
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TextIO

from regard.batch.claims import Claims
from regard.batch.folder import ShardFolder
from regard.batch.manifest import read_manifest
from regard.batch.translation import load_translator
from regard.batch.work import ShardQueue, Shift
from regard.runtime.processes import run_and_exit, watch_input
from regard.runtime.warnings import RegardWarning


@dataclass(frozen=True)
class WorkerTask:
    """What a worker is told: everything else is in the manifest."""

    folder: str
    models: list[str]
    device: str | None
    threads: int | None


def work(task: WorkerTask, out: TextIO, shifts: list[Shift]) -> None:
    """Translate shards until none is missing, and report each as an event. The shift is appended to `shifts`."""
    import torch

    if task.threads is not None:
        torch.set_num_threads(task.threads)
    folder = ShardFolder(Path(task.folder))
    manifest = read_manifest(folder)
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always", RegardWarning)
        translator = load_translator([Path(model) for model in task.models], task.device, manifest.options)
    for warning in caught:
        if issubclass(warning.category, RegardWarning):
            send(out, notice=str(warning.message))
    shifts.append(shift := Shift(folder, manifest, translator))
    send(out, ready=True)
    for shard, claim in ShardQueue(folder, Claims(folder.claims)):
        counts = shift.translate(shard, claim)
        if counts is not None:
            send(out, shard=shard, lines=counts[0], notices=counts[1])


def send(out: TextIO, **event: Any) -> None:
    print(json.dumps(event), file=out, flush=True)


def main() -> None:
    task = WorkerTask(**json.loads(sys.stdin.readline()))
    shifts: list[Shift] = []

    def release() -> None:
        for shift in shifts:
            shift.release()

    watch_input(sys.stdin, release)
    out, sys.stdout = sys.stdout, sys.stderr  # what libraries print is no event
    run_and_exit(lambda: work(task, out, shifts), lambda reason: send(out, failed=reason))


if __name__ == "__main__":
    main()
