"""`regard.train_best`, which is `regard train --best`."""

from __future__ import annotations

import time
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch

from regard.config import folder as folders
from regard.config.recipe import Recipe
from regard.config.recipe_text import to_toml
from regard.config.sizes import Budget
from regard.core.checks import whole_number
from regard.experiments.best import classification, translation
from regard.experiments.best.translation import BestTranslation, member_recipes
from regard.experiments.best.work import WorkFolder
from regard.runtime import launch
from regard.runtime.files import folder_path
from regard.runtime.precision import Precision, autocast, read_device
from regard.runtime.processes import available_cores
from regard.runtime.reading import check_links
from regard.tasks.registry import CLASSIFICATION, TRANSLATION, AnyPredictor, load, task_named
from regard.tasks.spec import Given, TaskSpec, Texts, TrainingData
from regard.text.weighted import weighted_parts
from regard.training.clock import limit_seconds
from regard.training.lock import locked
from regard.training.out import check_out, install
from regard.training.progress import Screen, Silent

MEMBERS = {TRANSLATION.name: translation.MEMBERS, CLASSIFICATION.name: classification.MEMBERS}  # by task


def train_best(
    data: Texts,
    out: str | Path,
    *,
    task: str = "translate",
    dev: Texts | None = None,
    reverse: bool = False,
    recipe: str | Path | Recipe | None = None,
    settings: Mapping[str, Any] | None = None,
    minutes: float | None = None,
    resume: bool = False,
    overwrite: bool = False,
    keep_ensemble: bool = False,
    members: int | None = None,
    jobs: int | None = None,
    languages: tuple[str, str] | None = None,
    seed: int = 1,
    threads: int | None = None,
    device: str | None = None,
    precision: Precision = "auto",
    screen: Screen | None = None,
    began: float | None = None,
) -> AnyPredictor:
    """Train the best translator or classifier that we know to get from the same data, and keep it in the folder `out`.

    The arguments are those of `regard.train`, and the number of models that teach the final one, or of a classifier the
    number of folds (`members`: 4), and how many train at a time (`jobs`: as many as there are cores, or all on a GPU).
    `keep_ensemble` keeps the members, in `out`/ensemble. Until the end, everything stands in `out`.parts, and `resume`
    goes on from there.
    """
    launch.refuse("best", "trains its models in processes of its own, one on each GPU")
    began, screen = time.monotonic() if began is None else began, screen or Silent()
    spec, given = task_named(task), Given(data, dev, reverse, languages)
    _check(spec, given, minutes, members=members, jobs=jobs)
    if threads is not None:
        torch.set_num_threads(threads)
    autocast(precision, where := read_device(device))  # raises an error for an unknown precision before it reads
    folder, chosen = folder_path(out), spec.recipe(recipe, settings)
    if spec.name == CLASSIFICATION.name:
        classification.candidate_members(chosen.model)  # raises an error for weights before anything is written
    work, count = WorkFolder.beside(folder), members or MEMBERS[spec.name]
    _check_folders(folder, work, resume, overwrite)
    if resume and not work.begun:
        screen.say(f"{folder}: training has ended: nothing to resume; --overwrite begins anew")
        return load(folder, device, precision)
    with locked(work.path, screen):
        read = spec.data(given, chosen, screen)
        budget = Budget(where.type == "cuda", limit_seconds(minutes))
        if recipe is None:
            chosen = spec.recipe_for(settings or {}, read, budget, None)
        recipes: tuple[Recipe, ...] = (chosen,)
        if spec.name == TRANSLATION.name:
            recipes = member_recipes(chosen, len(read.train), budget, (settings or {}) if recipe is None else None)
        run = _BestRun(spec, given, read, work, recipes, seed, count, device, precision, screen, began, minutes, jobs)
        return run.finish(folder, resume, keep_ensemble)


@dataclass(frozen=True)
class _BestRun:
    """One call of `train_best`, after its arguments were checked and its data read."""

    spec: TaskSpec[Any, Any]
    given: Given
    data: TrainingData[Any]
    work: WorkFolder
    recipes: tuple[Recipe, ...]  # of the members, in turn; the first is that of the result
    seed: int
    members: int
    device: str | None
    precision: Precision
    screen: Screen
    began: float
    minutes: float | None
    jobs: int | None

    @property
    def is_translator(self) -> bool:
        return self.spec.name == TRANSLATION.name

    def finish(self, folder: Path, resume: bool, keep_ensemble: bool) -> AnyPredictor:
        """Begin or go on, and put the final model into its folder."""
        self.prepare(resume, folder)
        if not self.work.has_produced(folder):
            self.train()
            install(self.work.student, folder)
        if keep_ensemble:
            self.work.keep_members(folder, self.screen)
        self.work.delete()
        return load(folder, self.device, self.precision)

    def prepare(self, resume: bool, folder: Path) -> None:
        """Create the work folder, or check that it began with the same arguments."""
        data, recipes = self.data, "\n".join(map(to_toml, self.recipes))
        plan = {"data": data.digest, "dev data": data.dev_digest, "seed": self.seed, "recipe or settings": recipes}
        plan |= {"number of models": self.members}
        if resume:
            self.work.check_same(plan, folder)
        else:
            self.work.begin(plan, data.train, data.dev)

    def train(self) -> None:
        """Train everything that is not trained yet; in the end the best model is the student of the work folder."""
        if not self.is_translator:
            each = None if self.minutes is None else self.minutes / (self.members + 1)
            classification.train_best_classifier(
                self.data.train,
                self.data.dev,
                self.work.path,
                self.work.student,
                recipe=self.recipes[0],
                minutes=each,
                seed=self.seed,
                members=self.members,
                device=self.device,
                precision=self.precision,
                screen=self.screen,
            )
            classification.note_run(self.work)
            return
        on_gpu = read_device(self.device).type == "cuda"
        jobs = self.jobs or (self.members if on_gpu else available_cores())
        began, seconds = self.began - self.work.spent, limit_seconds(self.minutes)
        machine = (self.device, self.precision, self.screen, began, seconds)
        BestTranslation(self.given, self.work, self.recipes, self.seed, *machine, self.members, jobs).run()


def _check(spec: TaskSpec[Any, Any], given: Given, minutes: float | None, **counts: int | None) -> None:
    """Raise a ValueError for a task that has no best, a wrong time limit or wrong numbers of models."""
    limit_seconds(minutes)
    if spec.name not in MEMBERS:
        raise ValueError(f"best: expected the task {' or '.join(MEMBERS)}, got {spec.name!r}")
    if weighted_parts(given.data) is not None:
        raise ValueError("best: expected one source of data, without weights (--pairs)")
    spec.check_given(given)
    for name, count in counts.items():
        if count is not None:
            whole_number("best", name, count, minimum=1)


def _check_folders(folder: Path, work: WorkFolder, resume: bool, overwrite: bool) -> None:
    """Raise a ValueError unless a run may begin, begin anew or go on."""
    if resume and overwrite:
        raise ValueError("resume and overwrite contradict each other: expected one of them")
    if resume:
        has_ended = (folder / folders.CARD).is_file() and "best" in folders.read_card(folder)
        if not (work.begun or has_ended):
            raise ValueError(f"{folder}: nothing to resume: there is no {work.path}; without --resume a run begins")
        check_links(work.path)  # a folder from a stranger must not lead a run to write elsewhere
        return
    check_out(folder, False, overwrite)
    if work.is_foreign:
        raise ValueError(f"{work.path}: in the way: expected nothing there, or the parts of an earlier --best run")
    if work.begun and not overwrite:
        raise ValueError(f"{work.path}: there already; expected --resume, to go on, or --overwrite, to begin anew")
