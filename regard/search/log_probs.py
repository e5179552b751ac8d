"""Log-probabilities of the next token, from a model's logits."""

from __future__ import annotations

from collections.abc import Iterator

import torch
from torch import Tensor

from regard.text.vocabulary import END

CPU_SENTENCES = 16
"""sentences at a time on the CPU, where their log-probabilities [16, …, V] stay in the cache"""


def sentence_chunks(logits: Tensor) -> Iterator[tuple[slice, Tensor]]:
    """Yield logits [B, …] for a few sentences at a time, with their rows; on a GPU all at once."""
    count = len(logits) if logits.is_cuda else CPU_SENTENCES
    for first in range(0, len(logits), count):
        rows = slice(first, first + count)
        yield rows, logits[rows]


def log_probs(logits: Tensor, allow_end: bool) -> Tensor:
    """Return log-probabilities in float32 for logits [..., V]: −inf for padding and the start token, and for the end
    token unless `allow_end`."""
    values = torch.log_softmax(logits.float(), -1)
    values[..., :END] = -torch.inf  # padding and start
    if not allow_end:
        values[..., END] = -torch.inf
    return values
