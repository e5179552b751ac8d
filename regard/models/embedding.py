"""Embeddings whose gradient on a GPU is one addition: torch's own sorts tokens, or goes through them one by one."""

from __future__ import annotations

from typing import Any, cast

import torch
from torch import Tensor, nn


class Embedding(nn.Embedding):
    """tokens [...] → [..., D]. On a GPU equal tokens are added up in no fixed order, unless torch is told to be
    deterministic."""

    def forward(self, tokens: Tensor) -> Tensor:
        if _adds_up(self.weight):
            return cast(Tensor, Looked.apply(self.weight, tokens, self.padding_idx))  # type: ignore[no-untyped-call]
        return super().forward(tokens)


def rows_of(table: Tensor, places: Tensor) -> Tensor:
    """table [N, D], places [...] → [..., D], with the same gradient as an `Embedding`."""
    if _adds_up(table):
        return cast(Tensor, Looked.apply(table, places, None))  # type: ignore[no-untyped-call]
    return table[places]


def _adds_up(table: Tensor) -> bool:
    """May the gradient be added up in any order? On a GPU, unless torch is told to be deterministic."""
    return table.is_cuda and torch.is_grad_enabled() and not torch.are_deterministic_algorithms_enabled()


class Looked(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, weight: Tensor, tokens: Tensor, padding: int | None) -> Tensor:
        ctx.save_for_backward(tokens)
        ctx.size, ctx.padding = len(weight), padding
        return weight.index_select(0, tokens.flatten()).view(*tokens.shape, weight.shape[1])

    @staticmethod
    def backward(ctx: Any, gradient: Tensor) -> tuple[Tensor, None, None]:  # type: ignore[override]
        (tokens,) = ctx.saved_tensors
        rows = gradient.reshape(-1, gradient.shape[-1])
        found = rows.new_zeros(ctx.size, rows.shape[1]).index_add_(0, tokens.flatten(), rows)
        if ctx.padding is not None:
            found[ctx.padding].zero_()
        return found, None, None
