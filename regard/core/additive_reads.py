"""The same keys read by one query after another, with additive score and softmax, on the CPU: a decoder's attention.

    e_s = vᵀ tanh(q + k_s) = Σ v − 2 vᵀ r_s,      r_s = 1 / (e^{2q} e^{2k_s} + 1)
    w = softmax(e),      context = Σ_s w_s value_s

The exponentials of the keys are taken once, so that no pair needs a tanh. With u = r ⊙ (1 − r), which is
(1 − tanh²) / 4, with c = ∂L/∂context, and with ∂L/∂e, which is w ⊙ (∂L/∂w − Σ w ∂L/∂w), as g:

    ∂L/∂w_s = cᵀ value_s,      ∂L/∂value_s = Σ_t w_ts c_t,      ∂L/∂q = 4 v ⊙ Σ_s g_s u_s
    ∂L/∂k_s = 4 v ⊙ Σ_t g_ts u_ts,      ∂L/∂v = Σ_ts g_ts (1 − 2 r_ts)

Sums over the reads t are kept while their gradients come; keys, values and v get theirs once, when the last has come.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import cached_property
from typing import Any, cast

import torch
from torch import Tensor

from regard.core.kernels.cpu.second_order import gradients
from regard.core.scores import AdditiveTerms, energies_of

HIDDEN = -1e30
"""The energy of padding: finite, so that a row of nothing but padding has finite gradients."""
REACH = 20.0
"""up to which e^{2q} e^{2k} stays within float32"""


@dataclass
class _Sums:
    """What the reads of one backward pass have brought so far."""

    backward_pass: int
    """its number: one that asked for the queries' gradients alone leaves its sums behind"""
    key: Tensor
    """Σ_t g_ts u_ts [..., S, H]"""
    vector: Tensor
    """Σ_ts g_ts (1 − 2 r_ts) [H]"""
    weights: list[Tensor] = field(default_factory=list)
    """w of each read, [..., 1, S]"""
    contexts: list[Tensor] = field(default_factory=list)
    """c of each read, [..., 1, Dv]"""
    differentiable: list[list[Tensor | None]] = field(default_factory=list)
    """of reads whose gradients are to be differentiated themselves: those of key, v and value"""


class AdditiveReads:
    """k [..., S, H], v [H] and value [..., S, Dv], in float32 or better; padding bool [..., 1, S] or None."""

    def __init__(self, key: Tensor, vector: Tensor, value: Tensor, padding: Tensor | None) -> None:
        self.given = key, vector, value
        self.key, self.vector, self.value = key.detach(), vector.detach(), value.detach()
        self.padding = padding
        self.sums: _Sums | None = None

    def take(self, query: Tensor) -> bool:
        """Is it one query a row?"""
        return query.shape[-2] == 1 and query.shape[:-2] == self.key.shape[:-2] == self.value.shape[:-2]

    def read(self, query: Tensor) -> tuple[Tensor, Tensor]:
        """query [..., 1, H] → (context [..., 1, Dv], weights [..., 1, S])"""
        return cast(tuple[Tensor, Tensor], _Read.apply(query, self._anchor, self))  # type: ignore[no-untyped-call]

    def defined(self, query: Tensor, key: Tensor, vector: Tensor, value: Tensor) -> tuple[Tensor, Tensor]:
        """As `read`, out of plain operations."""
        energies = energies_of(AdditiveTerms(query, key, vector))
        if self.padding is not None:
            energies = energies.masked_fill(self.padding, HIDDEN)
        weights = torch.softmax(energies, -1)
        if self.padding is not None:
            weights = weights.masked_fill(self.padding, 0)
        return weights @ value, weights

    def energies(self, query: Tensor) -> Tensor:
        """query [..., T, H] → [..., T, S], without gradient; padding is not hidden yet."""
        return self.summed(self.parts(query))

    def summed(self, parts: Tensor) -> Tensor:
        """Σ v − 2 vᵀ r: [..., S, H] → [..., S]"""
        products = parts.reshape(-1, parts.shape[-1]) @ self.vector
        return torch.sub(self.vector.sum(), products, alpha=2).view(parts.shape[:-1])

    def parts(self, query: Tensor) -> Tensor:
        """r [..., T, S, H]"""
        query = query[..., :, None, :]
        if self._exponentials is None or not bool(query.abs().max() <= REACH):
            return torch.sigmoid_((query + self.key[..., None, :, :]).mul_(-2))
        return torch.addcmul(self._one, (2 * query).exp(), self._exponentials[..., None, :, :]).reciprocal_()

    @cached_property
    def _one(self) -> Tensor:
        return self.key.new_ones(())

    @cached_property
    def _exponentials(self) -> Tensor | None:
        """e^{2k}, if within reach."""
        return (2 * self.key).exp() if self.key.numel() and bool(self.key.abs().max() <= REACH) else None

    @cached_property
    def _anchor(self) -> Tensor:
        """All reads depend on it, so that its backward runs when the gradients of all have come; they hand it none."""
        return cast(Tensor, _Anchor.apply(*self.given, self))  # type: ignore[no-untyped-call]


class _Anchor(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, key: Tensor, vector: Tensor, value: Tensor, reads: AdditiveReads) -> Tensor:
        ctx.reads = reads
        return key.new_zeros(())

    @staticmethod
    def backward(ctx: Any, _: Tensor) -> tuple[Tensor | None, Tensor | None, Tensor | None, None]:  # type: ignore[override]
        reads, sums = ctx.reads, ctx.reads.sums
        reads.sums = None
        if sums.differentiable:
            key, vector, value = (_summed(grads) for grads in zip(*sums.differentiable, strict=True))
            return key, vector, value, None
        by_value = None
        if sums.contexts:
            by_value = torch.cat(sums.weights, -2).mT @ torch.cat(sums.contexts, -2)  # [..., S, T] [..., T, Dv]
        return sums.key.mul_(4 * reads.vector), sums.vector, by_value, None


class _Read(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, query: Tensor, anchor: Tensor, reads: AdditiveReads) -> tuple[Tensor, Tensor]:
        parts = reads.parts(query)[..., 0, :, :]  # r [..., S, H]
        energies = reads.summed(parts)[..., None, :]  # [..., 1, S]
        if reads.padding is not None:
            energies.masked_fill_(reads.padding, HIDDEN)
        weights = torch.softmax(energies, -1)
        if reads.padding is not None:
            weights.masked_fill_(reads.padding, 0)
        ctx.reads = reads
        ctx.set_materialize_grads(False)
        ctx.save_for_backward(query, parts, weights)
        return weights @ reads.value, weights

    @staticmethod
    def backward(  # type: ignore[override]
        ctx: Any, by_context: Tensor | None, by_weights: Tensor | None
    ) -> tuple[Tensor | None, None, None]:
        query, parts, weights = ctx.saved_tensors
        reads = ctx.reads
        sums = _sums(reads)
        if torch.is_grad_enabled():  # the gradients are to be differentiated themselves
            by_query, *others = gradients(reads.defined, (query, *reads.given), (by_context, by_weights))
            sums.differentiable.append(others)
            return by_query, None, None
        if by_context is not None:
            sums.weights.append(weights)
            sums.contexts.append(by_context)
            through = by_context @ reads.value.mT
            by_weights = through if by_weights is None else by_weights + through
        assert by_weights is not None
        product = weights * by_weights
        gradient = product - weights * product.sum(-1, keepdim=True)  # g [..., 1, S]
        slopes = torch.addcmul(parts, parts, parts, value=-1)  # u [..., S, H]
        sums.key.addcmul_(gradient.mT, slopes)
        row = gradient.reshape(1, -1)
        sums.vector += row.sum() - 2 * (row @ parts.reshape(-1, parts.shape[-1]))[0]
        return (gradient @ slopes).mul_(4 * reads.vector), None, None


def _summed(grads: tuple[Tensor | None, ...]) -> Tensor | None:
    known = [grad for grad in grads if grad is not None]
    return torch.stack(known).sum(0) if known else None


def _sums(reads: AdditiveReads) -> _Sums:
    """Those of the backward pass that is going on."""
    now = torch._C._current_graph_task_id()
    if reads.sums is None or reads.sums.backward_pass != now:
        reads.sums = _Sums(now, torch.zeros_like(reads.key), torch.zeros_like(reads.vector))
    return reads.sums
