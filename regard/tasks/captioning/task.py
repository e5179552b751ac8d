"""The task `captions`: translation from an image into words (Vinyals et al. 2015, Xu et al. 2015).

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

from regard.config import folder as folders
from regard.config.folder import Vocabularies
from regard.config.recipe import Recipe
from regard.models.images.captioner import CaptionerOptions, build_captioner
from regard.models.images.model import ImageOptions
from regard.models.transformer.model import Transformer
from regard.runtime.distributed import ALONE, World
from regard.search.hypothesis import LengthLimit
from regard.search.stepwise import greedy
from regard.tasks.images.data import CaptionedImages
from regard.tasks.text_task import TextTask
from regard.text.batches import Batch
from regard.text.examples import Example
from regard.text.vocabulary import Vocabulary, learn
from regard.training.checkpoint import Progress
from regard.training.loss import smoothed_loss
from regard.training.plan import MAX_VALIDATION_SOURCES
from regard.training.task import ONE, MakeBatch, Shares, Validation, evenly_spaced

BATCH = 128  # images that are captioned together


@dataclass(frozen=True)
class CaptioningTask(TextTask):
    recipe: Recipe
    options: ImageOptions
    vocabulary: Vocabulary
    examples: Sequence[Example]  # the captions, as the decoder reads them
    model: Transformer
    limit: LengthLimit
    train: CaptionedImages
    dev: CaptionedImages
    seed: int

    @classmethod
    def of(cls, train: CaptionedImages, dev: CaptionedImages, recipe: Recipe, seed: int) -> CaptioningTask:
        assert isinstance(recipe.model, CaptionerOptions)
        image, training = recipe.model.image.for_images(train.pixels), recipe.training
        image.for_images(dev.pixels)  # which must have the same size
        options = replace(recipe.model, image=image)
        training = replace(training, epochs=training.epochs or 20, batch_sentences=training.batch_sentences or 64)
        vocabulary = learn(list(train.captions), recipe.vocabulary.kind, recipe.vocabulary.size)
        examples = [Example([], tokens) for tokens in vocabulary.encode_all(train.captions)]
        limit = LengthLimit.learned([(image.grid.end, len(example.target)) for example in examples])
        torch.manual_seed(seed)
        model = build_captioner(options, len(vocabulary))
        recipe = replace(recipe, model=options, training=training)
        return cls(recipe, image, vocabulary, examples, model, limit, train, dev, seed)

    @property
    def facts(self) -> dict[str, Any]:
        return {"task": "captions", "length": {"ratio": self.limit.ratio, "margin": self.limit.margin}}

    def write(self, folder: Path) -> None:
        folders.write_vocabularies(folder, Vocabularies(self.vocabulary, self.vocabulary))

    # Batches

    @property
    def size(self) -> int:
        return len(self.examples)

    def batches_per_epoch(self) -> int:
        return len(self.arranged(self.examples, 0))

    def epoch(self, number: int, batch_fraction: float = 1.0, canonical: bool = False) -> Sequence[MakeBatch]:
        return [partial(self._batch, rows) for rows in self.arranged(self.examples, number)]

    def _batch(self, rows: Sequence[int], device: torch.device) -> Batch:
        captions = Batch.of([self.examples[row] for row in rows], device)
        pixels = self.train.pixels[torch.tensor(rows)].to(device)
        return replace(captions, source=pixels, lengths=patch_counts(pixels, self.options))

    # Loss and dev

    def loss(self, batch: Batch, progress: Progress, shares: Shares = ONE) -> tuple[Tensor, Tensor]:
        decoded = self.model(batch.source, batch.lengths, batch.target)
        output, expected = batch.real_tokens(decoded.output), batch.real_tokens(batch.expected)
        layer = self.model.output
        smoothing = self.recipe.training.label_smoothing
        loss, losses = smoothed_loss(output, layer.weight, layer.bias, expected, smoothing)
        return loss * shares[0], losses.mean()

    def validate(
        self, number: int, device: torch.device, max_sources: int = MAX_VALIDATION_SOURCES, world: World = ALONE
    ) -> Validation:
        images = self.dev.subset(torch.tensor(evenly_spaced(len(self.dev), max_sources)))
        self.model.eval()
        captions = world.map(range(len(images)), lambda rows: self._captions(images.pixels[list(rows)], device))
        self.model.train()
        exact = 100 * sum(a == b for a, b in zip(captions, images.captions, strict=True)) / len(captions)
        shown = number % len(captions)
        example = f"{images.captions[shown]}  →  {captions[shown] or '(nothing)'}"
        return Validation(exact, f"exact {exact:.1f} %", example, {"exact": round(exact, 3)})

    def _captions(self, pixels: Tensor, device: torch.device) -> list[str]:
        """Return the captions of images, searched for greedily."""
        captions: list[str] = []
        for batch in pixels.split(BATCH):
            hypotheses = greedy(self.model, batch.to(device), patch_counts(batch, self.options), self.limit)
            captions += [self.vocabulary.decode(hypothesis.tokens) for hypothesis in hypotheses]
        return captions


def patch_counts(pixels: Tensor, options: ImageOptions) -> Tensor:
    """Return how many patches each image has, [B]: all have as many."""
    return torch.full((len(pixels),), options.grid.end)
