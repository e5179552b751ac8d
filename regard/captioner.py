"""A captioner: from a picture to what it shows in words, and where it looked for each of them."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from torch import Tensor

from regard.folder import Vocabularies
from regard.look.picture import patches
from regard.look.trace import Trace
from regard.models.image import PictureOptions
from regard.models.transformer import Transformer
from regard.search.distinct import n_best
from regard.search.forced import forced
from regard.search.hypothesis import Length
from regard.text.vocabulary import Vocabulary
from regard.tracing import Tracer, candidates, wording
from regard.training.captioning import Captioning, lengths


@dataclass(frozen=True)
class Caption:
    text: str
    trace: Trace
    """its source are the patches, by their names; `look.picture` lays it over the picture"""


@dataclass(frozen=True)
class Captioner:
    """A trained model with its words."""

    model: Transformer
    options: PictureOptions
    vocabulary: Vocabulary
    limit: Length

    @classmethod
    def of(cls, task: Captioning) -> Captioner:
        """What a task has trained."""
        return cls(task.model.eval(), task.options, task.vocabulary, task.limit)

    def captions(self, pictures: Tensor, width: int = 5) -> list[Caption]:
        """pictures [B, C, height, breadth] → what a beam search of that width says of each, with its trace."""
        device = next(self.model.parameters()).device
        pixels, count = pictures.to(device), lengths(pictures, self.options)
        read = wording(self.vocabulary)
        found = n_best(self.model, pixels, count, self.limit, read, width, width=width)
        steps = forced(self.model, pixels, count, [some[0].said for some in found])
        tracer = Tracer(Vocabularies(self.vocabulary, self.vocabulary), self._card)
        source = patches(self.options.grid.height, self.options.grid.width)
        captions = []
        for some, each in zip(found, steps, strict=True):
            target = tracer.target(some[0].said)
            told = candidates(some, self.vocabulary)
            captions.append(Caption(target.text, tracer.trace(source, target, some[0].weights, each, told)))
        return captions

    @property
    def _card(self) -> dict[str, Any]:
        return {"parameters": sum(parameter.numel() for parameter in self.model.parameters())}
