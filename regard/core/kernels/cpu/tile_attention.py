"""Attention tile by tile, with a hand-written backward pass: no T × S matrix is stored.

For each tile: energies, weights, context; of a softmax only the context and lse = log Σ exp are stored. Parts of a
union are merged by log-sum-exp:

    lse = log(e^{lse₁} + e^{lse₂}),      context = e^{lse₁ − lse} context₁ + e^{lse₂ − lse} context₂
"""

from __future__ import annotations

from functools import partial
from typing import cast

import torch
from torch import Tensor

from regard.core.kernels.cpu.second_order import defined, gradients
from regard.core.kernels.cpu.tile_access import TileAccess, TileSettings
from regard.core.kernels.cpu.tile_backward import Backward
from regard.core.kernels.residues import blank, ungroup
from regard.core.normalizers import Softmax
from regard.core.scores import at_least_float32


def attend(
    settings: TileSettings, query: Tensor, key: Tensor, value: Tensor, vector: Tensor | None, bias: Tensor | None
) -> tuple[Tensor, Tensor]:
    """Return (context [..., T, Dv], lse [G, T]), differentiable. The lse of sparse normalizers is empty."""
    return cast(tuple[Tensor, Tensor], _Attend.apply(query, key, value, vector, bias, settings))  # type: ignore[no-untyped-call]


class _Attend(torch.autograd.Function):
    """`bias` is the tensor inside `settings.bias`: it is passed so that autograd sees it."""

    @staticmethod
    def forward(ctx, query, key, value, vector, bias, settings):  # type: ignore[no-untyped-def]
        with torch.autocast(query.device.type, enabled=False):  # states are float32 here, and stay so
            context, lse = _forward(settings, query, key, value, vector)
        context = context.view(*settings.leading, *context.shape[1:])
        if settings.heads_inside:
            context = context.transpose(-3, -2).contiguous().transpose(-3, -2)
        ctx.settings = settings
        ctx.set_materialize_grads(False)
        ctx.save_for_backward(query, key, value, vector, bias, context, lse)
        return context, lse

    @staticmethod
    def backward(ctx, grad_context, grad_lse):  # type: ignore[no-untyped-def]
        query, key, value, vector, bias, context, lse = ctx.saved_tensors
        if torch.is_grad_enabled():
            define, inputs = partial(defined, ctx.settings), (query, key, value, vector, bias)
            return *gradients(define, inputs, (grad_context, grad_lse)), None
        backward = Backward(ctx.settings, query, key, value, vector, ctx.needs_input_grad)
        return backward(context, lse, grad_context, grad_lse)


def refuse_second_order() -> None:
    """Raise in a backward pass that is itself differentiated: autograd would silently treat its derivative as 0."""
    if torch.is_grad_enabled():
        hint = "regard.core.reference.reference(plan(...).request) does"
        raise RuntimeError(f"attention: this kernel gives no gradient of a gradient (create_graph=True); {hint}")


def _forward(
    settings: TileSettings, query: Tensor, key: Tensor, value: Tensor, vector: Tensor | None
) -> tuple[Tensor, Tensor]:
    context = lse = None
    for part in settings.parts:
        part_context, part_lse = _forward_part(TileAccess(settings, part, query, key, vector), value)
        if context is None or lse is None:
            context, lse = part_context, part_lse
        else:
            context, lse = _merge(context, lse, part_context, part_lse)
    assert context is not None and lse is not None
    return context.to(value.dtype), lse[..., 0] if isinstance(settings.normalizer, Softmax) else lse.new_empty(0)


def _forward_part(tiled: TileAccess, value: Tensor) -> tuple[Tensor, Tensor]:
    """Return (context [G, T, Dv], lse [G, T, 1]) in float32 or better."""
    value = tiled.by_key(value)
    dtype = at_least_float32(value[:0]).dtype
    context = blank(tiled.query, value.shape[-1], 0.0, dtype)
    lse = blank(tiled.query, 1, -torch.inf, dtype)
    for tile in tiled.part.all_tiles:
        for chunk in tiled.chunks(tile):
            q, k = tiled.rows_of(tiled.query, tile, chunk), tiled.keys_of(tiled.key, tile, chunk)
            energies = tiled.energies(tile, chunk, q, k)
            v = tiled.keys_of(value, tile, chunk)
            dropout_mask = tiled.dropout_mask(tile, chunk, dtype)
            if isinstance(tiled.settings.normalizer, Softmax):
                tile_context, tile_lse = _softmax_context(energies, v, dropout_mask)
                tiled.put_rows(lse, tile, chunk, tile_lse)
            else:
                weights = tiled.settings.normalizer.weigh(energies)
                tile_context = torch.bmm(weights if dropout_mask is None else weights * dropout_mask, v)
            tiled.put_rows(context, tile, chunk, tile_context)
    return ungroup(context, tiled.queries, tiled.offset), ungroup(lse, tiled.queries, tiled.offset)


def _softmax_context(energies: Tensor, value: Tensor, dropout_mask: Tensor | None) -> tuple[Tensor, Tensor]:
    """Return (context [B, R, Dv], lse [B, R, 1]) of energies [B, R, C], which are overwritten, and value [B, C, Dv]."""
    highest = energies.amax(-1, keepdim=True)
    highest.masked_fill_(highest == -torch.inf, 0)
    weights = energies.sub_(highest).exp_()
    total = weights.sum(-1, keepdim=True)
    lse = total.log().add_(highest)
    if dropout_mask is not None:
        weights.mul_(dropout_mask)
    context = torch.bmm(weights, value)
    return context.div_(total.masked_fill_(total == 0, 1)), lse


def _merge(context: Tensor, lse: Tensor, other: Tensor, other_lse: Tensor) -> tuple[Tensor, Tensor]:
    """Merge two softmaxes over disjoint sets of keys; the context is overwritten."""
    total = torch.logaddexp(lse, other_lse)
    finite = total.masked_fill(total == -torch.inf, 0)
    merged = context.mul_((lse - finite).exp_()).addcmul_(other, (other_lse - finite).exp_())
    return merged, total
