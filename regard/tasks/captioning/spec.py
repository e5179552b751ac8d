"""The task `captions`: what `train` and `load` ask of it."""

from __future__ import annotations

from pathlib import Path

from regard.config import folder as folders
from regard.config.recipe import Recipe
from regard.models.images.captioner import CaptionerOptions, build_captioner
from regard.tasks.captioning.predictor import Captioner
from regard.tasks.captioning.task import CaptioningTask
from regard.tasks.images.data import CaptionedImages, image_data
from regard.tasks.spec import Given, Loaded, TaskSpec, TrainingData
from regard.training.progress import Screen


class CaptionsSpec(TaskSpec[Captioner, CaptionedImages]):
    name = "captions"
    noun = "captioner"
    default_recipe = "captions"
    options = (CaptionerOptions,)
    task_class = CaptioningTask

    def data(self, given: Given, recipe: Recipe, screen: Screen) -> TrainingData[CaptionedImages]:
        return image_data(given, CaptionedImages, screen)

    def predictor(self, folder: Path, options: CaptionerOptions, loaded: Loaded) -> Captioner:
        vocabulary = folders.read_vocabularies(folder).target
        return Captioner(build_captioner(options, len(vocabulary)), *loaded, vocabulary)
