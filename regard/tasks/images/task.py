"""The task `images`: from images and classes to batches, their loss, and accuracy on dev."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn

from regard.config.recipe import Recipe
from regard.models.images.model import ImageModel, ImageOptions
from regard.runtime.distributed import ALONE, World
from regard.tasks.images.data import Images
from regard.training.checkpoint import Progress
from regard.training.plan import MAX_VALIDATION_SOURCES
from regard.training.task import ONE, MakeBatch, NewTask, Shares, Validation, evenly_spaced

BATCH = 256  # images that are classified together


@dataclass(frozen=True)
class ImageBatch:
    pixels: Tensor
    classes: Tensor

    @property
    def tokens(self) -> int:
        """how many images there are"""
        return len(self.classes)


@dataclass(frozen=True)
class ImageTask(NewTask):
    recipe: Recipe
    train: Images
    dev: Images
    model: ImageModel
    seed: int

    @classmethod
    def of(cls, train: Images, dev: Images, recipe: Recipe, seed: int) -> ImageTask:
        assert isinstance(recipe.model, ImageOptions)
        names = tuple(train.names) if len(train.names) >= len(dev.names) else tuple(dev.names)
        options, training = recipe.model.for_images(train.pixels), recipe.training
        options.for_images(dev.pixels)  # which must have the same size
        training = replace(training, epochs=training.epochs or 40, batch_sentences=training.batch_sentences or 32)
        torch.manual_seed(seed)
        model = ImageModel(options, len(names))
        recipe = replace(recipe, model=options, training=training)
        return cls(recipe, replace(train, names=names), replace(dev, names=names), model, seed)

    @property
    def facts(self) -> dict[str, Any]:
        return {"task": "images", "labels": list(self.train.names)}

    # Batches

    @property
    def size(self) -> int:
        return len(self.train)

    def batches_per_epoch(self) -> int:
        return -(-len(self.train) // self._batch_size)

    def epoch(self, number: int, batch_fraction: float = 1.0, canonical: bool = False) -> Sequence[MakeBatch]:
        generator, shift = np.random.default_rng([self.seed, number, 2]), self.recipe.training.shift
        order = torch.from_numpy(generator.permutation(len(self.train)))
        shifts = torch.from_numpy(generator.integers(-shift, shift + 1, (len(self.train), 2)))
        return [partial(self._batch, rows, shifts[rows]) for rows in order.split(self._batch_size)]

    def _batch(self, rows: Tensor, shifts: Tensor, device: torch.device) -> ImageBatch:
        pixels = self.train.pixels[rows]
        return ImageBatch(shifted(pixels, shifts).to(device), self.train.classes[rows].to(device))

    @property
    def _batch_size(self) -> int:
        assert self.recipe.training.batch_sentences is not None
        return self.recipe.training.batch_sentences

    # Loss and dev

    def loss(self, batch: ImageBatch, progress: Progress, shares: Shares = ONE) -> tuple[Tensor, Tensor]:
        smoothing = self.recipe.training.label_smoothing
        logits = self.model(batch.pixels).logits.float()
        loss = nn.functional.cross_entropy(logits, batch.classes, label_smoothing=smoothing)
        return loss * shares[0], loss.detach()

    def validate(
        self, number: int, device: torch.device, max_sources: int = MAX_VALIDATION_SOURCES, world: World = ALONE
    ) -> Validation:
        images = self.dev.subset(torch.tensor(evenly_spaced(len(self.dev), max_sources)))
        self.model.eval()
        predicted = image_logits(self.model, images.pixels, device).argmax(-1)
        self.model.train()
        accuracy = 100 * float((predicted == images.classes).double().mean())
        shown = number % len(images)
        expected, label = (images.names[int(each[shown])] for each in (images.classes, predicted))
        example = f"image {shown}, {expected}  →  {label}"
        return Validation(accuracy, f"accuracy {accuracy:.2f} %", example, {"accuracy": round(accuracy, 3)})


@torch.inference_mode()
def image_logits(model: ImageModel, pixels: Tensor, device: torch.device) -> Tensor:
    """Return [N, classes], in float32 on the CPU. The model is expected in evaluation mode."""
    return torch.cat([model(batch.to(device)).logits.float().cpu() for batch in pixels.split(BATCH)])


def shifted(pixels: Tensor, by: Tensor) -> Tensor:
    """Return the images [N, C, h, w], each moved down and right by `by` [N, 2]; what comes in from outside is 0."""
    margin = int(by.abs().max()) if len(by) else 0
    if not margin:
        return pixels
    height, width = pixels.shape[-2:]
    framed = nn.functional.pad(pixels, (margin, margin, margin, margin))
    rows = torch.arange(height) + margin - by[:, :1]  # [N, h]: from where each row comes
    columns = torch.arange(width) + margin - by[:, 1:]
    which = torch.arange(len(pixels))[:, None, None]
    return framed.movedim(1, -1)[which, rows[:, :, None], columns[:, None, :]].movedim(-1, 1)
