"""Residue classes: positions 0, step, 2·step, … together, then 1, 1 + step, … and so on.

Inside a class, attention with a stride is full attention, and attention with a dilation is a window.
"""

from torch import Tensor
from torch.nn.functional import pad


def regroup(states: Tensor, step: int, offset: int) -> Tensor:
    """[G, N, D] → [step, G, M, D]; the first state is at position `offset`, and 0 fills up the classes."""
    if step == 1:
        return states[None]
    batch, length, dim = states.shape
    members = -(-(offset + length) // step)
    behind = members * step - offset - length
    filled = pad(states, (0, 0, offset, behind)) if offset or behind else states
    return filled.reshape(batch, members, step, dim).permute(2, 0, 1, 3).contiguous()


def ungroup(classes: Tensor, length: int, offset: int) -> Tensor:
    """The inverse of `regroup`: [step, G, M, D] → [G, N, D]."""
    if classes.shape[0] == 1:
        return classes[0]
    step, batch, members, dim = classes.shape
    filled = classes.permute(1, 2, 0, 3).reshape(batch, members * step, dim)
    return filled[:, offset : offset + length]
