"""Gradients of gradients: a backward pass that is itself to be differentiated (`create_graph=True`).

A kernel's own backward pass is hand-written and cannot be differentiated. For second-order gradients, attention is
computed again by its definition, with plain operations and a weight matrix, and autograd differentiates that.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import torch
from torch import Tensor
from torch.utils.weak import TensorWeakRef

from regard.core.kernels.cpu.tile_access import TileSettings
from regard.core.kernels.flat import FlatRows
from regard.core.normalizers import Softmax
from regard.core.reference import counters, drop, log_sum_exp, weights_of
from regard.core.request import Request
from regard.core.scores import AdditiveTerms, BilinearTerms, PrecomputedTerms, at_least_float32
from regard.runtime import noise
from regard.runtime.precision import without_autocast


def gradients(
    define: Callable[..., Sequence[Tensor]], inputs: Sequence[Tensor | None], grads: Sequence[Tensor | None]
) -> list[Tensor | None]:
    """Return the gradients of the inputs of `define` from those of its outputs, themselves differentiable."""
    copies = [None if x is None else x.view_as(x) for x in inputs]  # one tensor may be passed twice
    differentiated = [x for x in copies if x is not None and x.requires_grad]
    with_grad = [(y, g) for y, g in zip(define(*copies), grads, strict=True) if g is not None and y.requires_grad]
    if not differentiated or not with_grad:
        return [None] * len(copies)
    outputs, output_grads = zip(*with_grad, strict=True)
    input_grads = iter(torch.autograd.grad(outputs, differentiated, output_grads, create_graph=True, allow_unused=True))
    return [next(input_grads) if x is not None and x.requires_grad else None for x in copies]


def defined(
    settings: TileSettings, query: Tensor, key: Tensor, value: Tensor, vector: Tensor | None, bias: Tensor | None
) -> tuple[Tensor, Tensor]:
    """Return what the tiles compute, (context [..., T, Dv], lse [G, T]), computed by the reference."""
    terms = BilinearTerms(query, key, settings.scale) if vector is None else AdditiveTerms(query, key, vector)
    index = None if settings.bias is None else settings.bias.index
    request = Request(
        query=query,
        key=key,
        value=value,
        score=PrecomputedTerms(terms, "the score"),
        pattern=settings.pattern,
        normalizer=settings.normalizer,
        bias=None if bias is None else FlatRows(at_least_float32(bias), index).take(0, len(query)),
        visible=None if settings.visible is None else settings.visible.take(0, len(query)),
        allowed=None if settings.allowed is None else settings.allowed.take(0, len(query)),
        lengths=None,
        position=settings.position,
        dropout=settings.dropout,
        seed=settings.seed,
        leading=settings.row_numbers.shape,
        row_numbers=settings.row_numbers,
    )
    with without_autocast(query.device):
        energies = terms.energies()
        if settings.gumbel:
            drawn = noise.gumbel(settings.noise_seed, *counters(request), dtype=energies.dtype)
            energies = energies + settings.gumbel * drawn
        softmax = isinstance(settings.normalizer, Softmax)
        lse = log_sum_exp(request, energies) if softmax else energies.new_empty(0)
        context = drop(request, weights_of(request, energies)[0]) @ at_least_float32(value)
    return context.to(value.dtype).view(*settings.leading, *context.shape[1:]), lse


def differentiable_twice(
    context: Tensor, query: Tensor, key: Tensor, value: Tensor, mask: Tensor | None, causal: bool, scale: float
) -> None:
    """Make the backward pass of torch's fused attention, whose result is `context`, differentiable.

    The hook refers to the states by weak references, so that they do not live longer because of it.
    """
    node = context.grad_fn
    if node is None or not node.name().startswith("ScaledDotProduct"):  # torch's math backend needs no help
        return
    states = [TensorWeakRef(x) for x in (query, key, value)]

    def define(query: Tensor, key: Tensor, value: Tensor) -> tuple[Tensor]:
        energies = at_least_float32(query) @ at_least_float32(key).mT * scale
        if causal:
            ahead = torch.ones(energies.shape[-2:], dtype=torch.bool, device=energies.device).triu(1)
            energies = energies.masked_fill(ahead, -torch.inf)
        elif mask is not None:
            energies = energies.masked_fill(~mask, -torch.inf) if mask.dtype is torch.bool else energies + mask
        return ((torch.softmax(energies, -1) @ at_least_float32(value)).to(value.dtype),)

    def differentiable(grad_inputs: tuple[Any, ...], grad_outputs: tuple[Any, ...]) -> tuple[Any, ...] | None:
        inputs = [state() for state in states]
        if not torch.is_grad_enabled() or any(x is None for x in inputs):
            return None
        with without_autocast(grad_outputs[0].device):
            grads = gradients(define, inputs, grad_outputs[:1])
        replaced = [old if old is None else new for old, new in zip(grad_inputs, grads, strict=False)]
        return (*replaced, *grad_inputs[len(grads) :])

    node.register_hook(differentiable)
