"""The backward pass of attention tile by tile.

The weights are recomputed, those of a softmax as p = exp(energy − lse) with the merged lse of all parts, so that every
part's weights are final and the merge itself needs no gradient. With g the gradient of the context:

    dV += pᵀ g,   dp = g Vᵀ,   de = p ⊙ (dp − δ),   δ = Σ g ⊙ context − dlse,   and from de by the score to q and k
"""

from __future__ import annotations

from itertools import product

import torch
from torch import Tensor

from regard.core.kernels.cpu.parts import Tile
from regard.core.kernels.cpu.tile_access import Chunk, TileAccess, TileSettings
from regard.core.kernels.flat import FlatRows
from regard.core.kernels.residues import blank, ungroup
from regard.core.scores import at_least_float32


class Backward:
    """The gradients of query, key, value, vector and bias, part by part."""

    def __init__(
        self,
        settings: TileSettings,
        query: Tensor,
        key: Tensor,
        value: Tensor,
        vector: Tensor | None,
        needed: tuple[bool, ...],
    ) -> None:
        self.settings, self.query, self.key, self.value, self.vector = settings, query, key, value, vector
        self.energies_needed = needed[0] or needed[1] or needed[3] or needed[4]
        self.value_needed = needed[2]
        self.grad_vector = None if vector is None else torch.zeros_like(at_least_float32(vector))
        self.grad_bias: FlatRows | None = None
        if settings.bias is not None and needed[4]:
            self.grad_bias = FlatRows(torch.zeros_like(at_least_float32(settings.bias.tensor)), settings.bias.index)

    def __call__(self, context: Tensor, lse: Tensor, grad_context: Tensor | None, grad_lse: Tensor | None):  # type: ignore[no-untyped-def]
        rows = self.query.shape[0]
        g = torch.zeros_like(context) if grad_context is None else grad_context
        g = g.reshape(rows, *context.shape[-2:])
        delta = at_least_float32(g.new_empty(*g.shape[:2], 1))
        for row, index in enumerate(product(*map(range, context.shape[:-2]))):
            # one row at a time: the product for all rows would be as large as the context
            delta[row] = (at_least_float32(g[row]) * at_least_float32(context[index])).sum(-1, keepdim=True)
        if grad_lse is not None and lse.numel():
            delta = delta - grad_lse[..., None]
        # a row that sees no key has lse −inf: +inf in its place makes every weight 0
        row_lse = lse.masked_fill(lse == -torch.inf, torch.inf)[..., None] if lse.numel() else None
        totals: list[Tensor | None] = [None, None, None]
        for part in self.settings.parts:
            grads = self._part(TileAccess(self.settings, part, self.query, self.key, self.vector), g, delta, row_lse)
            totals = [new if old is None else old.add_(new) for old, new in zip(totals, grads, strict=True)]
        grad_query, grad_key, grad_value = (None if total is None else total.to(self.query.dtype) for total in totals)
        grad_vector = None if self.grad_vector is None else self.grad_vector.to(self.query.dtype)
        grad_bias = None
        if self.grad_bias is not None and self.settings.bias is not None:
            grad_bias = self.grad_bias.tensor.to(self.settings.bias.tensor.dtype)
        return grad_query, grad_key, grad_value, grad_vector, grad_bias, None

    def _part(self, tiled: TileAccess, g: Tensor, delta: Tensor, lse: Tensor | None) -> tuple[Tensor, Tensor, Tensor]:
        """Return the part's gradients of query [G, T, D], key [G, S, D] and value [G, S, Dv]."""
        value = tiled.by_key(self.value)
        dtype = at_least_float32(value[:0]).dtype
        grads = tuple(blank(x, x.shape[-1], 0.0, dtype) for x in (tiled.query, tiled.key, value))
        rows = [tiled.by_query(g), tiled.by_query(delta)]
        lse = None if lse is None else tiled.by_query(lse)
        for tile in tiled.part.all_tiles:
            for chunk in tiled.chunks(tile):
                self._tile(tiled, tile, chunk, value, rows, lse, grads)
        key_grad, value_grad = (ungroup(grad, self.settings.keys, 0) for grad in grads[1:])
        return ungroup(grads[0], tiled.queries, tiled.offset), key_grad, value_grad

    def _tile(  # type: ignore[no-untyped-def]
        self, tiled: TileAccess, tile: Tile, chunk: Chunk, value: Tensor, rows: list[Tensor], lse: Tensor | None, grads
    ) -> None:
        q, k = tiled.rows_of(tiled.query, tile, chunk), tiled.keys_of(tiled.key, tile, chunk)
        v = tiled.keys_of(value, tile, chunk)
        g, delta = (tiled.rows_of(x, tile, chunk) for x in rows)
        if tile.replaced:  # heavy tiles computed these rows: here they have no gradient
            numbers = torch.tensor(tile.replaced, device=g.device)
            g, delta = g.index_fill(1, numbers, 0), delta.index_fill(1, numbers, 0)
        energies = tiled.energies(tile, chunk, q, k)
        if lse is None:
            weights = self.settings.normalizer.weigh(energies)
        else:
            weights = energies.sub_(tiled.rows_of(lse, tile, chunk)).exp_()
        dropout_mask = tiled.dropout_mask(tile, chunk, weights.dtype)
        if self.value_needed:
            used = weights if dropout_mask is None else weights * dropout_mask
            tiled.add_keys(grads[2], tile, chunk, torch.bmm(used.mT, g))
        if not self.energies_needed:
            return
        grad_weights = tiled.scratch.bmm("grad_weights", g, v.mT)  # dp
        if dropout_mask is not None:
            grad_weights.mul_(dropout_mask)
        if lse is None:
            grad_energies = self.settings.normalizer.backward(weights, grad_weights)
        else:
            grad_energies = grad_weights.sub_(delta).mul_(weights)  # de
        grad_q, grad_k, grad_vector = tiled.score(chunk).backward(grad_energies, q, k)
        tiled.put_rows(grads[0], tile, chunk, grad_q)
        tiled.add_keys(grads[1], tile, chunk, grad_k)
        if grad_vector is not None and self.grad_vector is not None:
            classes = chunk[0].stop - chunk[0].start
            self.grad_vector[chunk[1]] += grad_vector.view(classes, -1, grad_vector.shape[-1]).sum(0)
        if self.grad_bias is not None:
            self._add_bias(tiled, tile, chunk, grad_energies)

    def _add_bias(self, tiled: TileAccess, tile: Tile, chunk: Chunk, grad_energies: Tensor) -> None:
        """Add de [g, R, C] to the bias's gradient [G, T or 1, S or 1]."""
        assert self.grad_bias is not None
        total = self.grad_bias.tensor
        grad_energies = grad_energies.sum(1, keepdim=True) if total.shape[1] == 1 else grad_energies
        grad_energies = grad_energies.sum(2, keepdim=True) if total.shape[2] == 1 else grad_energies
        device = total.device
        numbers = torch.arange(chunk[1].start, chunk[1].stop, device=device)
        batch = numbers if self.grad_bias.index is None else self.grad_bias.index[chunk[1]]
        first = torch.zeros(1, dtype=torch.int64, device=device)
        rows = tile.row_index(device) if total.shape[1] > 1 else first
        columns = tiled.columns(tile.spans) if total.shape[2] > 1 else first
        where = (batch[:, None, None], rows[:, None], columns)
        total.index_put_(where, grad_energies.to(total.dtype), accumulate=True)
