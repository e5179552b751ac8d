"""Optional outputs: weights, the largest of them, log-sum-exp. Computing them never changes the context."""

from __future__ import annotations

from dataclasses import replace
from typing import cast

import torch
from torch import Tensor

from regard.core.checks import broadcast, whole_number
from regard.core.kernels.cpu.energies import AdditiveTile, Scratch
from regard.core.kernels.cpu.scan import best_weights, top_k, without_unused
from regard.core.kernels.cpu.second_order import gradients
from regard.core.kernels.cpu.tile_kernels import prepare, regroups, solve, unsuited
from regard.core.kernels.flat import fold
from regard.core.kernels.heads import Heads, join
from regard.core.normalizers import Entmax, Hard, Normalizer, Softmax
from regard.core.plan import Plan
from regard.core.reference import defined_energies, log_sum_exp, weights_of
from regard.core.request import Request
from regard.core.result import Result, Top
from regard.core.scores import AdditiveTerms, at_least_float32


def check_extras(top: int | None, lse: bool, normalizer: Normalizer) -> None:
    """Raise if an optional output is not available."""
    if top is not None:
        whole_number("attention", "top", top, minimum=1)
    if lse and not isinstance(normalizer, Softmax):
        raise ValueError(f"lse: only Softmax has one, got {type(normalizer).__name__}")


def run_with_outputs(plan: Plan, weights: bool = False, top: int | None = None, lse: bool = False) -> Result:
    """Run the plan; return the context and the requested outputs, the others as None."""
    if isinstance(plan.kernel, Heads) and (top or lse) and not weights:
        groups = plan.by_head()
        return join([run_with_outputs(group, top=top, lse=lse) for _, group in groups], [heads for heads, _ in groups])
    request, result = plan.request, plan.run()
    all_weights = result.weights if weights else None
    if weights and all_weights is None:
        all_weights = weights_of(request, memory_efficient_energies(request))[0]
        if result.chosen is not None:  # the kernel's choice: energies may round differently here
            keys = torch.arange(request.keys, device=all_weights.device)
            one_hot = (keys == result.chosen[..., None]).to(all_weights.dtype)
            all_weights = one_hot + (all_weights - all_weights.detach())
    if lse and result.lse is None:
        result = replace(result, lse=_lse(request))
    top_weights = _top(request, result, top, all_weights) if top else None
    return replace(result, weights=all_weights, top=top_weights, lse=result.lse if lse else None)


def memory_efficient_energies(request: Request) -> Tensor:
    """Return the score's energies [..., T, S], differentiable, without a tensor [..., T, S, H]."""
    terms = request.additive
    if terms is None:
        return defined_energies(request) if request.terms is None else request.terms.energies()
    leading = broadcast(terms.query.shape[:-2], terms.key.shape[:-2])
    vector = fold(terms.vector[..., None, :], leading)[:, 0]
    folded = fold(at_least_float32(terms.query), leading), fold(at_least_float32(terms.key), leading)
    energies = _AdditiveEnergies.apply(*folded, vector)  # type: ignore[no-untyped-call]
    return cast(Tensor, energies).view(*leading, request.queries, request.keys)


class _AdditiveEnergies(torch.autograd.Function):
    """vᵀ tanh(q + k) for all pairs, computed in pieces, which the backward recomputes."""

    @staticmethod
    def forward(ctx, query, key, vector):  # type: ignore[no-untyped-def]
        ctx.save_for_backward(query, key, vector)
        with torch.autocast(query.device.type, enabled=False):
            return AdditiveTile(vector).energies(query, key, Scratch())

    @staticmethod
    def backward(ctx, gradient):  # type: ignore[no-untyped-def]
        query, key, vector = ctx.saved_tensors
        if torch.is_grad_enabled():

            def define(*terms: Tensor) -> tuple[Tensor]:
                return (AdditiveTerms(*terms).energies(),)

            return tuple(gradients(define, (query, key, vector), (gradient,)))
        return tuple(grad.to(query.dtype) for grad in AdditiveTile(vector).backward(gradient, query, key))


def _lse(request: Request) -> Tensor:
    """Return log Σ exp of the energies [..., T]."""
    if unsuited(request) is None:
        assert isinstance(request.normalizer, Softmax)
        lse = solve(request, request.normalizer, request.value[..., :1].detach(), regroup=regroups(request))[1]
        assert lse is not None
        return lse
    return log_sum_exp(request, memory_efficient_energies(request))


@torch.no_grad()
def _top(request: Request, result: Result, k: int, weights: Tensor | None) -> Top:
    """Return the k largest weights of each query, from `weights` or from whatever the result has."""
    shape = (*request.leading, request.queries, k)
    if isinstance(request.normalizer, Hard) and result.chosen is not None and unsuited(request) is None:
        positions = torch.full(shape, -1, device=request.query.device)
        positions[..., 0] = result.chosen
        return Top((positions >= 0).to(at_least_float32(request.query[..., :0, :]).dtype), positions)
    weights = result.weights if weights is None else weights
    if weights is None and unsuited(request) is not None:
        weights = weights_of(request, memory_efficient_energies(request))[0]
    if weights is not None:
        keys = torch.arange(weights.shape[-1], device=weights.device).expand(weights.shape)
        return Top(*without_unused(*top_k(weights.detach(), keys, k)))
    assert isinstance(request.normalizer, Entmax)
    settings, (query, key, vector, _) = prepare(request, request.normalizer, regroup=regroups(request))
    lse = result.lse
    if isinstance(request.normalizer, Softmax):
        lse = (_lse(request) if lse is None else lse).detach().reshape(query.shape[:2])
    largest, positions = best_weights(settings, query, key, vector, lse, k)
    return Top(largest.view(shape), positions.view(shape))
