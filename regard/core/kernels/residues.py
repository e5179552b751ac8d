"""Residue classes: positions 0, step, 2·step, … together, then 1, 1 + step, … and so on.

Inside a class, attention with a stride is full attention, and attention with a dilation is a window. Classes are views:
the states stay where they are, and a tile copies only what it needs.
"""

import torch
from torch import Tensor
from torch.nn.functional import pad


def regroup(states: Tensor, step: int, offset: int, fill: float = 0.0) -> Tensor:
    """[G, N, D] → [step, G, M, D]; the first state is at position `offset`, and `fill` fills up the classes."""
    batch, length, dim = states.shape
    members = -(-(offset + length) // step)
    behind = members * step - offset - length
    filled = pad(states, (0, 0, offset, behind), value=fill) if offset or behind else states
    return filled.reshape(batch, members, step, dim).permute(2, 0, 1, 3)


def blank(like: Tensor, dim: int, fill: float, dtype: torch.dtype) -> Tensor:
    """[step, G, M, dim], filled, for as many members as `like` has, and laid out so that `ungroup` copies nothing."""
    step, batch, members, _ = like.shape
    return like.new_full((batch, members, step, dim), fill, dtype=dtype).permute(2, 0, 1, 3)


def ungroup(classes: Tensor, length: int, offset: int) -> Tensor:
    """The inverse of `regroup`: [step, G, M, D] → [G, N, D]."""
    step, batch, members, dim = classes.shape
    filled = classes.permute(1, 2, 0, 3).reshape(batch, members * step, dim)
    return filled[:, offset : offset + length]
