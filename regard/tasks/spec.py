"""What `train`, `load` and the commands ask of a task. Each package of tasks/ has one; registry.py lists them."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, fields, replace
from pathlib import Path
from typing import Any, Generic, NamedTuple, TypeVar

import torch

from regard.config import folder as folders
from regard.config.recipe import Recipe
from regard.config.recipe_text import read_recipe
from regard.config.sizes import Budget
from regard.look.trace import Trace
from regard.models.building import load_weights, without_memory
from regard.runtime.distributed import ALONE, World
from regard.runtime.precision import Precision, read_device
from regard.tasks.predictor import Predictor, ScoreReport
from regard.text.pairs import Corpus
from regard.text.weighted import Weighted, weighted_parts
from regard.training.progress import Screen
from regard.training.task import NewTask, Task

P = TypeVar("P", bound=Predictor[Any])
D = TypeVar("D")  # the examples of a task: pairs of texts, or images
Texts = str | Path | Sequence[str | Path] | Sequence[tuple[str, str]] | Weighted | Sequence[Weighted]
"""a file, two parallel files, or (source, target) texts; or several of these, with weights"""


class TimeLimit(NamedTuple):
    """The time limit of a run, in seconds."""

    limit: float
    left: float | None  # None: the run repeats another one, and asks no clock


class Loaded(NamedTuple):
    """What every predictor has besides its model."""

    recipe: Recipe
    card: dict[str, Any]
    device: torch.device
    precision: Precision


@dataclass(frozen=True)
class Given:
    """What the user gave to train on."""

    data: Any  # `Texts`, or what the task takes from Python
    dev: Any = None
    reverse: bool = False
    languages: tuple[str, str] | None = None
    extra: Any = None  # further training examples, from which dev is never taken
    cache: Path | None = None  # the folder for large corpora; None: everything is read into memory
    teachers: Sequence[str | Path] = ()  # folders of the models that teach the new one


@dataclass(frozen=True)
class TrainingData(Generic[D]):
    """The examples of a training, and what the card says of them."""

    train: D
    dev: D
    name: str
    lines: int  # how many examples came, those that were left out counted
    digest: str
    dev_digest: str = ""  # of dev, if it was given by itself
    max_characters: int | None = None  # longer lines of text were left out
    extra: D | None = None  # further training examples, from which nothing but the weights is learned
    extra_digest: str = ""
    weights: Sequence[float] | None = None  # of `train`: how many times each example is seen in an epoch; None: once
    teachers_digest: str = ""  # of the weights of the models that teach the new one

    @property
    def digests(self) -> dict[str, str]:
        """the digests by their keys in the card; empty for what was not given"""
        return {
            "sha256": self.digest,
            "dev_sha256": self.dev_digest,
            "extra_sha256": self.extra_digest,
            "teachers_sha256": self.teachers_digest,
        }

    def recipe(self, recipe: Recipe) -> Recipe:
        """Return the recipe with the limit of these data."""
        limit = self.max_characters or recipe.training.max_characters
        return replace(recipe, training=replace(recipe.training, max_characters=limit))


@dataclass(frozen=True)
class EvaluationOptions:
    """The options of `regard evaluate`; those that a task has no use for, it refuses."""

    reverse: bool = False
    languages: tuple[str, str] | None = None
    ensemble: tuple[Path, ...] = ()  # folders of further models
    beam: int | None = None
    mbr: int | None = None
    diagnose: str | None = None  # a measure of look/diagnostics.py
    show: int | None = None  # how many sentences `diagnose` lists
    calibrated: bool = False
    confidence: bool = False

    def refuse(self, names: Sequence[str], reason: str) -> None:
        """Raise a ValueError if one of these options is set."""
        defaults = {each.name: each.default for each in fields(self)}
        if any(getattr(self, name) != defaults[name] for name in names):
            raise ValueError(reason)


class TaskSpec(ABC, Generic[P, D]):
    """One task: how its data are read, how it is trained, loaded, scored and examined."""

    name: str  # of `--task` and of the card
    command: str | None = None  # that uses a model; None: it is used from Python
    noun: str  # what a model of it is called in messages

    default_recipe: str  # the name of the recipe that it is trained by, if none is given
    options: tuple[type, ...]  # of the models that it trains
    task_class: type[NewTask]
    extra_name: str = "extra data"  # what messages call the data of `TrainingData.extra_digest`
    tuned_digest: str = ""  # of the weights of the model that is tuned; empty: training begins with a new one
    tuned_score: str = ""  # of `ScoreReport.as_dict`: the score by which a tuned model is compared with the old one

    def recipe(self, given: str | Path | Recipe | None, settings: Mapping[str, Any] | None) -> Recipe:
        """Return the recipe that was given, or the default; raise a ValueError if it is for another task."""
        recipe = read_recipe(self.default_recipe if given is None else given, settings)
        if not isinstance(recipe.model, self.options):
            hint = f'a recipe of your own for it begins with base = "{self.default_recipe}"'
            raise ValueError(f"recipe: {recipe.name!r} is not for --task {self.name}; {hint}")
        return recipe

    def recipe_for(
        self, settings: Mapping[str, Any] | None, data: TrainingData[D], budget: Budget, begun: Recipe | None
    ) -> Recipe:
        """Return the default recipe for these data; `begun` is the recipe of a run that is resumed."""
        return self.recipe(None, settings)

    def completed(self, recipe: Recipe, examples: int, budget: Budget, begun: Recipe | None) -> Recipe:
        """Return the recipe with the open values chosen that depend on the device and the time; those of a run that is
        resumed are its own, `begun`."""
        return recipe

    def check_given(self, given: Given) -> None:
        """Raise a ValueError if options were given that the task has no use for."""
        if given.reverse or given.languages or given.extra is not None:
            names = "reverse, languages and extra"
            raise ValueError(f"{names} are for translating; expected none of them with --task {self.name}")
        if given.teachers:
            raise ValueError(f"teachers are for translating; expected none with --task {self.name}")
        if weighted_parts(given.data) is not None:
            raise ValueError(f"data with weights are for translating; expected none with --task {self.name}")

    @abstractmethod
    def data(self, given: Given, recipe: Recipe, screen: Screen) -> TrainingData[D]:
        """Read the training and validation examples; say how many there are, and what is left out."""

    def task(self, data: TrainingData[D], recipe: Recipe, seed: int) -> Task:
        """Return what the training loop trains: a pure function of its arguments."""
        return self.task_class.of(data.train, data.dev, data.recipe(recipe), seed)

    def read(self, given: Given) -> Callable[[Sequence[Path]], Corpus]:
        """Return the function that reads files of examples; raise a ValueError if a model of this task cannot be tuned,
        which goes on with new files."""
        raise ValueError(f"expected a translator or a classifier of texts to tune, got a {self.noun}")

    def check_examples(self, model: P, examples: D, name: str) -> None:
        """Raise a ValueError for examples that a model cannot be tuned to; `name` is what the error calls them."""

    def tuned_task(self, model: P, data: TrainingData[D], recipe: Recipe, seed: int) -> Task:
        """Return the task that trains a model further: on other data, with its vocabularies and labels."""
        raise ValueError(f"expected a translator or a classifier of texts to tune, got a {self.noun}")

    def load(self, folder: Path, device: str | None, precision: Precision) -> P:
        """Load a model of this task from its folder."""
        where, card, recipe = read_device(device), folders.read_card(folder), folders.read_recipe(folder)
        if not isinstance(recipe.model, self.options):
            raise ValueError(f"{folder}: damaged: expected a recipe with the model of a {self.noun}")
        loaded = Loaded(recipe, card, where, precision)
        with folders.trained_weights(folder, card) as weights:
            with without_memory(recipe.model):  # until it is known that the weights fit
                predictor = self.predictor(folder, recipe.model, loaded)
            if any(True for _ in predictor.model.buffers()):  # a model of one's own, with values besides its weights
                predictor = self.predictor(folder, recipe.model, loaded)
            load_weights(predictor.model, weights)
        predictor.model.to(where)
        return predictor

    @abstractmethod
    def predictor(self, folder: Path, options: Any, loaded: Loaded) -> P:
        """Return a predictor with an untrained model of the options; the folder has its vocabularies."""

    def score(
        self, model: P, dev: Any, say: Callable[[str], None], time: TimeLimit | None = None, world: World = ALONE
    ) -> ScoreReport:
        """Score a model on dev when its training has ended; what using it needs to know of dev goes into its card and
        its recipe. `say` reports what was chosen; `time` is the time limit of the run, None without one. The processes
        of `world` may share the work."""
        return model.evaluate(dev)

    def is_same_run(self, begun: Recipe, asked: Recipe) -> bool:
        """Return whether a run that began with one recipe can be resumed with the other."""
        return begun == asked

    def evaluate(
        self, folder: Path, files: Sequence[Path], options: EvaluationOptions, device: str | None, precision: Precision
    ) -> tuple[dict[str, Any], list[str]]:
        """Score the model of a folder on files, and return the scores for JSON and as lines of text."""
        raise ValueError(f"{folder}: expected a translator or a classifier of texts, got a {self.noun}")

    def examine(self, model: P, trace: Trace) -> Trace:
        """Return the trace with the evidence for and against its weights."""
        raise ValueError(f"evidence: expected a translator or a classifier of texts, got a {self.noun}")
