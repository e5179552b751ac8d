"""What translation models share in training: their output, and scheduled sampling."""

from __future__ import annotations

from typing import NamedTuple

import torch
from torch import Tensor


class Decoded(NamedTuple):
    """The decoder's output for a target under teacher forcing."""

    output: Tensor  # o [B, T, O]; the model's `logits` projects it to the vocabulary
    weights: Tensor | None  # [B, T, S] if requested: of the attention head that guided alignment trains
    log_probability: Tensor | None = None  # [B, T]: of the positions that hard attention sampled


def mix_in(predicted: Tensor, target: Tensor, sampling: float) -> Tensor:
    """Return the target tokens with a fraction of them replaced by predicted ones; padding stays."""
    replaced = torch.rand(target.shape, device=target.device) < sampling
    return torch.where(replaced & (target != 0), predicted, target)
