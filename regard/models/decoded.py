"""What every translation model gives in training."""

from __future__ import annotations

from typing import NamedTuple

from torch import Tensor


class Decoded(NamedTuple):
    """A target under teacher forcing."""

    output: Tensor
    """o [B, T, O]; `logits` takes it to the vocabulary"""
    weights: Tensor | None
    """[B, T, S] if asked for: of the attention that may be told where to look"""
    log_probability: Tensor | None = None
    """[B, T] of hard attention's choices"""
