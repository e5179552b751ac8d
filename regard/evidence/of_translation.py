"""Evidence about the attention weights of a translator: leave-one-out, gradient × input, altered or forced weights."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

import numpy as np
import torch
from torch import Tensor

from regard.evidence.agreement import evidence
from regard.evidence.differentiating import differentiating
from regard.evidence.subject import ExaminedTranslator
from regard.look.trace import AlteredOutput, Evidence, Trace, by_groups
from regard.search.force_decode import force_decode
from regard.search.hypothesis import DecoderModel
from regard.search.stepwise import greedy
from regard.text.normal import tidy
from regard.text.vocabulary import START

Change = Callable[[Tensor], Tensor]  # from weights [..., S] to other weights


def examined(translator: ExaminedTranslator, trace: Trace) -> Trace:
    """Return the trace with all the evidence about its weights; the model runs some dozens of times."""
    tokens = translator.target_tokens(trace)
    measures = [leave_one_out(translator, trace, tokens), gradient(translator, trace, tokens)]
    return replace(trace, evidence=measures, altered=altered(translator, trace, tokens))


def leave_one_out(translator: ExaminedTranslator, trace: Trace, tokens: Sequence[int]) -> Evidence:
    """Return how much log p of each target word falls when a source word is removed.

    `tokens` are force-decoded from the source without each of its words in turn; the end token is never removed: 0.
    """
    source, target = trace.source, trace.target
    words = [word for word in source.words if word.text]
    texts = [source.text, *(tidy(source.text[: word.start] + " " + source.text[word.end :]) for word in words)]
    batch, lengths = translator.batch([translator.source_tokens(text) for text in texts])
    with translator.autocast():
        decoded = force_decode(translator.model, batch, lengths, [tokens] * len(texts))
    log_probs = np.stack([each.log_probabilities for each in decoded])  # [1 + source words, target pieces]
    values = np.zeros((len(target.words), len(source.words)), np.float32)
    np.add.at(values[:, : len(words)], np.array(target.groups), (log_probs[:1] - log_probs[1:]).T)
    return evidence("leave one out", values, trace)


def gradient(translator: ExaminedTranslator, trace: Trace, tokens: Sequence[int]) -> Evidence:
    """Return |∂ log p(target word) / ∂ embedding · embedding|, summed over the pieces of each source word.

    Each target word has its own copy of the sentence in one backward pass. In an ensemble, a piece has an embedding in
    each member, and the products are summed over them.
    """
    target, source = trace.target, trace.source
    count, model = len(target.words), translator.model
    batch, lengths = translator.batch([translator.source_tokens(source.text)] * count)
    decoder_input = torch.tensor([[START, *tokens[:-1]]] * count, device=batch.device)
    expected = torch.tensor([tokens] * count, device=batch.device)
    with differentiating(*model.source_embeddings) as embedded, translator.autocast():
        logits = model.logits(model(batch, lengths, decoder_input).output).float()  # [words, T, V]
        log_probs = torch.log_softmax(logits, -1).gather(-1, expected[..., None])[..., 0]
        own = torch.tensor(target.groups, device=batch.device) == torch.arange(count, device=batch.device)[:, None]
        gradients = torch.autograd.grad((log_probs * own).sum(), embedded)
    products = [(slope * x).sum(-1) for slope, x in zip(gradients, embedded, strict=True)]  # one for each member
    by_piece = torch.stack(products).sum(0).abs().detach().float().cpu().numpy()  # [target words, source pieces]
    return evidence("gradient", by_groups(by_piece, range(count), source.groups), trace)


def altered(translator: ExaminedTranslator, trace: Trace, tokens: Sequence[int]) -> list[AlteredOutput]:
    """Return greedy translations, and log p of the trace's `tokens`, with the model's own weights and with others.

    If replacing the weights changes nothing, they explain nothing.
    """
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


def forced(
    translator: ExaminedTranslator, trace: Trace, source_word: int, target_word: int | None = None
) -> AlteredOutput:
    """Return the output of the model when all weight is on the pieces of a source word.

    Only the steps that write a target word are forced, and the words before it stay; without one, every step is forced.
    """
    source, target = trace.source, trace.target
    pieces = [place for place, word in enumerate(source.groups) if word == source_word]
    steps = [place for place, word in enumerate(target.groups) if target_word in (None, word)]
    if not pieces or not steps:
        counts = f"{len(source.words)} source and {len(target.words)} target words"
        raise ValueError(f"words: expected places among {counts}, got {source_word} and {target_word}")
    tokens = translator.target_tokens(trace)
    first = 0 if target_word is None else steps[0]
    during = None if target_word is None else range(first, steps[-1] + 1)
    model = _WithChangedAttention(translator.model, partial(_on_pieces, pieces=pieces), during)
    batch, lengths = translator.batch([translator.source_tokens(source.text)])
    with translator.autocast():
        (hypothesis,) = greedy(model, batch, lengths, translator.limit, [tokens[:first]])
        (decoding,) = force_decode(model, batch, lengths, [tokens], self_attention=False)
    text = translator.vocabularies.target.decode(hypothesis.tokens)
    return AlteredOutput(
        f"attention to {source.words[source_word].text}", text, float(decoding.log_probabilities.sum())
    )


class _WithChangedAttention:
    """A model whose cross-attention weights are changed: at every step, or at some."""

    def __init__(self, model: DecoderModel, change: Change, steps: range | None = None) -> None:
        self._model, self._change, self._steps = model, change, steps

    def start(self, source: Tensor, lengths: Tensor) -> Any:
        state = self._model.start(source, lengths)
        return state.changed(self._change) if self._steps is None else _CountedState(state, 0)

    def step(self, state: Any, tokens: Tensor) -> tuple[Tensor, Tensor, Any]:
        if self._steps is None:
            return self._model.step(state, tokens)
        change = self._change if state.step in self._steps else _as_it_is
        logits, weights, after = self._model.step(state.inner.changed(change), tokens)
        return logits, weights, _CountedState(after, state.step + 1)

    def attentions(self, source: Tensor, lengths: Tensor, target: Tensor) -> dict[str, Tensor]:
        return self._model.attentions(source, lengths, target)


@dataclass(frozen=True)
class _CountedState:
    """The state of a decoder, and how many steps led to it."""

    inner: Any
    step: int

    def select(self, parents: Tensor) -> _CountedState:
        return replace(self, inner=self.inner.select(parents))

    def keep(self, sentences: Tensor) -> _CountedState:
        return replace(self, inner=self.inner.keep(sentences))

    def static(self, steps: int) -> None:
        """Steps differ, so none is captured in a CUDA graph."""


def _as_it_is(weights: Tensor) -> Tensor:
    return weights


def _on_pieces(weights: Tensor, pieces: Sequence[int]) -> Tensor:
    """Return weights that are spread evenly over some pieces."""
    changed = torch.zeros_like(weights)
    changed[..., list(pieces)] = 1 / len(pieces)
    return changed


def _uniform(weights: Tensor) -> Tensor:
    return torch.full_like(weights, 1 / weights.shape[-1])


def _shuffled(weights: Tensor) -> Tensor:
    """Permute the weights, in the same order at every step and in every run."""
    order = np.random.default_rng(weights.shape[-1]).permutation(weights.shape[-1])
    return weights[..., torch.from_numpy(order).to(weights.device)]
