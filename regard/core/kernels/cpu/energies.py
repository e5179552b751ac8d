"""Energies of one tile and their gradients, for the two families of scores. No autograd: the kernels call both.

q [B, R, D], k [B, C, D] → energies [B, R, C], all in float32 or better.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import torch
from torch import Tensor

from regard.core.scores import at_least_float32

_MAX_ELEMENTS = 1 << 20  # elements of [B, R, C, H] at a time: 4 MiB in float32, which fits into the caches; measured
_MIN_QUERIES = 3  # the fewest queries for which it pays to compute the exponentials of the keys; measured
_MAX_EXPONENT = 43.0  # e^(2·43) and e^(−2·43) are normal float32 numbers


class Scratch:
    """Named buffers, reused for every tile of one pass: fresh memory pages cost as much as the arithmetic on them."""

    def __init__(self) -> None:
        self._buffers: dict[tuple[str, torch.dtype, torch.device], Tensor] = {}

    def take(self, name: str, shape: tuple[int, ...], like: Tensor) -> Tensor:
        """Return an uninitialized tensor; the next call with the same name overwrites it."""
        size, key = math.prod(shape), (name, like.dtype, like.device)
        buffer = self._buffers.get(key)
        if buffer is None or buffer.numel() < size:
            buffer = self._buffers[key] = torch.empty(size, dtype=like.dtype, device=like.device)
        return buffer[:size].view(shape)

    def bmm(self, name: str, left: Tensor, right: Tensor) -> Tensor:
        """Return left @ right, [B, R, D] × [B, D, C] → [B, R, C], in the named buffer."""
        shape = (left.shape[0], left.shape[1], right.shape[2])
        return torch.bmm(left, right, out=self.take(name, shape, left))


@dataclass(frozen=True)
class BilinearTile:
    """scale · q kᵀ"""

    scale: float

    def energies(self, q: Tensor, k: Tensor, scratch: Scratch) -> Tensor:
        """Return the energies, in the scratch buffer "energies"."""
        scaled = torch.mul(q, self.scale, out=scratch.take("query", q.shape, q))
        return scratch.bmm("energies", scaled, k.mT)

    def backward(self, gradient: Tensor, q: Tensor, k: Tensor) -> tuple[Tensor, Tensor, None]:
        """Return the gradients of q [B, R, D] and of k [B, C, D] from that of the energies, [B, R, C]."""
        return torch.bmm(gradient, k).mul_(self.scale), torch.bmm(gradient.mT, q).mul_(self.scale), None


@dataclass(frozen=True)
class AdditiveTile:
    """vᵀ tanh(q + k), a few rows at a time, so that [B, R, C, H] never exists.

    tanh(a + b) = 1 − 2r with r = 1 / (e^{2a} e^{2b} + 1): the exponentials are taken once for each query and each key,
    and a pair costs a product, a sum and a reciprocal. The derivative is 4(r − r²). Where |a| or |b| exceeds 43 an
    exponential could overflow or vanish, and with one or two queries factoring does not pay: then a tanh for each pair.
    """

    vector: Tensor  # v [B, H]

    def energies(self, q: Tensor, k: Tensor, scratch: Scratch) -> Tensor:
        v = at_least_float32(self.vector)
        q, k, factored = _exponentials(q, k)
        energies = q.new_empty(q.shape[0], q.shape[1], k.shape[1])
        for b, r in _blocks(q.shape, k.shape[1]):
            pairs = _pairs(q[b, r], k[b], factored, scratch)  # [b, rows, C, H]
            energies[b, r] = torch.matmul(pairs.flatten(1, 2), v[b, :, None]).view(energies[b, r].shape)
        return energies.mul_(-2).add_(v.sum(-1)[:, None, None]) if factored else energies

    def backward(self, gradient: Tensor, q: Tensor, k: Tensor) -> tuple[Tensor, Tensor, Tensor]:
        """Return the gradients of q [B, R, H], k [B, C, H] and v [B, H] from that of the energies, [B, R, C]."""
        v, scratch = at_least_float32(self.vector), Scratch()
        q, k, factored = _exponentials(q, k)
        grad_q, grad_k, grad_v = torch.empty_like(q), torch.zeros_like(k), torch.zeros_like(v)
        for b, r in _blocks(q.shape, k.shape[1]):
            pairs = _pairs(q[b, r], k[b], factored, scratch)
            g = gradient[b, r, :, None]
            weighted = torch.mul(pairs, g, out=scratch.take("weighted", pairs.shape, pairs))
            grad_v[b] += weighted.sum((1, 2))
            # g · (r − r²), or g · (1 − tanh²)
            derivative = torch.addcmul(weighted if factored else g, weighted, pairs, value=-1, out=pairs)
            grad_q[b, r] = derivative.sum(2)
            grad_k[b] += derivative.sum(1)
        slope = v[:, None]
        if factored:
            slope = 4 * slope
            grad_v.mul_(-2).add_(gradient.sum((1, 2))[:, None])
        return grad_q.mul_(slope), grad_k.mul_(slope), grad_v


def _exponentials(q: Tensor, k: Tensor) -> tuple[Tensor, Tensor, bool]:
    """Return (e^{2q}, e^{2k}, True), or (q, k, False) where exponentials do not pay or could overflow."""
    # `not >`, so that a NaN does not matter here: on both paths it stays a NaN.
    if q.shape[1] >= _MIN_QUERIES and not any(bool(x.abs().max() > _MAX_EXPONENT) for x in (q, k) if x.numel()):
        return (q * 2).exp_(), (k * 2).exp_(), True
    return q, k, False


def _pairs(q: Tensor, k: Tensor, factored: bool, scratch: Scratch) -> Tensor:
    """Return r = 1 / (e^{2a} e^{2b} + 1) from exponentials, else tanh(a + b): [b, rows, C, H], in buffer "pairs"."""
    pairs = scratch.take("pairs", (*q.shape[:2], *k.shape[1:]), q)
    q, k = q[:, :, None], k[:, None]
    if factored:
        return torch.addcmul(q.new_ones(()), q, k, out=pairs).reciprocal_()
    return torch.add(q, k, out=pairs).tanh_()


def _blocks(shape: torch.Size, columns: int) -> list[tuple[slice, slice]]:
    """Return slices of (batch, rows) that have at most _MAX_ELEMENTS elements each, or one row."""
    batch, rows, hidden = shape
    per_row = max(1, columns * hidden)
    block_rows = max(1, min(rows, _MAX_ELEMENTS // per_row))
    block_batch = max(1, _MAX_ELEMENTS // (per_row * block_rows)) if block_rows == rows else 1
    return [
        (slice(b, b + block_batch), slice(r, r + block_rows))
        for b in range(0, batch, block_batch)
        for r in range(0, rows, block_rows)
    ]
