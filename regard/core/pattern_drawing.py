"""Patterns drawn as text: one row per query, one column per key."""

import torch
from torch import Tensor

MAX_CELLS = 64  # per side; in larger patterns a cell stands for several positions
_SHADES = "·░▒▓█"


def draw(mask: Tensor) -> str:
    """Draw a mask, bool [T, S] or [heads, T, S]: `■` where a query may attend, `·` where not. Where a cell stands
    for several positions, its shade is the fraction of pairs that are allowed."""
    if mask.dim() == 2:
        return _draw_one(mask)
    return "\n\n".join(f"head {head}\n{_draw_one(one)}" for head, one in enumerate(mask))


def _draw_one(mask: Tensor) -> str:
    cell = -(-max(mask.shape) // MAX_CELLS)
    if cell <= 1:
        return "\n".join(" ".join("■" if allowed else "·" for allowed in row) for row in mask.tolist())
    fractions = torch.nn.functional.avg_pool2d(mask[None].float(), cell, ceil_mode=True)[0]
    shades = (fractions * (len(_SHADES) - 1)).ceil().long()
    note = f"(a cell is {cell} × {cell} positions)"
    return "\n".join([*("".join(_SHADES[s] for s in row) for row in shades.tolist()), note])
