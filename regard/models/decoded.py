"""The output of a translation model in training."""

from __future__ import annotations

from typing import NamedTuple

from torch import Tensor


class Decoded(NamedTuple):
    """The decoder's output for a target under teacher forcing."""

    output: Tensor
    """o [B, T, O]; the model's `logits` projects it to the vocabulary"""
    weights: Tensor | None
    """[B, T, S] if requested: of the attention head that guided alignment trains"""
    log_probability: Tensor | None = None
    """[B, T]: of the positions that hard attention sampled"""
