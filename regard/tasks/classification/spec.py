"""The task `classify`: what `train`, `load` and the commands ask of it."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from regard.config import folder as folders
from regard.config.recipe import Recipe
from regard.evidence.of_label import examined_label
from regard.look.trace import Trace
from regard.metrics.classification import LabelScores
from regard.models.documents.classifier import ClassifierOptions, TextClassifier
from regard.runtime.distributed import ALONE, World
from regard.runtime.precision import Precision
from regard.tasks.classification.predictor import Classifier
from regard.tasks.classification.soft_labels import SoftLabelled, SoftLabelledData
from regard.tasks.classification.task import ClassificationTask
from regard.tasks.spec import EvaluationOptions, Given, Loaded, TaskSpec, TimeLimit, TrainingData
from regard.tasks.text_data import Pairs, read_text_data
from regard.text.documents import Reader
from regard.text.labelled import read_gold, read_labelled
from regard.text.pairs import Corpus
from regard.training.progress import Screen

SHOWN_LABELS = 12  # labels that a summary counts


class ClassificationSpec(TaskSpec[Classifier, Pairs]):
    name = command = "classify"
    noun = "classifier"
    default_recipe = "classify"
    options = (ClassifierOptions,)
    task_class = ClassificationTask
    tuned_score = "accuracy"

    def read(self, given: Given) -> Callable[[Sequence[Path]], Corpus]:
        return read_labelled

    def data(self, given: Given, recipe: Recipe, screen: Screen) -> TrainingData[Pairs]:
        limit, soft = recipe.training.max_characters, given.data
        if not isinstance(soft, SoftLabelled):
            return read_text_data(given, read_labelled, _summary, limit, screen)
        data = read_text_data(replace(given, data=soft.texts), read_labelled, _summary, limit, screen)
        return SoftLabelledData.of(data, soft.soft_labels)

    def task(self, data: TrainingData[Pairs], recipe: Recipe, seed: int) -> ClassificationTask:
        soft_labels = data.soft_labels if isinstance(data, SoftLabelledData) else None
        return ClassificationTask.of(data.train, data.dev, data.recipe(recipe), seed, soft_labels)

    def check_examples(self, model: Classifier, examples: Pairs, name: str) -> None:
        try:
            model.check_labels([pair.target for pair in examples], f"{name}: labels")
        except ValueError as error:
            raise ValueError(f"{error}; tuning adds no labels: train anew on the old and the new texts") from None

    def tuned_task(self, model: Classifier, data: TrainingData[Pairs], recipe: Recipe, seed: int) -> ClassificationTask:
        return ClassificationTask.of(data.train, data.dev, data.recipe(recipe), seed, tuned=model)

    def predictor(self, folder: Path, options: ClassifierOptions, loaded: Loaded) -> Classifier:
        reader = Reader(folders.read_vocabularies(folder).source)
        labels = folders.read_labels(folder, loaded.card)
        model = TextClassifier(options, len(reader.vocabulary), len(reader.spelling), len(labels))
        return Classifier(model, *loaded, reader, labels)

    def score(
        self,
        model: Classifier,
        dev: Pairs,
        say: Callable[[str], None],
        time: TimeLimit | None = None,
        world: World = ALONE,
    ) -> LabelScores:
        model.calibrate(dev)
        return model.evaluate(dev, allow_unknown=True)

    def evaluate(
        self, folder: Path, files: Sequence[Path], options: EvaluationOptions, device: str | None, precision: Precision
    ) -> tuple[dict[str, Any], list[str]]:
        options.refuse(
            ["reverse", "languages", "ensemble", "beam", "mbr", "diagnose", "confidence"],
            "--reverse, --from, --to, --ensemble, --beam, --mbr, --diagnose and --confidence are for translators, and "
            "this is none",
        )
        gold = read_gold(files)
        classifier = self.load(folder, device, precision)
        classifier.check_labels([pair.target for pair in gold], f"{files[0]}: labels")
        scores = classifier.evaluate(gold, options.calibrated)
        return scores.as_dict(), [*scores.lines(), *scores.tables()]

    def examine(self, model: Classifier, trace: Trace) -> Trace:
        return examined_label(model, trace)


def _summary(train: Pairs, dev: Pairs) -> str:
    """Return how many texts there are, and how many of each label, in a sentence."""
    labels = Counter(pair.target for pair in train)
    counts = ", ".join(f"{label} {count:,}" for label, count in labels.most_common(SHOWN_LABELS))
    counts += f", {len(labels) - SHOWN_LABELS:,} more labels" if len(labels) > SHOWN_LABELS else ""
    return f"{len(train):,} texts for training, {len(dev):,} for validation ({counts})"
