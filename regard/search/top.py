"""The largest few of many, exactly, without sorting all of them."""

from __future__ import annotations

import torch
from torch import Tensor

BLOCK = 64


def top(scores: Tensor, count: int) -> tuple[Tensor, Tensor]:
    """scores [..., N] → the `count` largest and their places, [..., count], descending.

    On the CPU torch's topk costs many times a pass over the scores. The largest c lie in the c blocks with the largest
    maxima, so one pass for the maxima leaves c · BLOCK candidates.
    """
    size = scores.shape[-1]
    blocks = size // BLOCK
    if scores.is_cuda or blocks <= 4 * count:
        return torch.topk(scores, count)  # type: ignore[return-value]
    even = blocks * BLOCK
    grid = scores[..., :even].unflatten(-1, (blocks, BLOCK))
    chosen = grid.amax(-1).topk(count).indices  # [..., count]
    candidates = grid.gather(-2, chosen[..., None].expand(*chosen.shape, BLOCK)).flatten(-2)
    places = (chosen[..., None] * BLOCK + torch.arange(BLOCK)).flatten(-2)
    if even < size:
        candidates = torch.cat([candidates, scores[..., even:]], -1)
        rest = torch.arange(even, size).expand(*scores.shape[:-1], -1)
        places = torch.cat([places, rest], -1)
    found = candidates.topk(count)
    return found.values, places.gather(-1, found.indices)
