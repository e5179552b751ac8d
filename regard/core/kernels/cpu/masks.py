"""A cache for the masks of a part's tiles: which pairs are hidden."""

from __future__ import annotations

from collections.abc import Callable, Hashable

import torch
from torch import Tensor

_MAX_BYTES = 4 << 20  # for each part; windows need a few kilobytes, because their tiles look alike


class Masks:
    """A cache of masks. Equal masks are stored once; beyond a few megabytes masks are computed anew each time."""

    def __init__(self) -> None:
        self._by_key: dict[Hashable, Tensor] = {}
        self._by_content: dict[Hashable, Tensor] = {}
        self._bytes = 0

    def get(self, key: Hashable, compute: Callable[[], Tensor]) -> Tensor:
        """Return the cached mask of a key, or compute it."""
        cached = self._by_key.get(key)
        if cached is not None:
            return cached
        mask = compute()
        if self._bytes + mask.numel() <= _MAX_BYTES:
            content = (tuple(mask.shape), mask.device, bytes(mask.flatten().cpu().view(torch.uint8).numpy()))
            if content not in self._by_content:
                self._by_content[content] = mask
                self._bytes += mask.numel()
            mask = self._by_key[key] = self._by_content[content]
        return mask
