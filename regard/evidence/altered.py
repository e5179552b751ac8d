"""What a model predicts when its attention weights are replaced: if nothing changes, the weights explain nothing."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import torch
from torch import Tensor

from regard.evidence.subject import ExaminedTranslator
from regard.look.trace import AlteredOutput, Trace
from regard.search.force_decode import force_decode
from regard.search.hypothesis import DecoderModel
from regard.search.stepwise import greedy

Change = Callable[[Tensor], Tensor]
"""a function from weights [..., S] to other weights"""


def altered(translator: ExaminedTranslator, trace: Trace, tokens: Sequence[int]) -> list[AlteredOutput]:
    """Return greedy translations, and log p of the trace's `tokens`, with the model's own weights and with others."""
    models: dict[str, DecoderModel] = {
        "as it is": translator.model,
        "uniform attention": _WithChangedAttention(translator.model, _uniform),
        "shuffled attention": _WithChangedAttention(translator.model, _shuffled),
    }
    batch, lengths = translator.batch([translator.source_tokens(trace.source.text)])
    results = []
    for name, model in models.items():
        with translator.autocast():
            (hypothesis,) = greedy(model, batch, lengths, translator.limit)
            (decoding,) = force_decode(model, batch, lengths, [tokens])
        text = translator.vocabularies.target.decode(hypothesis.tokens)
        results.append(AlteredOutput(name, text, float(decoding.log_probabilities.sum())))
    return results


class _WithChangedAttention:
    """A model whose cross-attention weights are changed."""

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
    """Permute the weights, in the same order at every step and in every run."""
    order = np.random.default_rng(weights.shape[-1]).permutation(weights.shape[-1])
    return weights[..., torch.from_numpy(order).to(weights.device)]
