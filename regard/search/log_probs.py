"""Log-probabilities of the next token, from a model's logits, and the k largest of them."""

from __future__ import annotations

from collections.abc import Iterator

import torch
from torch import Tensor

from regard.text.vocabulary import END

CPU_SENTENCES = 16  # at a time on the CPU, where their log-probabilities [16, …, V] stay in the cache
BLOCK = 64  # scores per block of `top_k`


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


def top_k(scores: Tensor, k: int) -> tuple[Tensor, Tensor]:
    """Return the k largest of scores [..., N] and their indices, [..., k], descending.

    On the CPU torch's topk takes many times as long as a pass over the scores. The largest k lie in the k blocks with
    the largest maxima, so one pass for the maxima leaves k · BLOCK candidates.
    """
    size = scores.shape[-1]
    blocks = size // BLOCK
    if scores.is_cuda or blocks <= 4 * k:
        return torch.topk(scores, k)  # type: ignore[return-value]
    blocked = blocks * BLOCK  # scores in whole blocks
    grid = scores[..., :blocked].unflatten(-1, (blocks, BLOCK))
    chosen = grid.amax(-1).topk(k).indices  # [..., k]
    candidates = grid.gather(-2, chosen[..., None].expand(*chosen.shape, BLOCK)).flatten(-2)
    places = (chosen[..., None] * BLOCK + torch.arange(BLOCK)).flatten(-2)
    if blocked < size:
        candidates = torch.cat([candidates, scores[..., blocked:]], -1)
        places = torch.cat([places, torch.arange(blocked, size).expand(*scores.shape[:-1], -1)], -1)
    best = candidates.topk(k)
    return best.values, places.gather(-1, best.indices)
