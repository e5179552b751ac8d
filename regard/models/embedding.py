"""Embeddings whose gradient on a GPU is one `index_add_`; torch's own sorts the tokens or handles them one by one.

Weight tying: embeddings can also be the output layer (Press and Wolf 2017).
"""

from __future__ import annotations

from typing import Any, Literal, cast

import torch
from torch import Tensor, nn

Tie = Literal["none", "target", "all"]


class Embedding(nn.Embedding):
    """Maps tokens [...] to vectors [..., D]. On a GPU the gradients of equal tokens are summed in no fixed order,
    unless torch uses deterministic algorithms."""

    def forward(self, tokens: Tensor) -> Tensor:
        if _sums_in_any_order(self.weight):
            return cast(Tensor, EmbeddingLookup.apply(self.weight, tokens, self.padding_idx))  # type: ignore[no-untyped-call]
        return super().forward(tokens)


def gather_rows(table: Tensor, indices: Tensor) -> Tensor:
    """Return the rows [..., D] of a table [N, D] at indices [...], with the same gradient as an `Embedding`."""
    if _sums_in_any_order(table):
        return cast(Tensor, EmbeddingLookup.apply(table, indices, None))  # type: ignore[no-untyped-call]
    return table[indices]


def _sums_in_any_order(table: Tensor) -> bool:
    """May the gradient be summed in any order? On a GPU, unless torch uses deterministic algorithms."""
    return table.is_cuda and torch.is_grad_enabled() and not torch.are_deterministic_algorithms_enabled()


class EmbeddingLookup(torch.autograd.Function):
    """An embedding lookup whose gradient is one `index_add_`."""

    @staticmethod
    def forward(ctx: Any, weight: Tensor, tokens: Tensor, padding: int | None) -> Tensor:
        ctx.save_for_backward(tokens)
        ctx.size, ctx.padding = len(weight), padding
        return weight.index_select(0, tokens.flatten()).view(*tokens.shape, weight.shape[1])

    @staticmethod
    def backward(ctx: Any, gradient: Tensor) -> tuple[Tensor, None, None]:  # type: ignore[override]
        (tokens,) = ctx.saved_tensors
        rows = gradient.reshape(-1, gradient.shape[-1])
        grad_weight = rows.new_zeros(ctx.size, rows.shape[1]).index_add_(0, tokens.flatten(), rows)
        if ctx.padding is not None:
            grad_weight[ctx.padding].zero_()
        return grad_weight, None, None


def tie(how: Tie, source: nn.Embedding, target: nn.Embedding, output: nn.Linear) -> None:
    """Initialize both embeddings with small numbers, and 0 for padding, and tie weights as `how` says. "target": the
    output layer is the target embedding; "all": the source embedding too."""
    for table in (source, target):
        nn.init.normal_(table.weight, std=table.embedding_dim**-0.5)
        nn.init.zeros_(table.weight[0].detach())
    if how != "none":
        output.weight = target.weight
    if how == "all":
        if source.num_embeddings != target.num_embeddings:
            got = f"got {source.num_embeddings} source and {target.num_embeddings} target tokens"
            raise ValueError(f"tie: 'all' needs one vocabulary for both sides, {got}")
        source.weight = target.weight
