"""Which pairs of a tile are hidden, computed once for a part and kept while that is cheap."""

from __future__ import annotations

from collections.abc import Callable, Hashable

import torch
from torch import Tensor

_MOST_BYTES = 4 << 20  # for each part; windows need a few kilobytes, because their tiles look alike


class Masks:
    """Equal masks are kept once; beyond a few megabytes they are computed anew each time."""

    def __init__(self) -> None:
        self._by_place: dict[Hashable, Tensor] = {}
        self._by_content: dict[Hashable, Tensor] = {}
        self._bytes = 0

    def get(self, place: Hashable, compute: Callable[[], Tensor]) -> Tensor:
        """The mask at a place, computed if it is not known."""
        known = self._by_place.get(place)
        if known is not None:
            return known
        mask = compute()
        if self._bytes + mask.numel() <= _MOST_BYTES:
            content = (tuple(mask.shape), mask.device, bytes(mask.flatten().cpu().view(torch.uint8).numpy()))
            if content not in self._by_content:
                self._by_content[content] = mask
                self._bytes += mask.numel()
            mask = self._by_place[place] = self._by_content[content]
        return mask
