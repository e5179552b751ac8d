"""Leading dims folded into one, without copying what is broadcast."""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor


@dataclass(frozen=True)
class Flat:
    """Row g of the batch is `tensor[index[g]]`: broadcast dims are an index, not a copy."""

    tensor: Tensor
    """[rows, *rest]"""
    index: Tensor | None
    """int64 [G]; None: row g itself"""

    @classmethod
    def fold(cls, tensor: Tensor, leading: torch.Size, rest: int) -> Flat:
        """Fold all but the last `rest` dims of a tensor whose leading dims broadcast to `leading`."""
        own = tensor.shape[: tensor.dim() - rest]
        folded = tensor.reshape(own.numel(), *tensor.shape[tensor.dim() - rest :])
        if own == leading:
            return cls(folded, None)
        numbers = torch.arange(folded.shape[0], device=tensor.device).view(own)
        # Kernels on a GPU read it as it lies in memory, and of one row expanded there would be one number.
        return cls(folded, numbers.expand(leading).reshape(-1).contiguous())

    def numbers(self, count: int) -> Tensor:
        """int64 [G] of `count` rows: which row of the tensor each is"""
        return torch.arange(count, device=self.tensor.device) if self.index is None else self.index

    def take(self, start: int, stop: int) -> Tensor:
        """Rows start … stop − 1 of the batch: [stop − start, *rest]."""
        return self.tensor[start:stop] if self.index is None else self.tensor[self.index[start:stop]]


def fold(tensor: Tensor, leading: torch.Size) -> Tensor:
    """[..., N, D] → [G, N, D], copied where it is broadcast."""
    return tensor.expand(*leading, *tensor.shape[-2:]).reshape(leading.numel(), *tensor.shape[-2:])
