"""One training run, for any task: the folder and its lock, the data, the loop, the final scores and the card."""

from __future__ import annotations

import hashlib
import os
import platform
import sys
import time
from collections.abc import Mapping
from contextlib import ExitStack
from dataclasses import dataclass, replace
from importlib.metadata import version
from pathlib import Path
from typing import Any

import torch

from regard.config import folder as folders
from regard.config.recipe import Recipe
from regard.config.recipe_text import to_toml
from regard.config.sizes import Budget
from regard.runtime import launch
from regard.runtime.determinism import fix_cublas_workspace, reproducible
from regard.runtime.distributed import current_world, local_device
from regard.runtime.heap import limit_shape_caches
from regard.runtime.machine import cpu_model
from regard.runtime.precision import Precision, autocast, read_device
from regard.runtime.version import __version__
from regard.tasks.registry import AnyPredictor, load
from regard.tasks.run_entry import DIGESTS, Requirements, RunEntry
from regard.tasks.spec import Given, TaskSpec, TimeLimit, TrainingData
from regard.training import checkpoint
from regard.training.checkpoint import Progress, read_progress
from regard.training.clock import limit_seconds
from regard.training.lock import locked
from regard.training.loop import Loop, Machine
from regard.training.out import check_out, create
from regard.training.progress import Reporter, Screen, Silent
from regard.training.recorded_plan import RecordedPlan
from regard.training.task import Task


@dataclass(frozen=True)
class RunOptions:
    """How a run goes, besides what is trained on which data: the arguments that `train` and `tune` have in common."""

    minutes: float | None = None
    resume: bool = False
    overwrite: bool = False
    seed: int = 1
    threads: int | None = None
    device: str | None = None
    precision: Precision = "auto"
    deterministic: bool = False
    screen: Screen | None = None
    began: float | None = None  # by `time.monotonic`; None: now
    required: Requirements | None = None

    def prepare(self) -> Machine:
        """Set the number of threads, and return the machine; raise a ValueError for a bad time, device or precision."""
        limit_seconds(self.minutes)
        limit_shape_caches()
        if self.threads is not None:
            torch.set_num_threads(self.threads)
        machine = Machine(local_device(read_device(self.device)), self.precision, current_world())
        if self.deterministic and machine.device.type == "cuda":
            fix_cublas_workspace()  # before anything asks the GPU, which starts CUDA
        autocast(self.precision, machine.device)  # raises an error for an unknown precision before anything is read
        return machine


class BufferedScreen:
    """A screen that also buffers its lines, for a log that does not exist yet."""

    def __init__(self, screen: Screen) -> None:
        self._say, self.advance, self.status, self.close = screen.say, screen.advance, screen.status, screen.close
        self.lines: list[str] = []

    def say(self, text: str) -> None:
        self.lines.append(text)
        self._say(text)


def run_training(
    spec: TaskSpec[Any, Any],
    given: Given,
    folder: Path,
    machine: Machine,
    recipe: Recipe,
    settings: Mapping[str, Any] | None,
    options: RunOptions,
) -> AnyPredictor:
    """Run a training whose arguments were checked. With `settings`, the recipe is chosen by the size of the data."""
    began, world = time.monotonic() if options.began is None else options.began, machine.world
    resume, overwrite = options.resume, options.overwrite
    shown = BufferedScreen(options.screen if options.screen is not None and world.is_first else Silent())
    with reproducible(machine.device, options.deterministic), ExitStack() as lock:
        with world.shared_errors():
            if world.is_first:
                if _is_restarted(folder):
                    resume, overwrite = True, False
                check_out(folder, resume, overwrite)
                lock.enter_context(locked(folder, shown))
                check_out(folder, resume, overwrite)  # again: another training may just have changed it
        run = TrainingRun(spec, given, folder, machine, replace(options, resume=world.broadcast(resume)), shown)
        return run.train(recipe, settings, limit_seconds(options.minutes), began)


def _is_restarted(folder: Path) -> bool:
    """Return whether `torchrun` has restarted a run that has written a checkpoint; then it goes on from there."""
    progress = read_progress(folder / folders.TRAINING) if launch.restarts() else None
    return progress is not None and progress.launch == launch.launch_id()


@dataclass(frozen=True)
class TrainingRun:
    """One call of `run_training`, with the lock of its folder."""

    spec: TaskSpec[Any, Any]
    given: Given
    folder: Path
    machine: Machine
    options: RunOptions
    screen: BufferedScreen

    def train(
        self, recipe: Recipe, settings: Mapping[str, Any] | None, seconds: float | None, began: float
    ) -> AnyPredictor:
        """Read the data, train and score. With `settings`, the recipe is chosen by the size of the data."""
        world = self.machine.world
        with world.shared_errors():
            data, task = self._read(recipe, settings, seconds)
            if self.options.resume:
                _check_same(self.spec, self.folder, task.recipe, data, self.options.seed)
        batches = world.size * task.recipe.training.accumulate
        progress = Progress(batches_per_update=batches, launch=launch.launch_id())
        with world.shared_errors():
            if world.is_first and not self.options.resume:
                create(self.folder, task, self._facts(task, data), progress)
        if self.options.resume:
            loop = self._resumed(task, seconds, began)
        else:
            reporter = self._reporter()
            for line in self.screen.lines:  # shown before there was a log
                reporter.note("message", text=line)
            loop = self._loop(task, reporter, seconds, began)
            loop.progress = progress
        self.screen.status("preparing the first epoch")
        try:
            loop.run()
            model = _finish(self.spec, self.folder, loop, seconds)
        except OSError as error:  # the disk is full, say
            if isinstance(error, ConnectionError):  # another process of the run has ended
                raise
            raise unwritable(self.folder, error) from None
        self.screen.close()
        return model

    def _read(
        self, recipe: Recipe, settings: Mapping[str, Any] | None, seconds: float | None
    ) -> tuple[TrainingData[Any], Task]:
        """Read the data, and return them with the task."""
        self.screen.status("reading")
        data = self.spec.data(self.given, recipe, self.screen)
        if self.options.required is not None:
            self.options.required.check(data)
        begun = folders.read_recipe(self.folder) if self.options.resume else None
        budget = Budget(self.machine.device.type == "cuda", seconds)
        if settings is not None:
            recipe = self.spec.recipe_for(settings, data, budget, begun)
        recipe = self.spec.completed(recipe, len(data.train), budget, begun)
        self.screen.status("learning the vocabulary")
        task = self.spec.task(data, recipe, self.options.seed)
        for line in task.skipped:
            self.screen.say(f"{data.name}: {line}")
        return data, task

    def _reporter(self) -> Reporter:
        """Return the reporter; only the first process writes a log."""
        return Reporter(self.folder / folders.LOG if self.machine.world.is_first else None, self.screen)

    def _resumed(self, task: Task, seconds: float | None, began: float) -> Loop:
        """Return the run at its last checkpoint; tell the user if it has already ended."""
        loop = self._loop(task, self._reporter(), seconds, began)
        with self.machine.world.shared_errors():
            loop.resume()
        if launch.restarts():
            self.screen.say(f"restarted: the run goes on from update {loop.progress.update:,}")
        if "scores" in folders.read_card(self.folder):
            ended = f"{loop.progress.ended} after {loop.progress.update:,} updates"
            notice = f"training has ended ({ended}): nothing to resume; --overwrite begins anew"
            self.screen.say(f"{self.folder}: {notice}")
        return loop

    def _loop(self, task: Task, reporter: Reporter, seconds: float | None, began: float) -> Loop:
        """Return the run at its beginning; one that repeats a run by the clock has no clock of its own."""
        plan = None if self.options.required is None else self.options.required.plan
        limit = seconds if plan is None else None
        return Loop(task, self.folder, self.machine, reporter, limit, began, plan)

    def _facts(self, task: Task, data: TrainingData[Any]) -> dict[str, Any]:
        """Return the card, as far as it is known before training."""
        options, languages, threads = self.options, self.given.languages, torch.get_num_threads()
        run = RunEntry.of(self.given, task.recipe, options.minutes, threads, self.machine, options.deterministic)
        return {
            **task.facts,
            "languages": list(languages) if languages else None,
            "data": {
                "name": data.name,
                "lines": data.lines,
                **data.digests,
                "train_pairs": task.size,
                "dev_pairs": len(task.dev),
            },
            "parameters": sum(parameter.numel() for parameter in task.model.parameters()),
            "seed": options.seed,
            "precision": self.machine.precision,
            "command": " ".join(["regard", *sys.argv[1:]]),
            "run": run.as_dict(),
            "versions": versions(),
            "hardware": hardware(self.machine.device, threads),
            **({"processes": self.machine.world.size} if self.machine.world.size > 1 else {}),
        }


def versions() -> dict[str, str]:
    """Return the versions on which the numbers of a training depend."""
    packages = {name: version(name) for name in ("numpy", "tokenizers")}
    return {"regard": __version__, "torch": torch.__version__, "python": platform.python_version(), **packages}


def hardware(device: torch.device, threads: int) -> str:
    """Describe the hardware on which the numbers of a training depend."""
    processor = f"{cpu_model()} ({torch.backends.cpu.get_cpu_capability()})"
    name = f"{torch.cuda.get_device_name(device)}, {processor}" if device.type == "cuda" else processor
    return f"{device.type}, {os.cpu_count()} cores, {threads} threads, {name}"


def _check_same(spec: TaskSpec[Any, Any], folder: Path, recipe: Recipe, data: TrainingData[Any], seed: int) -> None:
    """Raise a ValueError unless the run began with the same data, seed and recipe."""
    card = folders.read_card(folder)
    begun_digests = tuple(card.get("data", {}).get(key, "") for key in DIGESTS.values())
    begun_recipe = folders.read_recipe(folder)  # the number of processes may change, and with it `accumulate`
    begun_recipe = replace(begun_recipe, training=replace(begun_recipe.training, accumulate=recipe.training.accumulate))
    same_recipe = spec.is_same_run(begun_recipe, recipe)
    tuned_from = card.get("tuned_from") or {}
    begun = (tuned_from.get("weights_sha256", ""), *begun_digests, card.get("seed"), True)
    now = (spec.tuned_digest, *(data.digests[key] for key in DIGESTS.values()), seed, same_recipe)
    kinds = (spec.extra_name if kind == "extra data" else kind for kind in DIGESTS)
    names = ("model to tune", *kinds, "seed", "recipe or settings")
    for name, one, other in zip(names, begun, now, strict=True):
        if one != other:
            raise ValueError(f"{folder}: begun with other {name}; resume with what it began with, or use --overwrite")


def unwritable(folder: Path, error: OSError) -> ValueError:
    """Return the error of a run that could not write a file: what failed, and what is there to go on from."""
    failed = f"{error.filename or folder}: cannot be written: {error.strerror or error}"
    if (folder / folders.TRAINING / checkpoint.FILE).is_file():
        failed += f"; the last checkpoint is complete: go on with --resume when {folder} can be written again"
    return ValueError(failed)


def _finish(spec: TaskSpec[Any, Any], folder: Path, loop: Loop, seconds: float | None) -> AnyPredictor:
    """Score the best model as `evaluate` does, and write the card."""
    world = loop.world
    with world.shared_errors():
        card = folders.read_card(folder)
        if "ended" not in card and world.is_first:
            minutes, plan = round(loop.progress.seconds / 60, 2), RecordedPlan.of(loop.progress) or loop.recorded
            recorded = {} if plan is None else {"plan": plan.as_dict()}
            folders.write_card(folder, card | recorded | {"minutes": minutes, "ended": loop.progress.ended})
    with world.shared_errors():
        model = load(folder, str(loop.machine.device), loop.machine.precision)
    if "scores" not in model.card:
        loop.reporter.status("scoring dev")
        begun = model.recipe
        time_limit = None if seconds is None else TimeLimit(seconds, loop.seconds_left)
        scores = spec.score(model, loop.task.dev, loop.reporter.say, time_limit, world)
        if model.recipe != begun and world.is_first:
            folders.write(folder / folders.RECIPE, to_toml(model.recipe))
        for line in scores.lines():
            loop.reporter.say(f"dev  {line}")
        digest = hashlib.sha256((folder / folders.WEIGHTS).read_bytes()).hexdigest()
        model.card |= {"weights_sha256": digest, "scores": scores.as_dict()}
        if world.is_first:
            folders.write_card(folder, model.card)
        loop.save()  # with the present size of the log
    return model
