"""How a Transformer knows where a token stands.

sinusoidal  PE(i, 2a) = sin(i / 10000^(2a/D)),  PE(i, 2a+1) = cos(…), added to the embedding (Vaswani et al. 2017)
learned     a vector for each position, added to the embedding (Gehring et al. 2017)
rotary      queries and keys are turned: core/rotary.py (Su et al. 2021)
alibi       − slope_h · |i − j| is added to the energies, a slope for each head (Press et al. 2022)
"""

from __future__ import annotations

from typing import Literal

import torch
from torch import Tensor, nn

from regard.runtime.device_cache import kept

FURTHEST = 2048
"""positions whose sinusoids are always there"""
Kind = Literal["sinusoidal", "learned", "rotary", "alibi", "none"]


class Positions(nn.Module):
    """Adds what is added to embeddings [..., N, D]; of rotary, alibi and none that is nothing."""

    def __init__(self, kind: Kind, width: int, longest: int) -> None:
        super().__init__()
        self.kind = kind
        self.table: nn.Parameter | None = None
        if kind == "learned":
            self.table = nn.Parameter(torch.empty(longest, width))
            nn.init.normal_(self.table, std=width**-0.5)

    def forward(self, embedded: Tensor, position: int | Tensor = 0) -> Tensor:
        """The first of them stands at `position`. Beyond the longest that was learned, the last vector stands in.

        Where only a GPU knows the position, [1], there is one of them, and it stands before `FURTHEST`.
        """
        count, width = embedded.shape[-2:]
        if isinstance(position, Tensor):
            table = self.table if self.kind != "sinusoidal" else sinusoids(FURTHEST, width, embedded.device)
            return embedded if table is None else embedded + table[position.clamp(max=len(table) - 1)]
        if self.table is not None:
            places = torch.arange(position, position + count, device=embedded.device)
            return embedded + self.table[places.clamp(max=len(self.table) - 1)]
        if self.kind == "sinusoidal":
            return embedded + sinusoids(position + count, width, embedded.device)[position:]
        return embedded


def sinusoids(count: int, width: int, device: torch.device) -> Tensor:
    """[count, width]"""
    return _waves(max(FURTHEST, 1 << max(0, count - 1).bit_length()), width, device)[:count]


@kept(most=64)
def _waves(count: int, width: int, device: torch.device) -> Tensor:
    """[count, width], for few counts"""
    speeds = 10000.0 ** (-torch.arange(0, width, 2, dtype=torch.float64) / width)
    angles = torch.arange(count, dtype=torch.float64)[:, None] * speeds  # [count, ⌈width/2⌉]
    waves = torch.stack([angles.sin(), angles.cos()], -1).flatten(1)[:, :width]
    return waves.float().to(device)


@kept(most=64)
def alibi(heads: int, queries: int, keys: int, position: int, device: torch.device) -> Tensor:
    """− slope_h · |i − j| [heads, T, S], the first query at `position`. Slopes are 2^(−8/H), 2^(−16/H) …"""
    slopes = 2.0 ** (-8.0 * torch.arange(1, heads + 1) / heads)
    places = torch.arange(position, position + queries)[:, None] - torch.arange(keys)
    return (-slopes[:, None, None] * places.abs()).to(device)
