"""An exact top-k that is faster than torch's on the CPU."""

from __future__ import annotations

import torch
from torch import Tensor

BLOCK = 64
"""scores per block"""


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
        rest = torch.arange(blocked, size).expand(*scores.shape[:-1], -1)
        places = torch.cat([places, rest], -1)
    best = candidates.topk(k)
    return best.values, places.gather(-1, best.indices)
