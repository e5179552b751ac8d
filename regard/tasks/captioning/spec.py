"""The task `captions`: what `train` and `load` ask of it."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

from torch import Tensor

from regard.config import folder as folders
from regard.config.recipe import Recipe
from regard.metrics.translation import Scores
from regard.models.building import load_weights
from regard.models.images.captioner import CaptionerOptions, build_captioner
from regard.runtime.precision import Precision, read_device
from regard.tasks.captioning.predictor import Captioner
from regard.tasks.captioning.task import CaptioningTask
from regard.tasks.images.data import CaptionedImages, image_data
from regard.tasks.spec import Given, TaskSpec, TrainingData
from regard.training.progress import Screen


class CaptionsSpec(TaskSpec[Captioner, CaptionedImages]):
    name = "captions"
    noun = "captioner"
    default_recipe = "captions"
    options = (CaptionerOptions,)

    def data(self, given: Given, recipe: Recipe, screen: Screen) -> TrainingData[CaptionedImages]:
        return image_data(given, CaptionedImages, screen)

    def task(self, data: TrainingData[CaptionedImages], recipe: Recipe, seed: int) -> CaptioningTask:
        return CaptioningTask.of(data.train, data.dev, recipe, seed)

    def load(self, folder: Path, card: dict[str, Any], device: str | None, precision: Precision) -> Captioner:
        where = read_device(device)
        recipe, vocabulary = folders.read_recipe(folder), folders.read_vocabularies(folder).target
        if not isinstance(recipe.model, CaptionerOptions):
            raise ValueError(f"{folder}: damaged: expected a recipe with the model of a captioner")
        model = build_captioner(recipe.model, len(vocabulary))
        load_weights(model, folders.trained_weights(folder, card))
        return Captioner(model, vocabulary, recipe, card, where, precision)

    def score(self, model: Captioner, dev: Sequence[tuple[Tensor, str]]) -> Scores:
        return model.evaluate(dev)
