"""The folder that a training writes: whether it may be written, and its creation."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import torch

from regard.config import folder as folders
from regard.config.recipe_text import to_toml
from regard.runtime.files import check_new_folder, remove_folder, resolved
from regard.runtime.reading import check_links
from regard.training import checkpoint
from regard.training.checkpoint import Progress
from regard.training.loop import Loop, Machine
from regard.training.progress import Reporter, Silent
from regard.training.task import Task

UNFINISHED = ".unfinished"  # the file that marks a folder as incomplete, so that it may be deleted


def check_out(folder: Path, resume: bool, overwrite: bool) -> None:
    """Raise a ValueError unless a training may begin, begin anew or go on in `folder`."""
    if resume and overwrite:
        raise ValueError("resume and overwrite contradict each other: expected one of them")
    for path in () if resume else _temporary_paths(folder):
        if path.exists() and not (path / UNFINISHED).is_file():
            raise ValueError(f"{path}: in the way: {folder.name} is made there first; expected nothing there")
    if not folder.exists():
        if resume:
            raise ValueError(f"{folder}: nothing to resume: there is no such folder; without --resume a run begins")
        check_new_folder(folder)
        return
    if not folder.is_dir():
        raise ValueError(f"{folder}: expected a folder for the model, got a file")
    if not (folder / folders.CARD).is_file():
        raise ValueError(f"{folder}: expected the folder of a model, or nothing; it has no {folders.CARD}")
    if not (resume or overwrite):
        raise ValueError(f"{folder}: there already; expected --resume, to go on, or --overwrite, to begin anew")
    if not os.access(folder, os.W_OK):
        raise ValueError(f"{folder}: cannot be written: Permission denied")
    if resume:
        check_links(folder)  # a folder from a stranger must not lead a run to write elsewhere
        if not (folder / folders.TRAINING / checkpoint.FILE).is_file():
            raise ValueError(f"{folder}: nothing to resume: it has no {folders.TRAINING}/{checkpoint.FILE}")


def create(folder: Path, task: Task, card: dict[str, Any], progress: Progress) -> None:
    """Create the folder under a temporary name, with everything that resuming needs, and rename it when it is complete.

    It has no `model.safetensors` before the first validation. An existing folder is replaced. If anything fails,
    nothing is changed. Leftovers of a killed run are deleted.
    """
    new, old = _temporary_paths(folder)
    for path in (new, old):
        remove_folder(path, UNFINISHED)
    try:
        _fill(new, task, card, progress)
        install(new, folder)
    finally:
        (folder / UNFINISHED).unlink(missing_ok=True)
        remove_folder(new, UNFINISHED)


def install(new: Path, folder: Path) -> None:
    """Rename the folder `new` to `folder`, which it replaces if it exists; if that fails, nothing is changed."""
    _, old = _temporary_paths(folder)
    remove_folder(old, UNFINISHED)
    try:
        if folder.exists():
            (folder / UNFINISHED).touch()
            folder.rename(old)
        new.rename(folder)
    finally:
        if old.exists() and not folder.exists():
            old.rename(folder)
            (folder / UNFINISHED).unlink(missing_ok=True)
        remove_folder(old, UNFINISHED)


def _temporary_paths(folder: Path) -> tuple[Path, Path]:
    """Return where the folder is created, and where the one that it replaces is moved to."""
    path = resolved(folder)
    return path.with_name(path.name + ".new"), path.with_name(path.name + ".old")


def _fill(folder: Path, task: Task, card: dict[str, Any], progress: Progress) -> None:
    """Write everything but weights."""
    folder.mkdir(parents=True)
    (folder / UNFINISHED).touch()
    folders.write(folder / folders.RECIPE, to_toml(task.recipe))
    task.write(folder)
    folders.write_card(folder, card)
    cpu = Machine(torch.device("cpu"), "fp32")
    loop = Loop(task, folder, cpu, Reporter(folder / folders.LOG, Silent()), None)
    loop.progress = progress
    loop.save()
