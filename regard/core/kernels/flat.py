"""Tensors with their leading dims folded into one, without copying broadcast dims."""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor


@dataclass(frozen=True)
class FlatRows:
    """A batch whose row g is `tensor[index[g]]`: broadcast dims are an index, not a copy."""

    tensor: Tensor  # [rows, *rest]
    index: Tensor | None  # int64 [G]; None: row g is `tensor[g]`

    @classmethod
    def fold(cls, tensor: Tensor, leading: torch.Size, rest: int) -> FlatRows:
        """Fold all but the last `rest` dims of a tensor whose leading dims broadcast to `leading`."""
        own_leading = tensor.shape[: tensor.dim() - rest]
        folded = tensor.reshape(own_leading.numel(), *tensor.shape[tensor.dim() - rest :])
        if own_leading == leading:
            return cls(folded, None)
        numbers = torch.arange(folded.shape[0], device=tensor.device).view(own_leading)
        # GPU kernels read the index from memory, where one expanded row would be a single number without `contiguous`.
        return cls(folded, numbers.expand(leading).reshape(-1).contiguous())

    def numbers(self, count: int) -> Tensor:
        """Return the row of the tensor for each of the `count` rows of the batch, int64 [G]."""
        return torch.arange(count, device=self.tensor.device) if self.index is None else self.index

    def take(self, start: int, stop: int) -> Tensor:
        """Return rows start … stop − 1 of the batch, [stop − start, *rest]."""
        return self.tensor[start:stop] if self.index is None else self.tensor[self.index[start:stop]]


def fold(tensor: Tensor, leading: torch.Size) -> Tensor:
    """Fold [..., N, D] to [G, N, D]; broadcast dims are copied."""
    return tensor.expand(*leading, *tensor.shape[-2:]).reshape(leading.numel(), *tensor.shape[-2:])
