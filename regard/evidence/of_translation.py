"""Evidence about the attention weights of a translator: leave-one-out, gradient × input, and altered attention."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np
import torch

from regard.evidence.agreement import evidence
from regard.evidence.altered import altered
from regard.evidence.differentiating import differentiating
from regard.evidence.subject import ExaminedTranslator
from regard.look.trace import Evidence, Trace
from regard.search.force_decode import force_decode
from regard.text.normal import tidy
from regard.text.vocabulary import START


def examined(translator: ExaminedTranslator, trace: Trace) -> Trace:
    """Return the trace with all the evidence about its weights; the model runs some dozens of times."""
    tokens = translator.target_tokens(trace)
    measures = [compute(translator, trace, tokens) for compute in (leave_one_out, gradient)]
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

    Each target word has its own copy of the sentence in one backward pass.
    """
    target, source = trace.target, trace.source
    count, model = len(target.words), translator.model
    batch, lengths = translator.batch([translator.source_tokens(source.text)] * count)
    decoder_input = torch.tensor([[START, *tokens[:-1]]] * count, device=batch.device)
    expected = torch.tensor([tokens] * count, device=batch.device)
    with differentiating(model.source_embedding) as embedded, translator.autocast():
        logits = model.logits(model(batch, lengths, decoder_input).output).float()  # [words, T, V]
        log_probs = torch.log_softmax(logits, -1).gather(-1, expected[..., None])[..., 0]
        own = torch.tensor(target.groups, device=batch.device) == torch.arange(count, device=batch.device)[:, None]
        (gradients,) = torch.autograd.grad((log_probs * own).sum(), embedded[0])
    by_piece = (gradients * embedded[0]).sum(-1).abs().detach().float().cpu().numpy()  # [target words, source pieces]
    values = np.zeros((count, len(source.words)), np.float32)
    np.add.at(values.T, np.array(source.groups), by_piece.T)
    return evidence("gradient", values, trace)
