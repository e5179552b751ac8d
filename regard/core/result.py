"""What attention answers."""

from dataclasses import dataclass

from torch import Tensor


@dataclass(frozen=True)
class Top:
    """The largest weights of each query: descending, ties to the lower position; unused slots are 0 and −1."""

    weights: Tensor
    """[..., T, k], without gradient"""
    positions: Tensor
    """int64 [..., T, k]"""


@dataclass(frozen=True)
class Result:
    """The context and whatever was asked for beside it; the rest is None."""

    context: Tensor
    """[..., T, Dv]"""
    weights: Tensor | None = None
    """[..., T, S], before dropout, differentiable"""
    top: Top | None = None
    lse: Tensor | None = None
    """[..., T]: log Σ exp of the energies after scale and temperature; −inf where there is nothing to look at"""
    chosen: Tensor | None = None
    """int64 [..., T]: the key that Hard chose; −1 where there is nothing to look at"""
    log_probability: Tensor | None = None
    """[..., T]: log softmax(energies) at the chosen key; 0 where there is nothing to look at"""
