"""`regard.train_best`, which is `regard train --best`."""

from __future__ import annotations

import time
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import torch

from regard.config import folder as folders
from regard.config.recipe import Recipe
from regard.config.recipe_text import to_toml
from regard.core.checks import whole_number
from regard.experiments.best.translation import BACKWARD, MEMBERS, BestTranslation, best_recipe
from regard.experiments.best.work import WorkFolder
from regard.experiments.processes import available_cores
from regard.runtime.files import resolved
from regard.runtime.precision import Precision, autocast, read_device
from regard.tasks.registry import TRANSLATION, AnyPredictor, load
from regard.tasks.spec import Given, Texts
from regard.training.lock import locked
from regard.training.out import check_out
from regard.training.progress import Screen, Silent


def train_best(
    data: Texts,
    out: str | Path,
    *,
    dev: Texts | None = None,
    reverse: bool = False,
    recipe: str | Path | Recipe | None = None,
    settings: Mapping[str, Any] | None = None,
    minutes: float | None = None,
    resume: bool = False,
    overwrite: bool = False,
    keep_ensemble: bool = False,
    members: int = MEMBERS,
    backward: int = BACKWARD,
    jobs: int | None = None,
    languages: tuple[str, str] | None = None,
    seed: int = 1,
    threads: int | None = None,
    device: str | None = None,
    precision: Precision = "auto",
    screen: Screen | None = None,
    began: float | None = None,
) -> AnyPredictor:
    """Train the best translator that we know to get from the same pairs, and keep it in the folder `out`.

    The arguments are those of `regard.train`, and:

    members         models whose ensemble teaches the final one
    backward        models of the other direction, which translate the targets back
    keep_ensemble   keep the members, in `out`/ensemble
    jobs            members that train at a time; None: as many as there are cores, or all on a GPU

    Until the end, everything else stands in `out`.parts; `resume` goes on from there.
    """
    began = time.monotonic() if began is None else began
    screen = screen or Silent()
    folder = resolved(out) if Path(out).is_symlink() else Path(out)
    work, given = WorkFolder.beside(folder), Given(data, dev, reverse, languages)
    if minutes is not None and not 0 < minutes < 1e6:
        raise ValueError(f"minutes: expected a number above 0, got {minutes!r}")
    whole_number("best", "members", members, minimum=1)
    whole_number("best", "backward", backward)
    if jobs is not None:
        whole_number("best", "jobs", jobs, minimum=1)
    if threads is not None:
        torch.set_num_threads(threads)
    where = read_device(device)
    autocast(precision, where)  # raises an error for an unknown precision before anything is read
    chosen = TRANSLATION.recipe(recipe, settings)
    if _has_ended(folder, work, resume):
        screen.say(f"{folder}: training has ended: nothing to resume; --overwrite begins anew")
        return load(folder, device, precision)
    _check(folder, work, resume, overwrite)
    with locked(work.path, screen):
        read = TRANSLATION.data(given, chosen, screen)
        if recipe is None:
            chosen = TRANSLATION.recipe_for(settings or {}, len(read.train), where.type == "cuda", None)
        chosen = best_recipe(chosen)
        plan = {"data": read.digest, "dev data": read.dev_digest, "seed": seed, "recipe or settings": to_toml(chosen)}
        plan |= {"members": members, "backward": backward}
        if resume:
            work.check_same(plan, folder)
        else:
            work.begin(plan, read.train, read.dev)
        seconds = None if minutes is None else 60 * minutes
        started = began - work.spent
        at_once = jobs or (members + backward if where.type == "cuda" else available_cores())
        machine = (device, precision, screen, started, seconds)
        run = BestTranslation(given, folder, work, chosen, seed, *machine, members, backward, at_once)
        return run.run(keep_ensemble)


def _has_ended(folder: Path, work: WorkFolder, resume: bool) -> bool:
    """Return whether there is nothing left to resume."""
    return resume and not work.begun and (folder / folders.CARD).is_file() and "best" in folders.read_card(folder)


def _check(folder: Path, work: WorkFolder, resume: bool, overwrite: bool) -> None:
    """Raise a ValueError unless a run may begin, begin anew or go on."""
    if resume and overwrite:
        raise ValueError("resume and overwrite contradict each other: expected one of them")
    if resume and not work.begun:
        raise ValueError(f"{folder}: nothing to resume: there is no {work.path}; without --resume a run begins")
    if resume:
        return
    check_out(folder, False, overwrite)
    if work.is_foreign:
        raise ValueError(f"{work.path}: in the way: expected nothing there, or the parts of an earlier --best run")
    if work.begun and not overwrite:
        raise ValueError(f"{work.path}: there already; expected --resume, to go on, or --overwrite, to begin anew")
