"""Additive attention with softmax over the same keys, one query after another, on the CPU: a decoder's attention.

    e_s = vᵀ tanh(q + k_s) = Σ v − 2 vᵀ r_s,      r_s = 1 / (e^{2q} e^{2k_s} + 1)
    w = softmax(e),      context = Σ_s w_s value_s

The exponentials of the keys are computed once, so that no pair needs a tanh. With u = r ⊙ (1 − r), which is
(1 − tanh²) / 4, with c = ∂L/∂context, and with ∂L/∂e, which is w ⊙ (∂L/∂w − Σ w ∂L/∂w), as g:

    ∂L/∂w_s = cᵀ value_s,      ∂L/∂value_s = Σ_t w_ts c_t,      ∂L/∂q = 4 v ⊙ Σ_s g_s u_s
    ∂L/∂k_s = 4 v ⊙ Σ_t g_ts u_ts,      ∂L/∂v = Σ_ts g_ts (1 − 2 r_ts)

Sums over the reads t accumulate during the backward pass; keys, values and v get their gradients once, after the last
read.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import cached_property
from typing import Any, cast

import torch
from torch import Tensor

from regard.core.kernels.cpu.second_order import gradients
from regard.core.scores import AdditiveTerms

MASKED_ENERGY = -1e30
"""the energy of padding; finite, so that a row of nothing but padding has finite gradients"""
EXP_RANGE = 20.0
"""the largest |q| and |k| for which e^{2q} e^{2k} stays within float32"""


@dataclass
class _Sums:
    """Gradients that the reads of one backward pass have accumulated so far."""

    backward_pass: int
    """autograd's id of the pass; a pass that computes only the queries' gradients leaves its sums unused"""
    key: Tensor
    """Σ_t g_ts u_ts [..., S, H]"""
    vector: Tensor
    """Σ_ts g_ts (1 − 2 r_ts) [H]"""
    weights: list[Tensor] = field(default_factory=list)
    """w of each read, [..., 1, S]"""
    contexts: list[Tensor] = field(default_factory=list)
    """c of each read, [..., 1, Dv]"""
    differentiable: list[list[Tensor | None]] = field(default_factory=list)
    """[gradients of key, v and value] of each read whose gradients are differentiated themselves"""


class AdditiveReads:
    """Keys and values that many queries read one after another.

    k [..., S, H], v [H] and value [..., S, Dv], in float32 or better; padding bool [..., 1, S] or None.
    """

    def __init__(self, key: Tensor, vector: Tensor, value: Tensor, padding: Tensor | None) -> None:
        self.inputs = key, vector, value
        self.key, self.vector, self.value = key.detach(), vector.detach(), value.detach()
        self.padding = padding
        self.sums: _Sums | None = None

    def supports(self, query: Tensor) -> bool:
        """Return whether `read` supports the query: one query per row, with the leading dims of the keys."""
        return query.shape[-2] == 1 and query.shape[:-2] == self.key.shape[:-2] == self.value.shape[:-2]

    def read(self, query: Tensor) -> tuple[Tensor, Tensor]:
        """Attend with query [..., 1, H]; return (context [..., 1, Dv], weights [..., 1, S])."""
        return cast(tuple[Tensor, Tensor], _Read.apply(query, self._anchor, self))  # type: ignore[no-untyped-call]

    def read_plainly(self, query: Tensor, key: Tensor, vector: Tensor, value: Tensor) -> tuple[Tensor, Tensor]:
        """Compute what `read` does with plain operations, which autograd can differentiate twice."""
        energies = AdditiveTerms(query, key, vector).energies()
        if self.padding is not None:
            energies = energies.masked_fill(self.padding, MASKED_ENERGY)
        weights = torch.softmax(energies, -1)
        if self.padding is not None:
            weights = weights.masked_fill(self.padding, 0)
        return weights @ value, weights

    def energies(self, query: Tensor) -> Tensor:
        """Return the energies [..., T, S] of query [..., T, H], without gradient and before padding is masked."""
        return self.energies_from(self.reciprocals(query))

    def energies_from(self, reciprocals: Tensor) -> Tensor:
        """Return the energies Σ v − 2 vᵀ r [..., S] from r [..., S, H]."""
        products = reciprocals.reshape(-1, reciprocals.shape[-1]) @ self.vector
        return torch.sub(self.vector.sum(), products, alpha=2).view(reciprocals.shape[:-1])

    def reciprocals(self, query: Tensor) -> Tensor:
        """Return r [..., T, S, H]."""
        query = query[..., :, None, :]
        if self._key_exponentials is None or not bool(query.abs().max() <= EXP_RANGE):
            return torch.sigmoid_((query + self.key[..., None, :, :]).mul_(-2))
        return torch.addcmul(self._one, (2 * query).exp(), self._key_exponentials[..., None, :, :]).reciprocal_()

    @cached_property
    def _one(self) -> Tensor:
        return self.key.new_ones(())

    @cached_property
    def _key_exponentials(self) -> Tensor | None:
        """e^{2k}; None if the keys are too large for it."""
        return (2 * self.key).exp() if self.key.numel() and bool(self.key.abs().max() <= EXP_RANGE) else None

    @cached_property
    def _anchor(self) -> Tensor:
        """A scalar that all reads depend on, so that its backward runs after all of theirs; its gradient is None."""
        return cast(Tensor, _ReadsAnchor.apply(*self.inputs, self))  # type: ignore[no-untyped-call]


class _ReadsAnchor(torch.autograd.Function):
    """The gradients of keys, values and v, from the sums over all reads."""

    @staticmethod
    def forward(ctx: Any, key: Tensor, vector: Tensor, value: Tensor, reads: AdditiveReads) -> Tensor:
        ctx.reads = reads
        return key.new_zeros(())

    @staticmethod
    def backward(ctx: Any, _: Tensor) -> tuple[Tensor | None, Tensor | None, Tensor | None, None]:  # type: ignore[override]
        reads, sums = ctx.reads, ctx.reads.sums
        reads.sums = None
        if sums.differentiable:
            key, vector, value = (_sum_present(grads) for grads in zip(*sums.differentiable, strict=True))
            return key, vector, value, None
        value_grad = None
        if sums.contexts:
            value_grad = torch.cat(sums.weights, -2).mT @ torch.cat(sums.contexts, -2)  # [..., S, T] [..., T, Dv]
        return sums.key.mul_(4 * reads.vector), sums.vector, value_grad, None


class _Read(torch.autograd.Function):
    """One read: the gradient of its query; those of keys, values and v are added to the sums."""

    @staticmethod
    def forward(ctx: Any, query: Tensor, anchor: Tensor, reads: AdditiveReads) -> tuple[Tensor, Tensor]:
        reciprocals = reads.reciprocals(query)[..., 0, :, :]  # r [..., S, H]
        energies = reads.energies_from(reciprocals)[..., None, :]  # [..., 1, S]
        if reads.padding is not None:
            energies.masked_fill_(reads.padding, MASKED_ENERGY)
        weights = torch.softmax(energies, -1)
        if reads.padding is not None:
            weights.masked_fill_(reads.padding, 0)
        ctx.reads = reads
        ctx.set_materialize_grads(False)
        ctx.save_for_backward(query, reciprocals, weights)
        return weights @ reads.value, weights

    @staticmethod
    def backward(  # type: ignore[override]
        ctx: Any, context_grad: Tensor | None, weights_grad: Tensor | None
    ) -> tuple[Tensor | None, None, None]:
        query, reciprocals, weights = ctx.saved_tensors
        reads = ctx.reads
        sums = _sums(reads)
        if torch.is_grad_enabled():  # the gradients are differentiated themselves
            query_grad, *others = gradients(reads.read_plainly, (query, *reads.inputs), (context_grad, weights_grad))
            sums.differentiable.append(others)
            return query_grad, None, None
        if context_grad is not None:
            sums.weights.append(weights)
            sums.contexts.append(context_grad)
            from_context = context_grad @ reads.value.mT
            weights_grad = from_context if weights_grad is None else weights_grad + from_context
        assert weights_grad is not None
        product = weights * weights_grad
        energy_grad = product - weights * product.sum(-1, keepdim=True)  # g [..., 1, S]
        slopes = torch.addcmul(reciprocals, reciprocals, reciprocals, value=-1)  # u [..., S, H]
        sums.key.addcmul_(energy_grad.mT, slopes)
        row = energy_grad.reshape(1, -1)
        sums.vector += row.sum() - 2 * (row @ reciprocals.reshape(-1, reciprocals.shape[-1]))[0]
        return (energy_grad @ slopes).mul_(4 * reads.vector), None, None


def _sum_present(grads: tuple[Tensor | None, ...]) -> Tensor | None:
    present = [grad for grad in grads if grad is not None]
    return torch.stack(present).sum(0) if present else None


def _sums(reads: AdditiveReads) -> _Sums:
    """Return the sums of the backward pass that is running, starting new ones if it has none."""
    current = torch._C._current_graph_task_id()
    if reads.sums is None or reads.sums.backward_pass != current:
        reads.sums = _Sums(current, torch.zeros_like(reads.key), torch.zeros_like(reads.vector))
    return reads.sums
