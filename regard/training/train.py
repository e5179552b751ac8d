"""`train`: from a file of pairs, or of texts and their labels, to a model's folder."""

from __future__ import annotations

import os
import platform
import shutil
import sys
import time
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

import torch

from regard import folder as folders
from regard.classifier import Classifier
from regard.loading import load
from regard.models.classifier import ClassifierOptions
from regard.text.labelled import read_labelled
from regard.text.normal import tidy
from regard.text.pairs import Corpus, Pair, read_pairs
from regard.text.split import leaked_sources, shared_targets, split
from regard.training import checkpoint
from regard.training.classifying import Classifying
from regard.training.loop import Loop, Machine
from regard.training.precision import Precision, autocast, read_device
from regard.training.progress import Reporter, Screen, Silent
from regard.training.recipe import Recipe, read_recipe, suited
from regard.training.sizes import better
from regard.training.task import Task
from regard.training.translating import Translating
from regard.translator import Translator

SHOWN_LABELS = 12
UNFINISHED = ".unfinished"
"""marks a folder that may be deleted"""
Kind = Literal["translate", "classify"]
Pairs = str | Path | Sequence[str | Path] | Sequence[tuple[str, str]]


@dataclass(frozen=True)
class Data:
    train: Sequence[Pair]
    dev: Sequence[Pair]
    name: str
    lines: int
    digest: str
    dev_digest: str
    """of dev, if it was given by itself"""


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
    folder = Path(out)
    if minutes is not None and not 0 < minutes < 1e6:
        raise ValueError(f"minutes: expected a number above 0, got {minutes!r}")
    if threads is not None:
        torch.set_num_threads(threads)
    machine = Machine(read_device(device), precision)
    autocast(precision, machine.device)  # refuses what is no precision before anything is read
    chosen = _recipe(task, recipe, settings)
    _check_out(folder, resume, overwrite)
    screen.status("reading")
    data = read_data(pairs, dev, reverse, languages, screen, task)
    begun = resume and folder.exists()
    if recipe is None and task == "translate":
        chosen = suited(settings, _best(folder if begun else None, data, machine))
    kind = Classifying if task == "classify" else Translating
    screen.status("learning the vocabulary")
    work: Task = kind.of(data.train, data.dev, chosen, seed)
    if begun:
        _check_same(folder, work.recipe, data, seed)
    else:
        _found(folder, work, _facts(work, data, languages, machine, seed))
    reporter = Reporter(folder / folders.LOG, screen)
    loop = Loop(work, folder, machine, reporter, None if minutes is None else minutes * 60, began)
    if begun:
        loop.resume()
    else:
        for line in screen.said:
            reporter.note("said", text=line)
    screen.status("preparing the first epoch")
    loop.run()
    model = _finish(folder, loop)
    screen.close()
    return model


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


def _check_out(folder: Path, resume: bool, overwrite: bool) -> None:
    if resume and overwrite:
        raise ValueError("resume and overwrite contradict each other: expected one of them")
    if folder.exists() and not (resume or overwrite):
        raise ValueError(f"{folder}: there already; expected --resume, to go on, or --overwrite, to begin anew")
    if folder.exists() and not (folder / folders.CARD).is_file():
        raise ValueError(f"{folder}: expected the folder of a model, or nothing; it has no {folders.CARD}")
    if resume and folder.exists() and not (folder / folders.TRAINING / checkpoint.FILE).is_file():
        raise ValueError(f"{folder}: nothing to resume: it has no {folders.TRAINING}/{checkpoint.FILE}")


def read_data(
    pairs: Pairs,
    dev: Pairs | None,
    reverse: bool,
    languages: tuple[str, str] | None,
    screen: Screen,
    task: Kind = "translate",
) -> Data:
    """The training pairs and the dev part, given or set aside."""
    if task == "classify" and (reverse or languages):
        raise ValueError("reverse and languages are for translating; expected neither with --task classify")
    corpus = _corpus(pairs, reverse, languages, task)
    for line in corpus.report():
        screen.say(f"{corpus.name}: {line}")
    if dev is None:
        train, aside = split(corpus.pairs)
        digest = ""
    else:
        held = _corpus(dev, reverse, languages, task)
        for line in held.report():
            screen.say(f"{held.name}: {line}")
        train, aside, digest = corpus.pairs, held.pairs, held.digest
        leaked = leaked_sources(train, aside)
        if leaked:
            screen.say(f"dev: {leaked:,} of its sources also occur in training: scores on it will flatter")
    if task == "classify":
        labels = Counter(pair.target for pair in train)
        told, note = "texts", ", ".join(f"{label} {count:,}" for label, count in labels.most_common(SHOWN_LABELS))
        note += f", {len(labels) - SHOWN_LABELS:,} more labels" if len(labels) > SHOWN_LABELS else ""
    else:
        told, note = "pairs", f"{shared_targets(train, aside):,} dev targets occur in training"
    screen.say(f"{len(train):,} {told} to train on, {len(aside):,} to choose by ({note})")
    return Data(train, aside, corpus.name, corpus.lines, corpus.digest, digest)


def _corpus(pairs: Pairs, reverse: bool, languages: tuple[str, str] | None, task: Kind) -> Corpus:
    if not isinstance(pairs, (str, Path, Sequence)):
        raise ValueError(f"pairs: expected paths or (source, target) texts, got {pairs!r}")
    given = [pairs] if isinstance(pairs, (str, Path)) else list(pairs)
    if given and all(isinstance(each, (str, Path)) for each in given):
        files = [Path(str(each)) for each in given]
        return read_labelled(files) if task == "classify" else read_pairs(files, reverse, languages)
    return corpus_of(given, reverse)


def corpus_of(texts: Sequence[Any], reverse: bool = False) -> Corpus:
    """(source, target) texts as a corpus; those with an empty side are skipped."""
    found: list[Pair] = []
    skipped: dict[str, list[int]] = {}
    for number, each in enumerate(texts, 1):
        if not isinstance(each, (tuple, list)) or len(each) != 2 or not all(isinstance(side, str) for side in each):
            raise ValueError(f"pairs: expected (source, target) texts or paths, got {each!r}")
        source, target = (tidy(side) for side in (reversed(each) if reverse else each))
        if source and target:
            found.append(Pair(source, target, number))
        else:
            skipped.setdefault("empty source or target", []).append(number)
    if not found:
        raise ValueError(f"pairs: expected at least one pair of texts, got {len(texts)} without any that can be used")
    return Corpus(found, len(texts), skipped, "pairs")


def _found(folder: Path, task: Task, facts: dict[str, Any]) -> None:
    """Make the folder, complete with a model that has learned nothing yet, and give it its name when it is whole."""
    beside, old = (folder.with_name(folder.name + end) for end in (".new", ".old"))
    for path in (beside, old):  # left by a run that was killed while it did this
        if path.exists() and not (path / UNFINISHED).is_file():
            raise ValueError(f"{path}: in the way; expected nothing there")
        shutil.rmtree(path, ignore_errors=True)
    beside.mkdir(parents=True)
    (beside / UNFINISHED).touch()
    folders.write_recipe(beside, task.recipe)
    task.write(beside)
    folders.write_card(beside, facts)
    loop = Loop(task, beside, Machine(torch.device("cpu"), "fp32"), Reporter(beside / folders.LOG, Silent()), None)
    loop.save_model()
    loop.save()
    (beside / UNFINISHED).unlink()
    if folder.exists():  # --overwrite
        (folder / UNFINISHED).touch()
        folder.rename(old)
    beside.rename(folder)
    shutil.rmtree(old, ignore_errors=True)


def _facts(task: Task, data: Data, languages: tuple[str, str] | None, machine: Machine, seed: int) -> dict[str, Any]:
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
            "train_pairs": len(data.train),
            "dev_pairs": len(data.dev),
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
    model = load(folder, str(loop.machine.device), loop.machine.precision)
    if "scores" not in model.card:
        loop.reporter.status("scoring dev")
        if isinstance(model, Classifier):
            model.calibrate(loop.task.dev)
        scores = model.evaluate(loop.task.dev)
        for line in scores.lines():
            loop.reporter.say(f"dev  {line}")
        progress = loop.progress
        model.card |= {
            "scores": scores.as_dict(),
            "minutes": round(progress.seconds / 60, 2),
            "ended": progress.ended,
        }
        folders.write_card(folder, model.card)
        loop.save()  # with the place in the log
    return model
