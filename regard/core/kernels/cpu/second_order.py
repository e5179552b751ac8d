"""Gradients of gradients: a backward pass that is itself to be differentiated (`create_graph=True`).

A kernel's own backward pass is written by hand and cannot be differentiated. Where that is asked for, the gradients are
taken of the definition, out of plain operations that form all weights, and autograd does the rest.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import torch
from torch import Tensor
from torch.utils.weak import TensorWeakRef

from regard.core.kernels.cpu.tile_access import Settings
from regard.core.kernels.flat import Flat
from regard.core.normalizers import Softmax
from regard.core.reference import counters, drop, log_sum_exp, weights_of
from regard.core.request import Request
from regard.core.scores import AdditiveTerms, Bilinear, GivenTerms, energies_of, wide
from regard.runtime import noise
from regard.runtime.autocast import without_autocast


def gradients(
    define: Callable[..., Sequence[Tensor]], inputs: Sequence[Tensor | None], grads: Sequence[Tensor | None]
) -> list[Tensor | None]:
    """Return the gradients of the inputs of `define` from those of its outputs, themselves differentiable."""
    given = [None if x is None else x.view_as(x) for x in inputs]  # one tensor may stand at two places
    wanted = [x for x in given if x is not None and x.requires_grad]
    pairs = [(y, g) for y, g in zip(define(*given), grads, strict=True) if g is not None and y.requires_grad]
    if not wanted or not pairs:
        return [None] * len(given)
    outputs, weighed = zip(*pairs, strict=True)
    found = iter(torch.autograd.grad(outputs, wanted, weighed, create_graph=True, allow_unused=True))
    return [next(found) if x is not None and x.requires_grad else None for x in given]


def defined(
    settings: Settings, query: Tensor, key: Tensor, value: Tensor, vector: Tensor | None, bias: Tensor | None
) -> tuple[Tensor, Tensor]:
    """Return what the tiles compute, (context [..., T, Dv], lse [G, T]), by the reference."""
    terms = Bilinear(query, key, settings.scale) if vector is None else AdditiveTerms(query, key, vector)
    index = None if settings.bias is None else settings.bias.index
    request = Request(
        query=query,
        key=key,
        value=value,
        score=GivenTerms(terms, "the score"),
        pattern=settings.pattern,
        normalizer=settings.normalizer,
        bias=None if bias is None else Flat(wide(bias), index).take(0, len(query)),
        visible=None if settings.visible is None else settings.visible.take(0, len(query)),
        allowed=None if settings.allowed is None else settings.allowed.take(0, len(query)),
        lengths=None,
        position=settings.position,
        dropout=settings.dropout,
        seed=settings.seed,
        rows=settings.rows,
    )
    with without_autocast(query.device):
        energies = energies_of(terms)
        if settings.gumbel:
            drawn = noise.gumbel(settings.noise_seed, *counters(request), dtype=energies.dtype)
            energies = energies + settings.gumbel * drawn
        softmax = isinstance(settings.normalizer, Softmax)
        lse = log_sum_exp(request, energies) if softmax else energies.new_empty(0)
        context = drop(request, weights_of(request, energies)[0]) @ wide(value)
    return context.to(value.dtype).view(*settings.leading, *context.shape[1:]), lse


def differentiable_twice(
    context: Tensor, query: Tensor, key: Tensor, value: Tensor, mask: Tensor | None, causal: bool, scale: float
) -> None:
    """Give the backward pass of torch's fused attention, whose result `context` is, a derivative of its own.

    It finds the states where autograd keeps them, by weak references: they must not live longer for it.
    """
    node = context.grad_fn
    if node is None or not node.name().startswith("ScaledDotProduct"):  # torch's plain attention has one
        return
    states = [TensorWeakRef(x) for x in (query, key, value)]

    def define(query: Tensor, key: Tensor, value: Tensor) -> tuple[Tensor]:
        energies = wide(query) @ wide(key).mT * scale
        if causal:
            ahead = torch.ones(energies.shape[-2:], dtype=torch.bool, device=energies.device).triu(1)
            energies = energies.masked_fill(ahead, -torch.inf)
        elif mask is not None:
            energies = energies.masked_fill(~mask, -torch.inf) if mask.dtype is torch.bool else energies + mask
        return ((torch.softmax(energies, -1) @ wide(value)).to(value.dtype),)

    def differentiable(grad_inputs: tuple[Any, ...], grad_outputs: tuple[Any, ...]) -> tuple[Any, ...] | None:
        inputs = [state() for state in states]
        if not torch.is_grad_enabled() or any(x is None for x in inputs):
            return None
        with without_autocast(grad_outputs[0].device):
            found = gradients(define, inputs, grad_outputs[:1])
        wanted = [old if old is None else new for old, new in zip(grad_inputs, found, strict=False)]
        return (*wanted, *grad_inputs[len(found) :])

    node.register_hook(differentiable)
