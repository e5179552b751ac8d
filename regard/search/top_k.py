"""The largest few of many, exactly, without sorting all of them."""

from __future__ import annotations

import torch
from torch import Tensor

BLOCK = 64


def top_k(scores: Tensor, k: int) -> tuple[Tensor, Tensor]:
    """scores [..., N] → the k largest and their indices, [..., k], descending.

    On the CPU torch's topk costs many times a pass over the scores. The largest c lie in the c blocks with the largest
    maxima, so one pass for the maxima leaves c · BLOCK candidates.
    """
    size = scores.shape[-1]
    blocks = size // BLOCK
    if scores.is_cuda or blocks <= 4 * k:
        return torch.topk(scores, k)  # type: ignore[return-value]
    even = blocks * BLOCK
    grid = scores[..., :even].unflatten(-1, (blocks, BLOCK))
    chosen = grid.amax(-1).topk(k).indices  # [..., k]
    candidates = grid.gather(-2, chosen[..., None].expand(*chosen.shape, BLOCK)).flatten(-2)
    places = (chosen[..., None] * BLOCK + torch.arange(BLOCK)).flatten(-2)
    if even < size:
        candidates = torch.cat([candidates, scores[..., even:]], -1)
        rest = torch.arange(even, size).expand(*scores.shape[:-1], -1)
        places = torch.cat([places, rest], -1)
    best = candidates.topk(k)
    return best.values, places.gather(-1, best.indices)
