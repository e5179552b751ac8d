"""Residue classes: positions 0, step, 2·step, … together, then 1, 1 + step, … and so on.

Inside a class, attention with a stride is full attention, and attention with a dilation is a window. Classes are views:
the states stay where they are, and a tile copies only what it needs.
"""

import torch
from torch import Tensor
from torch.nn.functional import pad


def regroup(states: Tensor, step: int, offset: int, fill: float = 0.0) -> Tensor:
    """Regroup [G, N, D] into classes [step, G, M, D], padded with `fill`; the first state is at position `offset`."""
    batch, length, dim = states.shape
    members = -(-(offset + length) // step)
    missing = members * step - offset - length
    padded = pad(states, (0, 0, offset, missing), value=fill) if offset or missing else states
    return padded.reshape(batch, members, step, dim).permute(2, 0, 1, 3)


def blank(like: Tensor, dim: int, fill: float, dtype: torch.dtype) -> Tensor:
    """Return [step, G, M, dim] full of `fill`, with the members of `like`, laid out so that `ungroup` is a view."""
    step, batch, members, _ = like.shape
    return like.new_full((batch, members, step, dim), fill, dtype=dtype).permute(2, 0, 1, 3)


def ungroup(classes: Tensor, length: int, offset: int) -> Tensor:
    """Undo `regroup`: [step, G, M, D] → [G, N, D]."""
    step, batch, members, dim = classes.shape
    padded = classes.permute(1, 2, 0, 3).reshape(batch, members * step, dim)
    return padded[:, offset : offset + length]
