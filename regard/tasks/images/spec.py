"""The task `images`: what `train` and `load` ask of it."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

from torch import Tensor

from regard.config import folder as folders
from regard.config.recipe import Recipe
from regard.metrics.classification import LabelScores
from regard.models.building import load_weights
from regard.models.images.model import ImageModel, ImageOptions
from regard.runtime.precision import Precision, read_device
from regard.tasks.images.data import Images, image_data
from regard.tasks.images.predictor import ImageClassifier
from regard.tasks.images.task import ImageTask
from regard.tasks.spec import Given, TaskSpec, TrainingData
from regard.training.progress import Screen


class ImagesSpec(TaskSpec[ImageClassifier, Images]):
    name = "images"
    noun = "classifier of images"
    default_recipe = "images"
    options = (ImageOptions,)

    def data(self, given: Given, recipe: Recipe, screen: Screen) -> TrainingData[Images]:
        return image_data(given, Images, screen)

    def task(self, data: TrainingData[Images], recipe: Recipe, seed: int) -> ImageTask:
        return ImageTask.of(data.train, data.dev, recipe, seed)

    def load(self, folder: Path, card: dict[str, Any], device: str | None, precision: Precision) -> ImageClassifier:
        where = read_device(device)
        recipe, labels = folders.read_recipe(folder), folders.read_labels(folder, card)
        if not isinstance(recipe.model, ImageOptions):
            raise ValueError(f"{folder}: damaged: expected a recipe with the model of a classifier of images")
        model = ImageModel(recipe.model, len(labels))
        load_weights(model, folders.trained_weights(folder, card))
        return ImageClassifier(model, labels, recipe, card, where, precision)

    def score(self, model: ImageClassifier, dev: Sequence[tuple[Tensor, str]]) -> LabelScores:
        return model.evaluate(dev)
