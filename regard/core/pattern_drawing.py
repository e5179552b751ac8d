"""Patterns drawn in text: a row a query, a column a key."""

import torch
from torch import Tensor

WIDEST = 64  # cells a side; larger patterns are drawn with several positions in a cell
_SHADES = "·░▒▓█"


def draw(mask: Tensor) -> str:
    """Draw a mask, bool [T, S] or [heads, T, S]: `■` where a query may look, `·` where not. Where a cell stands for
    several positions, its shade is the fraction of pairs that may look."""
    if mask.dim() == 2:
        return _draw_one(mask)
    return "\n\n".join(f"head {head}\n{_draw_one(one)}" for head, one in enumerate(mask))


def _draw_one(mask: Tensor) -> str:
    cell = -(-max(mask.shape) // WIDEST)
    if cell <= 1:
        return "\n".join(" ".join("■" if seen else "·" for seen in row) for row in mask.tolist())
    shares = torch.nn.functional.avg_pool2d(mask[None].float(), cell, ceil_mode=True)[0]
    shades = (shares * (len(_SHADES) - 1)).ceil().long()
    note = f"(a cell is {cell} × {cell} positions)"
    return "\n".join([*("".join(_SHADES[s] for s in row) for row in shades.tolist()), note])
