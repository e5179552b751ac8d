"""What a model says when its attention is taken from it: if nothing changes, the weights explain nothing."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import torch
from torch import Tensor

from regard.evidence.subject import ExaminedTranslator
from regard.look.trace import Altered, Trace
from regard.search.force_decode import force_decode
from regard.search.hypothesis import DecoderModel
from regard.search.stepwise import greedy

Change = Callable[[Tensor], Tensor]
"""weights [..., S] → others"""


def altered(translator: ExaminedTranslator, trace: Trace, tokens: Sequence[int]) -> list[Altered]:
    """Greedy translations, and log p of the `tokens` that were said, with other weights in the place of its own."""
    models: dict[str, DecoderModel] = {
        "as it is": translator.model,
        "uniform attention": _Altering(translator.model, _uniform),
        "shuffled attention": _Altering(translator.model, _shuffled),
    }
    batch, lengths = translator.batch([translator.tokens(trace.source.text)])
    found = []
    for name, model in models.items():
        with translator.autocast():
            (said,) = greedy(model, batch, lengths, translator.limit)
            (told,) = force_decode(model, batch, lengths, [tokens])
        text = translator.vocabularies.target.decode(said.tokens)
        found.append(Altered(name, text, float(told.log_probabilities.sum())))
    return found


class _Altering:
    """A model whose weights are changed wherever it looks at the source."""

    def __init__(self, model: DecoderModel, change: Change) -> None:
        self._model, self._change = model, change

    def start(self, source: Tensor, lengths: Tensor) -> Any:
        return self._model.start(source, lengths).changed(self._change)

    def step(self, state: Any, tokens: Tensor) -> tuple[Tensor, Tensor, Any]:
        return self._model.step(state, tokens)

    def attentions(self, source: Tensor, lengths: Tensor, target: Tensor) -> dict[str, Tensor]:
        return self._model.attentions(source, lengths, target)


def _uniform(weights: Tensor) -> Tensor:
    return torch.full_like(weights, 1 / weights.shape[-1])


def _shuffled(weights: Tensor) -> Tensor:
    """By the same order at every step, and every time."""
    order = np.random.default_rng(weights.shape[-1]).permutation(weights.shape[-1])
    return weights[..., torch.from_numpy(order).to(weights.device)]
