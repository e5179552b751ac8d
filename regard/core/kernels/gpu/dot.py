"""Dot-product attention along the blocks of a pattern: windows, global positions, random blocks, any sparse pattern.

Queries that see far more keys than their neighbours (global positions) are a group of their own (query_groups.py); the
gradient of the keys takes both groups in one pass. Strides and dilations of a pattern are separate terms, each with its
own order of positions (arrangement.py). The terms are merged by log-sum-exp, and in the backward pass each term uses
the merged log-sum-exp.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import torch
from torch import Tensor

from regard.core.kernels.cpu.tile_attention import refuse_second_order
from regard.core.kernels.gpu.arrangement import merged
from regard.core.kernels.gpu.delta import delta_of
from regard.core.kernels.gpu.dot_problem import LOG2, DotBackwardInputs, DotProblem, DotSettings
from regard.core.kernels.gpu.launch import compile_ahead
from regard.core.kernels.gpu.query_groups import GroupedTerm, grouped_terms_of
from regard.runtime.device_guard import device_guard


def attend(
    settings: DotSettings, query: Tensor, key: Tensor, value: Tensor, trains: bool = True
) -> tuple[Tensor, Tensor]:
    """Return (context [G, T, F], lse [G, T]) of query [G, T, D], key [G, S, D] and value [G, S, F], differentiable.
    Without `trains` the kernels of the backward pass are compiled only when they are first launched."""
    prepare(settings, query, key, value, trains)
    with device_guard(query.device):
        outputs: tuple[Tensor, Tensor] = _Dot.apply(settings, query, key, value)  # type: ignore[no-untyped-call]
    return outputs


def prepare(settings: DotSettings, query: Tensor, key: Tensor, value: Tensor, trains: bool = True) -> None:
    """Compile all kernels of a new combination, with `trains` also those of its backward pass if it can have one."""
    trains = trains and torch.is_grad_enabled() and any(states.requires_grad for states in (query, key, value))
    kinds = settings.visible is None, settings.noise is None, settings.precision, trains
    widths = query.shape[-1], value.shape[-1], query.shape[1] == 0  # an empty problem launches nothing

    def launch_all() -> None:
        """Launch every kernel once, forward and backward, for the first row of the batch."""
        for term in dot_terms(settings, query[:1].contiguous(), key[:1].contiguous(), value[:1].contiguous()):
            context, lse = term.by_groups(DotProblem.forward)
            if trains:
                gradient = value.new_empty(context.shape)
                term.backward(DotBackwardInputs(gradient, lse, delta_of(gradient, gradient, lse)))

    compile_ahead(("dot", settings.pattern, query.dtype, *widths, *kinds), query.device, launch_all)


class _Dot(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, settings: DotSettings, query: Tensor, key: Tensor, value: Tensor) -> tuple[Tensor, Tensor]:
        query, key, value = (states.contiguous() for states in (query, key, value))
        outputs = [term.by_groups(DotProblem.forward) for term in dot_terms(settings, query, key, value)]
        context, lse = outputs[0]
        if len(outputs) > 1:
            context, total = merged([(term_context, term_lse / LOG2) for term_context, term_lse in outputs])
            lse = total * LOG2
        context = context.to(value.dtype)
        ctx.settings = settings
        ctx.save_for_backward(query, key, value, context, lse)
        return context, lse / LOG2

    @staticmethod
    def backward(ctx: Any, gradient: Tensor, lse_gradient: Tensor) -> tuple[Tensor | None, ...]:  # type: ignore[override]
        refuse_second_order()
        query, key, value, context, lse = ctx.saved_tensors
        gradient = gradient.to(value.dtype).contiguous()
        delta = delta_of(gradient, context, lse_gradient)
        # The lse of a query that sees nothing becomes ∞, so that its weights are 2^(e − ∞) = 0.
        inputs = DotBackwardInputs(gradient, lse.masked_fill(lse == -torch.inf, torch.inf), delta)
        total: tuple[Tensor, ...] = ()
        for term in dot_terms(ctx.settings, query, key, value):
            grads = term.backward(inputs)
            total = tuple(a.add_(b) for a, b in zip(total, grads, strict=True)) if total else grads
        return None, *(x.to(states.dtype) for x, states in zip(total, (query, key, value), strict=True))


def dot_terms(
    settings: DotSettings, query: Tensor, key: Tensor, value: Tensor, with_positions: bool = False
) -> list[DotTerm]:
    """Return the terms of the pattern; `with_positions` their problems know positions even without noise."""
    terms = grouped_terms_of(settings.pattern, query.shape[1], key.shape[1], settings.position, query.device)
    in_float32 = len(terms) > 1  # results of several terms are summed in float32
    return [DotTerm(settings, each, query, key, value, with_positions, in_float32) for each in terms]


class DotTerm:
    """One term of a problem. Its inputs and outputs are in the order of positions."""

    def __init__(
        self, settings: DotSettings, grouped: GroupedTerm, query: Tensor, key: Tensor, value: Tensor,
        with_positions: bool, in_float32: bool,
    ) -> None:  # fmt: skip
        self.arrangement = arrangement = grouped.arrangement
        arranged = replace(settings, visible=arrangement.visible_order(settings.visible))
        query, keys = arrangement.query_order(query), arrangement.key_order(key)
        states = query, keys, keys if value is key else arrangement.key_order(value)
        positions = None
        if with_positions or settings.noise is not None:
            positions = arrangement.query_positions(query.device), arrangement.key_positions(query.device)
        light, heavy = grouped.light, grouped.heavy
        self.light = DotProblem(arranged, light, *states, positions, in_float32)
        self.heavy = None if heavy is None else DotProblem(arranged, heavy, *states, positions, in_float32)

    def by_groups(self, run: Callable[[DotProblem], tuple[Tensor, Tensor]]) -> tuple[Tensor, Tensor]:
        """Run both groups of queries; return what `run` returns for each, [G, T, …], for all queries."""
        results = run(self.light)
        if self.heavy is not None:
            for result, of_heavy in zip(results, run(self.heavy), strict=True):
                result[:, self.heavy.group.rows] = of_heavy
        return self.arrangement.as_queries(results[0]), self.arrangement.as_queries(results[1])

    def backward(self, inputs: DotBackwardInputs) -> tuple[Tensor, Tensor, Tensor]:
        """Return (∂q, ∂k, ∂value)."""
        order = self.arrangement
        inputs, heavy = inputs.arranged(order), None
        if self.heavy is not None:
            rows = self.heavy.group.rows
            assert rows is not None
            heavy, inputs = (self.heavy, inputs.of(rows)), inputs.without(rows)
        grad_query = self.light.query_gradient(inputs)
        if heavy is not None:
            grad_query[:, rows] = heavy[0].query_gradient(heavy[1])
        grad_key, grad_value = self._key_gradient(inputs, heavy)
        return order.as_queries(grad_query), order.as_keys(grad_key), order.as_keys(grad_value)

    def _key_gradient(
        self, inputs: DotBackwardInputs, heavy: tuple[DotProblem, DotBackwardInputs] | None
    ) -> tuple[Tensor, Tensor]:
        """Return (∂k, ∂value) of the light and the heavy queries.

        One kernel computes both groups, or, where that kernel would take long to compile, the smaller kernel for one
        group is launched twice.
        """
        if heavy is None or not self.light.one_loop:
            return self.light.key_gradient(inputs, heavy)
        (grad_key, grad_value), more = self.light.key_gradient(inputs), heavy[0].key_gradient(heavy[1])
        return grad_key.add_(more[0]), grad_value.add_(more[1])
