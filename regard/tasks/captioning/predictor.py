"""A trained captioner in use: from an image to what it shows in words, and where it looked for each of them."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

import torch
from torch import Tensor

from regard.config.folder import Vocabularies
from regard.config.recipe import DEFAULT_BEAM
from regard.look.picture import patches
from regard.look.trace import Trace
from regard.metrics.translation import Scores, score
from regard.models.images.captioner import CaptionerOptions
from regard.models.transformer.model import Transformer
from regard.runtime.precision import check_finite
from regard.search.distinct import n_best
from regard.search.force_decode import force_decode
from regard.search.hypothesis import LengthLimit
from regard.tasks.captioning.task import BATCH, patch_counts
from regard.tasks.predictor import Predictor
from regard.tasks.translation.tracing import Tracer, candidates, wording
from regard.text.vocabulary import Vocabulary


@dataclass(frozen=True)
class Caption:
    text: str
    trace: Trace  # its source are the patches, by their names; `look.picture` lays it over the image


@dataclass(eq=False, repr=False)
class Captioner(Predictor[Transformer]):
    """A model with its vocabulary, ready to caption images."""

    vocabulary: Vocabulary

    def __post_init__(self) -> None:
        super().__post_init__()
        self.limit = LengthLimit.from_card(self.card)

    def captions(self, pixels: Tensor, beam: int | None = None) -> list[Caption]:
        """Return the caption that beam search finds for each image [N, C, height, width], with its trace."""
        width = (self.recipe.search.beam or DEFAULT_BEAM) if beam is None else beam
        return [caption for batch in pixels.split(BATCH) for caption in self._captions(batch, width)]

    def evaluate(self, images: Iterable[tuple[Tensor, str]]) -> Scores:
        """Return the scores of captions against the one reference of each image."""
        pixels, references = zip(*images, strict=True)
        captions = self.captions(torch.stack(pixels))
        return score([caption.text for caption in captions], [[reference] for reference in references])

    def _captions(self, pixels: Tensor, width: int) -> list[Caption]:
        options = self.recipe.model
        assert isinstance(options, CaptionerOptions)
        source, counts = pixels.to(self.device), patch_counts(pixels, options.image)
        with self.autocast():
            batch_hypotheses = n_best(
                self.model, source, counts, self.limit, wording(self.vocabulary), width, width=width
            )
            decoded = force_decode(self.model, source, counts, [each[0].output_tokens for each in batch_hypotheses])
        check_finite(hypotheses[0].log_probability for hypotheses in batch_hypotheses)
        tracer = Tracer(Vocabularies(self.vocabulary, self.vocabulary), self.card)
        side = patches(options.image.grid.height, options.image.grid.width)
        traces = [
            tracer.trace_of(side, hypotheses[0], decoding, candidates(hypotheses, self.vocabulary))
            for hypotheses, decoding in zip(batch_hypotheses, decoded, strict=True)
        ]
        return [Caption(trace.target.text, trace) for trace in traces]
