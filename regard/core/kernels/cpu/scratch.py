"""Buffers that are reused for every tile: fresh memory pages cost as much as the arithmetic on them."""

from __future__ import annotations

import math

import torch
from torch import Tensor


class Scratch:
    """Named buffers that live as long as one pass over the tiles."""

    def __init__(self) -> None:
        self._buffers: dict[tuple[str, torch.dtype, torch.device], Tensor] = {}

    def take(self, name: str, shape: tuple[int, ...], like: Tensor) -> Tensor:
        """Return an uninitialized tensor; the next call with the same name overwrites it."""
        size, key = math.prod(shape), (name, like.dtype, like.device)
        buffer = self._buffers.get(key)
        if buffer is None or buffer.numel() < size:
            buffer = self._buffers[key] = torch.empty(size, dtype=like.dtype, device=like.device)
        return buffer[:size].view(shape)

    def bmm(self, name: str, left: Tensor, right: Tensor) -> Tensor:
        """Return left @ right, [B, R, D] × [B, D, C] → [B, R, C], in the named buffer."""
        shape = (left.shape[0], left.shape[1], right.shape[2])
        return torch.bmm(left, right, out=self.take(name, shape, left))
