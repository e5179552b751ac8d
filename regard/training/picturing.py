"""The task of saying what pictures show: from pictures and classes to batches, their loss, and accuracy on dev."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn

from regard.models.image import PictureClassifier, PictureOptions
from regard.training.checkpoint import Progress
from regard.training.plan import VALIDATED
from regard.training.precision import Precision
from regard.training.recipe import Recipe, TrainingRecipe
from regard.training.task import MakeBatch, Validation

BATCH = 256
"""pictures that are classified together"""


@dataclass(frozen=True)
class Pictures:
    """Pictures and what they show."""

    pixels: Tensor
    """[N, C, height, breadth], floating"""
    classes: Tensor
    """int64 [N]"""

    def __post_init__(self) -> None:
        if self.pixels.dim() != 4 or not self.pixels.dtype.is_floating_point:
            raise ValueError(
                f"pixels: expected floating-point numbers [N, C, height, breadth], got {self.pixels.dtype} "
                f"{list(self.pixels.shape)}"
            )
        if self.classes.shape != self.pixels.shape[:1] or self.classes.dtype != torch.int64:
            raise ValueError(
                f"classes: expected int64 [{len(self.pixels)}], got {self.classes.dtype} {list(self.classes.shape)}"
            )

    def __len__(self) -> int:
        return len(self.classes)


@dataclass(frozen=True)
class Batch:
    pixels: Tensor
    classes: Tensor

    @property
    def tokens(self) -> int:
        """pictures"""
        return len(self.classes)


@dataclass(frozen=True)
class Picturing:
    recipe: Recipe
    """of which training counts; the model is of the options"""
    options: PictureOptions
    names: Sequence[str]
    """of the classes"""
    train: Pictures
    held: Pictures
    """to choose by"""
    model: PictureClassifier
    seed: int
    shift: int = 0
    """in training, pictures are met moved by up to so many pixels, each way"""

    @classmethod
    def of(
        cls,
        train: Pictures,
        dev: Pictures,
        names: Sequence[str],
        options: PictureOptions,
        training: TrainingRecipe,
        seed: int,
        shift: int = 0,
    ) -> Picturing:
        """A pure function of what it is given."""
        torch.manual_seed(seed)
        recipe = Recipe(name="pictures", training=training)
        return cls(recipe, options, names, train, dev, PictureClassifier(options, len(names)), seed, shift)

    @property
    def dev(self) -> Sequence[tuple[Tensor, int]]:
        return list(zip(self.held.pixels, self.held.classes.tolist(), strict=True))

    @property
    def facts(self) -> dict[str, Any]:
        return {"task": "classify pictures", "classes": list(self.names)}

    def write(self, folder: Path) -> None:
        """There is no vocabulary."""

    # Batches

    @property
    def size(self) -> int:
        return len(self.train)

    @property
    def smallest(self) -> float:
        return 1.0

    def updates(self) -> int:
        return -(-len(self.train) // self._size)

    def epoch(self, number: int, batch: float = 1.0) -> Sequence[MakeBatch]:
        drawn = np.random.default_rng([self.seed, number, 2])
        order = torch.from_numpy(drawn.permutation(len(self.train)))
        moved = torch.from_numpy(drawn.integers(-self.shift, self.shift + 1, (len(self.train), 2)))
        return [partial(self._batch, rows, moved[rows]) for rows in order.split(self._size)]

    def _batch(self, rows: Tensor, moved: Tensor, device: torch.device) -> Batch:
        pixels = self.train.pixels[rows]
        return Batch(shifted(pixels, moved).to(device), self.train.classes[rows].to(device))

    @property
    def _size(self) -> int:
        return self.recipe.training.batch_sentences or 32

    # Loss and dev

    def recorded(self, device: torch.device) -> bool:
        return False

    def loss(self, batch: Batch, progress: Progress) -> tuple[Tensor, Tensor]:
        smoothing = self.recipe.training.label_smoothing
        logits = self.model(batch.pixels).logits.float()
        loss = nn.functional.cross_entropy(logits, batch.classes, label_smoothing=smoothing)
        return loss, loss.detach()

    def rehearse(self, device: torch.device, precision: Precision, trained: bool) -> float | None:
        return None

    def validate(self, number: int, device: torch.device, most: int = VALIDATED) -> Validation:
        found = classify(self.model, self.held.pixels, device)
        right = 100 * float((found == self.held.classes).double().mean())
        shown = number % len(self.held)
        meant, said = (self.names[int(each[shown])] for each in (self.held.classes, found))
        example = f"picture {shown}, {meant}  →  {said}"
        return Validation(right, f"{right:.2f} % right", example, {"accuracy": round(right, 3)})


@torch.inference_mode()
def classify(model: PictureClassifier, pixels: Tensor, device: torch.device | str = "cpu") -> Tensor:
    """The likeliest class of each picture: int64 [N]"""
    model.eval()
    found = [model(some.to(device)).logits.argmax(-1).cpu() for some in pixels.split(BATCH)]
    model.train()
    return torch.cat(found)


def shifted(pixels: Tensor, by: Tensor) -> Tensor:
    """Each of the pictures [N, C, h, w] moved down and right by `by` [N, 2]; what comes in from outside is 0."""
    most = int(by.abs().max()) if len(by) else 0
    if not most:
        return pixels
    height, width = pixels.shape[-2:]
    framed = nn.functional.pad(pixels, (most, most, most, most))
    rows = torch.arange(height) + most - by[:, :1]  # [N, h]: from where each row comes
    columns = torch.arange(width) + most - by[:, 1:]
    which = torch.arange(len(pixels))[:, None, None]
    return framed.movedim(1, -1)[which, rows[:, :, None], columns[:, None, :]].movedim(-1, 1)
