"""`train`: from a file of pairs, or of texts and their labels, to a model's folder."""

from __future__ import annotations

import os
import platform
import sys
import time
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import torch

from regard import folder as folders
from regard.classifier import Classifier
from regard.confusion import LabelScores
from regard.loading import load
from regard.models.classifier import ClassifierOptions
from regard.scoring import Scores
from regard.training.classifying import Classifying
from regard.training.data import Data, Given, Kind, Pairs, read_data
from regard.training.lock import locked
from regard.training.loop import Loop, Machine
from regard.training.out import check_out, create
from regard.training.precision import Precision, autocast, read_device
from regard.training.progress import Reporter, Screen, Silent
from regard.training.recipe import Recipe, read_recipe, suited
from regard.training.sizes import better
from regard.training.translating import Translating
from regard.translator import Translator


class Remembered:
    """A screen that also remembers what was said on it, for a log that is not there yet."""

    def __init__(self, screen: Screen) -> None:
        self._screen = screen
        self.said: list[str] = []

    def say(self, text: str) -> None:
        self.said.append(text)
        self._screen.say(text)

    def advance(self, done: int, total: int | None, text: str) -> None:
        self._screen.advance(done, total, text)

    def status(self, text: str) -> None:
        self._screen.status(text)

    def close(self) -> None:
        self._screen.close()


def train(
    pairs: Pairs,
    out: str | Path,
    *,
    task: Kind = "translate",
    dev: Pairs | None = None,
    reverse: bool = False,
    recipe: str | Path | Recipe | None = None,
    settings: Mapping[str, Any] | None = None,
    minutes: float | None = None,
    resume: bool = False,
    overwrite: bool = False,
    languages: tuple[str, str] | None = None,
    seed: int = 1,
    threads: int | None = None,
    device: str | None = None,
    precision: Precision = "auto",
    screen: Screen | None = None,
    began: float | None = None,
) -> Translator | Classifier:
    """Train a translator on sentence pairs, or a classifier on labelled texts, and keep it in the folder `out`.

    pairs      a .tsv or .jsonl file, two parallel text files, or (source, target) texts; of "classify" texts and labels
    task       "translate" or "classify"
    dev        the same, to choose by; if not given, a part of `pairs` is set aside
    recipe     "rnn", "transformer", "article", "classify", a .toml file or a Recipe; None: what measured better for
               so many pairs here (transformer on a GPU from 20,000 on, otherwise rnn), for labels classify
    settings   changes single values: {"training.epochs": 5}
    minutes    plan the run by the clock, set-up and scoring included; they count from the call, or from when it
               `began` by `time.monotonic`
    resume     go on where a run in `out` stopped; `overwrite`: begin anew there
    """
    began = time.monotonic() if began is None else began
    screen = Remembered(screen or Silent())
    folder = Path(out).resolve() if Path(out).is_symlink() else Path(out)
    given = Given(pairs, dev, task, reverse, languages)
    if minutes is not None and not 0 < minutes < 1e6:
        raise ValueError(f"minutes: expected a number above 0, got {minutes!r}")
    if threads is not None:
        torch.set_num_threads(threads)
    machine = Machine(read_device(device), precision)
    autocast(precision, machine.device)  # refuses what is no precision before anything is read
    chosen = _recipe(task, recipe, settings)
    check_out(folder, resume, overwrite)
    with locked(folder, screen):
        check_out(folder, resume, overwrite)  # again: another training may just have made or replaced it
        screen.status("reading")
        data = read_data(given, chosen.training.max_characters, screen)
        if recipe is None and task == "translate":
            chosen = suited(settings, _best(folder if resume else None, data, machine))
        screen.status("learning the vocabulary")
        work = _task(task, data, chosen, seed, screen)
        if resume:
            _check_same(folder, work.recipe, data, seed)
        else:
            create(folder, work, _facts(work, data, languages, machine, seed))
        reporter = Reporter(folder / folders.LOG, screen)
        loop = Loop(work, folder, machine, reporter, None if minutes is None else minutes * 60, began)
        if resume:
            _resume(loop, screen)
        else:
            for line in screen.said:
                reporter.note("said", text=line)
        screen.status("preparing the first epoch")
        loop.run()
        model = _finish(folder, loop)
        screen.close()
        return model


def _task(task: Kind, data: Data, recipe: Recipe, seed: int, screen: Screen) -> Translating | Classifying:
    """The work to be done, with every limit of the recipe filled in; what it leaves out of the data is told."""
    recipe = replace(recipe, training=replace(recipe.training, max_characters=data.max_characters))
    kind = Classifying if task == "classify" else Translating
    work: Translating | Classifying = kind.of(data.train, data.dev, recipe, seed)
    for line in work.skipped:
        screen.say(f"{data.name}: {line}")
    return work


def _resume(loop: Loop, screen: Screen) -> None:
    """Go on where the run stopped; say so if it has ended."""
    loop.resume()
    if "scores" in folders.read_card(loop.folder):
        progress = loop.progress
        screen.say(
            f"{loop.folder}: training has ended ({progress.ended} after {progress.update:,} updates): nothing to "
            "resume; --overwrite begins anew"
        )


def _recipe(task: Kind, given: str | Path | Recipe | None, settings: Mapping[str, Any] | None) -> Recipe:
    """As given, or what suits the task."""
    if task not in ("translate", "classify"):
        raise ValueError(f"task: expected translate or classify, got {task!r}")
    classifies = task == "classify"
    if given is None and not classifies:
        return suited(settings)
    found = read_recipe("classify" if given is None else given, settings)
    if isinstance(found.model, ClassifierOptions) != classifies:
        other = '; a recipe of your own for it begins with base = "classify"' if classifies else ""
        raise ValueError(f"recipe: {found.name!r} is not for --task {task}{other}")
    return found


def _best(begun: Path | None, data: Data, machine: Machine) -> str:
    """The kind of the run that was begun, or of what measured better for such data."""
    if begun is not None:
        return folders.read_recipe(begun).model.kind
    return better(len(data.train), machine.device.type == "cuda")


def _facts(
    task: Translating | Classifying, data: Data, languages: tuple[str, str] | None, machine: Machine, seed: int
) -> dict[str, Any]:
    """The card, as far as it is known before training."""
    from regard import __version__  # which in turn imports this module

    return {
        **task.facts,
        "languages": list(languages) if languages else None,
        "data": {
            "name": data.name,
            "lines": data.lines,
            "sha256": data.digest,
            "dev_sha256": data.dev_digest,
            "train_pairs": task.size,
            "dev_pairs": len(task.dev),
        },
        "parameters": sum(parameter.numel() for parameter in task.model.parameters()),
        "seed": seed,
        "precision": machine.precision,
        "command": " ".join(["regard", *sys.argv[1:]]),
        "versions": {"regard": __version__, "torch": torch.__version__, "python": platform.python_version()},
        "hardware": f"{machine.device.type}, {os.cpu_count()} cores, {torch.get_num_threads()} threads",
    }


def _check_same(folder: Path, recipe: Recipe, data: Data, seed: int) -> None:
    """A run is resumed with what it began with."""
    card = folders.read_card(folder)
    begun = card["data"]["sha256"], card["data"]["dev_sha256"], card["seed"], folders.read_recipe(folder)
    now = data.digest, data.dev_digest, seed, recipe
    for name, one, other in zip(("data", "dev data", "seed", "recipe or settings"), begun, now, strict=True):
        if one != other:
            raise ValueError(f"{folder}: begun with other {name}; resume with what it began with, or use --overwrite")


def _finish(folder: Path, loop: Loop) -> Translator | Classifier:
    """Score the best model as `evaluate` does, and write the card."""
    card = folders.read_card(folder)
    if "ended" not in card:
        minutes = round(loop.progress.seconds / 60, 2)
        folders.write_card(folder, card | {"minutes": minutes, "ended": loop.progress.ended})
    model = load(folder, str(loop.machine.device), loop.machine.precision)
    if "scores" not in model.card:
        loop.reporter.status("scoring dev")
        if isinstance(model, Classifier):
            model.calibrate(loop.task.dev)
            scores: Scores | LabelScores = model.evaluate(loop.task.dev, allow_unknown=True)
        else:
            scores = model.evaluate(loop.task.dev)
        for line in scores.lines():
            loop.reporter.say(f"dev  {line}")
        model.card |= {"scores": scores.as_dict()}
        folders.write_card(folder, model.card)
        loop.save()  # with the place in the log
    return model
