"""Additive attention with softmax over the same keys, one query after another, on the CPU: a decoder's attention.

    e_s = vᵀ tanh(q + k_s) = Σ v − 2 vᵀ r_s,      r_s = 1 / (e^{2q} e^{2k_s} + 1)
    w = softmax(e),      context = Σ_s w_s value_s

The exponentials of the keys are computed once, so that no pair needs a tanh. With u = r ⊙ (1 − r), which is
(1 − tanh²) / 4, with c = ∂L/∂context, and with ∂L/∂e, which is w ⊙ (∂L/∂w − Σ w ∂L/∂w), as g:

    ∂L/∂w_s = cᵀ value_s,      ∂L/∂value_s = Σ_t w_ts c_t,      ∂L/∂q = 4 v ⊙ Σ_s g_s u_s
    ∂L/∂k_s = 4 v ⊙ Σ_t g_ts u_ts,      ∂L/∂v = Σ_ts g_ts (1 − 2 r_ts)

Reads record their terms of the sums over t; keys, values and v get their gradients once, after the last read
(runtime/shared_gradients.py).
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property, partial
from itertools import count
from typing import Any, NamedTuple, cast

import torch
from torch import Tensor

from regard.core.kernels.cpu.second_order import gradients
from regard.core.normalizers import MASKED_ENERGY
from regard.core.scores import AdditiveTerms
from regard.runtime.shared_gradients import StepRecords, anchor_of

EXP_RANGE = 20.0  # the largest |q| and |k| for which e^{2q} e^{2k} stays within float32


class _Terms(NamedTuple):
    """The terms of a read in the gradients of keys, v and values."""

    energies: Tensor  # g [..., 1, S]
    reciprocals: Tensor  # r [..., S, H]
    vector: Tensor  # Σ_s g_s (1 − 2 r_s) [H]
    weights: Tensor  # w [..., 1, S]
    context: Tensor | None  # c [..., 1, Dv]


@dataclass
class _KeySum:
    """Σ_t g_ts u_ts over the reads since the last gradient of the keys, added up while u is in the processor's caches.

    Reads of a backward pass that did not need the keys' gradient are in it too: then the records are summed instead.
    """

    total: Tensor | None = None  # [..., S, H]
    reads: int = 0

    def add(self, energies: Tensor, slopes: Tensor) -> None:
        self.total = torch.zeros_like(slopes) if self.total is None else self.total
        self.total.addcmul_(energies.mT, slopes)
        self.reads += 1

    def take(self, terms: list[_Terms]) -> Tensor:
        """Return the sum over these reads, and begin anew."""
        if self.reads != len(terms):
            self.total = None
            for term in terms:
                self.add(term.energies, _slopes(term.reciprocals))
        total, self.total, self.reads = self.total, None, 0
        assert total is not None
        return total


_Records = StepRecords[_Terms | list[Tensor | None]]
"""of each read its terms, or, where the gradients are differentiated themselves, its gradients of keys, v and values"""


class AdditiveReads:
    """Keys and values that many queries read one after another.

    k [..., S, H], v [H] and value [..., S, Dv], in float32 or better; padding bool [..., 1, S] or None.
    """

    def __init__(self, key: Tensor, vector: Tensor, value: Tensor, padding: Tensor | None) -> None:
        self.inputs = key, vector, value
        self.key, self.vector, self.value = key.detach(), vector.detach(), value.detach()
        self.padding = padding

    def supports(self, query: Tensor) -> bool:
        """Return whether `read` supports the query: one query per row, with the leading dims of the keys."""
        return query.shape[-2] == 1 and query.shape[:-2] == self.key.shape[:-2] == self.value.shape[:-2]

    def read(self, query: Tensor) -> tuple[Tensor, Tensor]:
        """Attend with query [..., 1, H]; return (context [..., 1, Dv], weights [..., 1, S])."""
        anchor, _, _, numbers = self._shared
        return cast(tuple[Tensor, Tensor], _Read.apply(query, anchor, next(numbers), self))  # type: ignore[no-untyped-call]

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
    def _shared(self) -> tuple[Tensor, _Records, _KeySum, count[int]]:
        """The anchor that all reads depend on, their records, the keys' sum, and the numbers of the next reads."""
        records, key_sum = _Records(), _KeySum()
        shared_gradients = partial(_shared_gradients, vector=self.vector, key_sum=key_sum)
        return anchor_of(records, shared_gradients, *self.inputs), records, key_sum, count()


def _shared_gradients(
    records: list[_Terms | list[Tensor | None]], vector: Tensor, key_sum: _KeySum
) -> tuple[Tensor | None, ...]:
    """Return the gradients of keys, v and values, summed over the reads."""
    if not isinstance(records[0], _Terms):
        return tuple(_sum_present(grads) for grads in zip(*records, strict=True))
    terms = cast(list[_Terms], records)
    pairs = [(term.weights, term.context) for term in terms if term.context is not None]
    value = None
    if pairs:
        weights, contexts = zip(*pairs, strict=True)
        value = torch.cat(weights, -2).mT @ torch.cat(contexts, -2)  # [..., S, T] [..., T, Dv]
    return key_sum.take(terms).mul_(4 * vector), torch.stack([term.vector for term in terms]).sum(0), value


class _Read(torch.autograd.Function):
    """One read: the gradient of its query; its terms of those of keys, v and values are recorded."""

    @staticmethod
    def forward(ctx: Any, query: Tensor, anchor: Tensor, number: int, reads: AdditiveReads) -> tuple[Tensor, Tensor]:
        reciprocals = reads.reciprocals(query)[..., 0, :, :]  # r [..., S, H]
        energies = reads.energies_from(reciprocals)[..., None, :]  # [..., 1, S]
        if reads.padding is not None:
            energies.masked_fill_(reads.padding, MASKED_ENERGY)
        weights = torch.softmax(energies, -1)
        if reads.padding is not None:
            weights.masked_fill_(reads.padding, 0)
        ctx.reads, ctx.number = reads, number
        _, ctx.records, ctx.key_sum, _ = reads._shared
        ctx.set_materialize_grads(False)
        ctx.save_for_backward(query, reciprocals, weights)
        return weights @ reads.value, weights

    @staticmethod
    def backward(  # type: ignore[override]
        ctx: Any, context_grad: Tensor | None, weights_grad: Tensor | None
    ) -> tuple[Tensor | None, ...]:
        query, reciprocals, weights = ctx.saved_tensors
        reads = ctx.reads
        if torch.is_grad_enabled():  # the gradients are differentiated themselves
            query_grad, *others = gradients(reads.read_plainly, (query, *reads.inputs), (context_grad, weights_grad))
            return query_grad, ctx.records.add(ctx.number, others), None, None
        if context_grad is not None:
            from_context = context_grad @ reads.value.mT
            weights_grad = from_context if weights_grad is None else weights_grad + from_context
        assert weights_grad is not None
        product = weights * weights_grad
        energy_grad = product - weights * product.sum(-1, keepdim=True)  # g [..., 1, S]
        slopes = _slopes(reciprocals)
        ctx.key_sum.add(energy_grad, slopes)
        row = energy_grad.reshape(1, -1)
        vector = row.sum() - 2 * (row @ reciprocals.reshape(-1, reciprocals.shape[-1]))[0]
        grad_anchor = ctx.records.add(ctx.number, _Terms(energy_grad, reciprocals, vector, weights, context_grad))
        return (energy_grad @ slopes).mul_(4 * reads.vector), grad_anchor, None, None


def _slopes(reciprocals: Tensor) -> Tensor:
    """Return u = r − r²."""
    return torch.addcmul(reciprocals, reciprocals, reciprocals, value=-1)


def _sum_present(grads: tuple[Tensor | None, ...]) -> Tensor | None:
    present = [grad for grad in grads if grad is not None]
    return torch.stack(present).sum(0) if present else None
