"""Images with their classes or captions, as `regard.train` takes them."""

from __future__ import annotations

import hashlib
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import TypeVar

import torch
from torch import Tensor

from regard.tasks.spec import Given, TrainingData
from regard.text.split import dev_size
from regard.training.progress import Screen


@dataclass(frozen=True)
class Images:
    """Images and their classes."""

    pixels: Tensor  # [N, C, height, width], floating
    classes: Tensor  # int64 [N]
    names: Sequence[str] = field(default=())  # of the classes; if not given, their numbers

    def __post_init__(self) -> None:
        _check_pixels(self.pixels)
        if self.classes.shape != self.pixels.shape[:1] or self.classes.dtype != torch.int64:
            raise ValueError(
                f"classes: expected int64 [{len(self.pixels)}], got {self.classes.dtype} {list(self.classes.shape)}"
            )
        highest = int(self.classes.max()) if len(self.classes) else -1
        if not self.names:
            object.__setattr__(self, "names", tuple(map(str, range(highest + 1))))
        if len(self.classes) and (int(self.classes.min()) < 0 or highest >= len(self.names)):
            raise ValueError(f"classes: expected numbers from 0 to {len(self.names) - 1}, one for each name")

    def __len__(self) -> int:
        return len(self.classes)

    def __iter__(self) -> Iterator[tuple[Tensor, str]]:
        return zip(self.pixels, [self.names[number] for number in self.classes.tolist()], strict=True)

    def subset(self, rows: Tensor) -> Images:
        """Return the images of these rows."""
        return Images(self.pixels[rows], self.classes[rows], self.names)


@dataclass(frozen=True)
class CaptionedImages:
    """Images and their captions."""

    pixels: Tensor  # [N, C, height, width], floating
    captions: Sequence[str]

    def __post_init__(self) -> None:
        _check_pixels(self.pixels)
        if len(self.captions) != len(self.pixels):
            raise ValueError(f"captions: expected one for each of {len(self.pixels)} images, got {len(self.captions)}")

    def __len__(self) -> int:
        return len(self.captions)

    def __iter__(self) -> Iterator[tuple[Tensor, str]]:
        return zip(self.pixels, self.captions, strict=True)

    def subset(self, rows: Tensor) -> CaptionedImages:
        """Return the images of these rows."""
        return CaptionedImages(self.pixels[rows], [self.captions[row] for row in rows.tolist()])


I = TypeVar("I", Images, CaptionedImages)  # noqa: E741


def image_data(given: Given, kind: type[I], screen: Screen) -> TrainingData[I]:
    """Return the training and validation images; without a dev part, some are set aside by a hash."""
    for name, images in (("data", given.data), ("dev", given.dev)):
        if name == "dev" and images is None:
            continue
        if not isinstance(images, kind):
            raise ValueError(f"{name}: expected regard.{kind.__name__}, got {type(images).__name__}")
        if not len(images):
            raise ValueError(f"{name}: expected at least one image, got none")
    train: I = given.data
    dev: I = given.dev
    digest, dev_digest = _digest(train.pixels), ""
    if dev is None:
        order = torch.tensor(sorted(range(len(train)), key=lambda row: _digest(train.pixels[row])))
        count = dev_size(len(train))
        if count == 0:
            raise ValueError(f"a dev part needs 5 images, {len(train)} came; add some, or give `dev`")
        dev, train = train.subset(order[:count].sort().values), train.subset(order[count:].sort().values)
    else:
        dev_digest = _digest(dev.pixels)
    screen.say(f"{len(train):,} images for training, {len(dev):,} for validation")
    return TrainingData(train, dev, "images", len(given.data), digest, dev_digest)


def _check_pixels(pixels: Tensor) -> None:
    if pixels.dim() != 4 or not pixels.dtype.is_floating_point:
        raise ValueError(
            f"pixels: expected floating-point numbers [N, C, height, width], got {pixels.dtype} {list(pixels.shape)}"
        )


def _digest(pixels: Tensor) -> str:
    return hashlib.sha256(pixels.detach().cpu().float().contiguous().numpy().tobytes()).hexdigest()
