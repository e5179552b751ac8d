"""Gradient × input: |∂ log p(target word) / ∂ embedding · embedding|, summed over the pieces of each source word."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import torch

from regard.evidence.agreement import evidence
from regard.evidence.differentiating import differentiating
from regard.evidence.subject import ExaminedTranslator
from regard.look.trace import Evidence, Trace
from regard.text.vocabulary import START


def gradient(translator: ExaminedTranslator, trace: Trace, tokens: Sequence[int]) -> Evidence:
    """Return the gradient × input of every target word; each has its own copy of the sentence in one backward pass."""
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
