"""The task `images`: what `train` and `load` ask of it."""

from __future__ import annotations

from pathlib import Path

from regard.config import folder as folders
from regard.config.recipe import Recipe
from regard.models.images.model import ImageModel, ImageOptions
from regard.tasks.images.data import Images, image_data
from regard.tasks.images.predictor import ImageClassifier
from regard.tasks.images.task import ImageTask
from regard.tasks.spec import Given, Loaded, TaskSpec, TrainingData
from regard.training.progress import Screen


class ImagesSpec(TaskSpec[ImageClassifier, Images]):
    name = "images"
    noun = "classifier of images"
    default_recipe = "images"
    options = (ImageOptions,)
    task_class = ImageTask

    def data(self, given: Given, recipe: Recipe, screen: Screen) -> TrainingData[Images]:
        return image_data(given, Images, screen)

    def predictor(self, folder: Path, options: ImageOptions, loaded: Loaded) -> ImageClassifier:
        labels = folders.read_labels(folder, loaded.card)
        return ImageClassifier(ImageModel(options, len(labels)), *loaded, labels)
