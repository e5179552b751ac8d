"""Position encodings of a Transformer.

sinusoidal  PE(i, 2a) = sin(i / 10000^(2a/D)),  PE(i, 2a+1) = cos(…), added to the embedding (Vaswani et al. 2017)
learned     a vector for each position, added to the embedding (Gehring et al. 2017)
rotary      queries and keys are rotated by their positions: core/rotary.py (Su et al. 2021)
alibi       − slope_h · |i − j| is added to the energies, with one slope for each head (Press et al. 2022)
"""

from __future__ import annotations

from typing import Literal

import torch
from torch import Tensor, nn

from regard.core.rotary import sinusoid_tables
from regard.runtime.device_cache import device_cache

SINUSOID_POSITIONS = 2048  # the number of positions that every table of sinusoids has at least
Kind = Literal["sinusoidal", "learned", "rotary", "alibi", "none"]


class Positions(nn.Module):
    """Adds position vectors to embeddings [..., N, D]; rotary, alibi and none add nothing here."""

    def __init__(self, kind: Kind, width: int, longest: int) -> None:
        super().__init__()
        self.kind = kind
        self.table: nn.Parameter | None = None
        if kind == "learned":
            self.table = nn.Parameter(torch.empty(longest, width))
            nn.init.normal_(self.table, std=width**-0.5)

    def forward(self, embedded: Tensor, position: int | Tensor = 0) -> Tensor:
        """Return the embeddings plus position vectors; the first embedding is at `position`.

        Positions beyond the learned ones get the last learned vector. If `position` is a tensor [1], known to the GPU
        alone, there must be one embedding (N = 1), at a position below `SINUSOID_POSITIONS`.
        """
        count, width = embedded.shape[-2:]
        if isinstance(position, Tensor):
            table = self.table if self.kind != "sinusoidal" else sinusoids(SINUSOID_POSITIONS, width, embedded.device)
            return embedded if table is None else embedded + table[position.clamp(max=len(table) - 1)]
        if self.table is not None:
            positions = torch.arange(position, position + count, device=embedded.device)
            return embedded + self.table[positions.clamp(max=len(self.table) - 1)]
        if self.kind == "sinusoidal":
            return embedded + sinusoids(position + count, width, embedded.device)[position:]
        return embedded

    def bias(self, heads: int, queries: int, keys: int, device: torch.device) -> Tensor | None:
        """Return the ALiBi bias [heads, T, S] of the last `queries`; None for other position encodings."""
        return alibi(heads, queries, keys, keys - queries, device) if self.kind == "alibi" else None


def sinusoids(count: int, width: int, device: torch.device) -> Tensor:
    """Return the sinusoids of the first `count` positions: [count, width]."""
    rounded = max(SINUSOID_POSITIONS, 1 << max(0, count - 1).bit_length())
    return sinusoid_tables(rounded, width, device, True)[0][:count]


def alibi(heads: int, queries: int, keys: int, position: int, device: torch.device) -> Tensor:
    """Return the bias − slope_h · |i − j| [heads, T, S], the first query at `position`; slopes 2^(−8/H), 2^(−16/H) …"""
    i, j = torch.arange(position, position + queries, device=device)[:, None], torch.arange(keys, device=device)
    return _negative_slopes(heads, device) * (i - j).abs()


@device_cache(maxsize=16, reason="every decoder step needs them, and copying them to a GPU makes Python wait")
def _negative_slopes(heads: int, device: torch.device) -> Tensor:
    return -(2.0 ** (-8.0 * torch.arange(1, heads + 1, device="cpu") / heads))[:, None, None].to(device)
