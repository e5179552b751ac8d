"""The task of saying in words what a picture shows: translation, from a picture (Vinyals et al. 2015, Xu et al. 2015).

The decoder, the loss, the search and the trace are those of translation; only the encoder is another.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import Any

import torch
from torch import Tensor

from regard import folder as folders
from regard.folder import Vocabularies
from regard.models.image import PictureEncoder, PictureOptions
from regard.models.transformer import Transformer, TransformerOptions
from regard.search.hypothesis import Length
from regard.search.walk import greedy
from regard.text.batches import Batch, arrange
from regard.text.examples import Example
from regard.text.vocabulary import Vocabulary, learn
from regard.training.checkpoint import Progress
from regard.training.loss import smoothed_loss
from regard.training.plan import VALIDATED
from regard.training.precision import Precision
from regard.training.recipe import Recipe
from regard.training.task import MakeBatch, Validation

BATCH = 128
"""pictures that are captioned together"""


@dataclass(frozen=True)
class Captioned:
    """Pictures and what is said of them."""

    pixels: Tensor
    """[N, C, height, breadth], floating"""
    captions: Sequence[str]

    def __post_init__(self) -> None:
        if len(self.captions) != len(self.pixels):
            raise ValueError(
                f"captions: expected one for each of {len(self.pixels)} pictures, got {len(self.captions)}"
            )

    def __len__(self) -> int:
        return len(self.captions)


@dataclass(frozen=True)
class Captioning:
    recipe: Recipe
    options: PictureOptions
    vocabulary: Vocabulary
    examples: Sequence[Example]
    """the captions, as the decoder has them"""
    model: Transformer
    limit: Length
    train: Captioned
    held: Captioned
    """to choose by"""
    seed: int

    @classmethod
    def of(cls, train: Captioned, dev: Captioned, options: PictureOptions, recipe: Recipe, seed: int) -> Captioning:
        """A pure function of what it is given. The recipe's model is a Transformer as wide as the pictures' encoder."""
        if not isinstance(recipe.model, TransformerOptions) or recipe.model.width != options.width:
            raise ValueError(f"recipe: expected a Transformer of width {options.width}, as the pictures have")
        vocabulary = learn(list(train.captions), recipe.vocabulary.kind, recipe.vocabulary.size)
        examples = [Example([], tokens) for tokens in vocabulary.encode_all(train.captions)]
        patches = options.grid.end
        limit = Length.learned([(patches, len(example.target)) for example in examples])
        torch.manual_seed(seed)
        model = Transformer(recipe.model, 0, len(vocabulary), encoder=PictureEncoder(options))
        return cls(recipe, options, vocabulary, examples, model, limit, train, dev, seed)

    @property
    def dev(self) -> Sequence[tuple[Tensor, str]]:
        return list(zip(self.held.pixels, self.held.captions, strict=True))

    @property
    def facts(self) -> dict[str, Any]:
        return {"task": "caption", "length": {"ratio": self.limit.ratio, "margin": self.limit.margin}}

    def write(self, folder: Path) -> None:
        folders.write_vocabularies(folder, Vocabularies(self.vocabulary, self.vocabulary))

    # Batches

    @property
    def size(self) -> int:
        return len(self.examples)

    @property
    def smallest(self) -> float:
        return 1.0

    def updates(self) -> int:
        return len(self._order(0))

    def epoch(self, number: int, batch: float = 1.0) -> Sequence[MakeBatch]:
        return [partial(self._batch, rows) for rows in self._order(number)]

    def _order(self, epoch: int) -> list[list[int]]:
        training = self.recipe.training
        return arrange(self.examples, training.batch_sentences or 64, training.batch_tokens or 10**9, self.seed, epoch)

    def _batch(self, rows: Sequence[int], device: torch.device) -> Batch:
        said = Batch.of([self.examples[row] for row in rows], device)
        pixels = self.train.pixels[torch.tensor(rows)].to(device)
        return replace(said, source=pixels, lengths=lengths(pixels, self.options))

    # Loss and dev

    def recorded(self, device: torch.device) -> bool:
        return False

    def loss(self, batch: Batch, progress: Progress) -> tuple[Tensor, Tensor]:
        decoded = self.model(batch.source, batch.lengths, batch.target)
        output, expected = batch.without_padding(decoded.output), batch.without_padding(batch.expected)
        layer = self.model.output
        smoothing = self.recipe.training.label_smoothing
        loss, each = smoothed_loss(output, layer.weight, layer.bias, expected, smoothing)
        return loss, each.mean()

    def rehearse(self, device: torch.device, precision: Precision, trained: bool) -> float | None:
        return None

    def validate(self, number: int, device: torch.device, most: int = VALIDATED) -> Validation:
        self.model.eval()
        said: list[str] = []
        for some in self.held.pixels.split(BATCH):
            found = greedy(self.model, some.to(device), lengths(some, self.options), self.limit)
            said += [self.vocabulary.decode(hypothesis.tokens) for hypothesis in found]
        self.model.train()
        right = 100 * sum(a == b for a, b in zip(said, self.held.captions, strict=True)) / len(said)
        shown = number % len(said)
        example = f"{self.held.captions[shown]}  →  {said[shown] or '(nothing)'}"
        return Validation(right, f"exact {right:.1f} %", example, {"exact": round(right, 3)})


def lengths(pixels: Tensor, options: PictureOptions) -> Tensor:
    """[B]: how many patches each picture has. All have as many."""
    return torch.full((len(pixels),), options.grid.end)
