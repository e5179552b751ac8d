"""Hard attention, with and without an energy matrix.

Without one, the choice is a scan for the largest (perturbed) energy, the context is the chosen value. The gradient
estimators also need a softmax, which the tiles compute:

- the surrogate's gradient: the gradient of the context also flows to the softmax's context. That soft context uses
  detached values, because the gradient of a value is that of the hard weights.
- log_probability = energy of the chosen key − lse.
"""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor

from regard.core.kernels.cpu.scan import best_key
from regard.core.kernels.cpu.tile_kernels import pairs_in_tiles, prepare, solve, unregroupable, unsuited
from regard.core.kernels.kernel import Kernel
from regard.core.normalizers import MASKED_ENERGY, Hard, Softmax
from regard.core.reference import counters
from regard.core.request import Request
from regard.core.result import Result
from regard.core.scores import at_least_float32
from regard.runtime import noise
from regard.runtime.precision import float32_products, without_autocast

_MAX_PAIRS = 1 << 22  # of `DenseHard`, over all rows of the batch; their energies take 16 MiB


class HardChoice(Kernel):
    """Hard attention by a scan over tiles."""

    name = "hard"

    def refuse(self, request: Request) -> str | None:
        return not_hard(request) or unsuited(request)

    def run(self, request: Request) -> Result:
        hard = request.normalizer
        assert isinstance(hard, Hard)
        regroup = unregroupable(request) is None
        settings, (query, key, vector, _) = prepare(request, Softmax(), gumbel=hard.sample, regroup=regroup)
        chosen = best_key(settings, query, key, vector).view(*request.leading, request.queries)
        soft = None
        if hard.surrogate is not None:
            soft, _ = solve(request, hard.surrogate, request.value.detach(), gumbel=hard.sample, regroup=regroup)
        _, lse = solve(request, Softmax(), request.value[..., :1].detach(), regroup=regroup)
        assert lse is not None
        context = gather_chosen(request, request.value, chosen)
        return hard_result(chosen, context, _chosen_energy(request, chosen), soft, lse)

    def computed_pairs(self, request: Request) -> int:
        return pairs_in_tiles(request, unregroupable(request) is None)


class DenseHard(Kernel):
    """Hard attention with an explicit energy matrix: for so few pairs that a GPU spends its time on kernel launches.

        e = scale · q'ᵀk' + bias,      chosen = argmax(e + noise),      context = value[chosen]

    The kernel along blocks (gpu/hard.py) takes more launches, and its first call compiles for seconds.
    """

    name = "dense hard"

    def refuse(self, request: Request) -> str | None:
        if (reason := not_hard(request) or unsuited(request)) is not None:
            return reason
        if request.bilinear is None:
            return f"{request.score.title} is not a product of query and key"
        pairs = request.leading.numel() * request.queries * request.keys
        if pairs == 0:
            return "there is nothing to compute"
        return f"{pairs:,} energies are too many to form" if pairs > _MAX_PAIRS else None

    def run(self, request: Request) -> Result:
        hard = request.normalizer
        assert isinstance(hard, Hard)
        energies = _energies(request)  # [..., T, S]
        noisy = energies
        if hard.sample:
            noisy = energies + noise.gumbel(request.noise_seed, *counters(request), dtype=energies.dtype)
        empty = energies.detach().amax(-1) <= MASKED_ENERGY / 2
        chosen = noisy.detach().argmax(-1).masked_fill(empty, -1)
        context = gather_chosen(request, request.value, chosen)
        if hard.surrogate is not None:
            context = _Surrogate.apply(context, noisy, request.value.detach(), hard.surrogate)  # type: ignore[no-untyped-call]
        energy = energies.gather(-1, chosen.clamp(min=0)[..., None]).squeeze(-1)
        return hard_result(chosen, context, energy, None, energies.logsumexp(-1))


def _energies(request: Request) -> Tensor:
    """Return the energies, float32 [*leading, T, S], MASKED_ENERGY where a query may not attend.

    Factors are never rounded, because the choice should not depend on rounding.
    """
    terms, mask = request.bilinear, request.mask()
    assert terms is not None
    with without_autocast(request.query.device), float32_products(exact=True):
        energies = (at_least_float32(terms.query) * terms.scale) @ at_least_float32(terms.key).mT
    if request.bias is not None:
        energies = (energies + request.bias).clamp(min=MASKED_ENERGY)
    if mask is not None:
        energies = energies.masked_fill(~mask, MASKED_ENERGY)
    return energies.expand(*request.leading, request.queries, request.keys)


class _Surrogate(torch.autograd.Function):
    """The identity of the context; its gradient also flows to the energies, as of softmax(e / temperature) · value."""

    @staticmethod
    def forward(ctx: Any, context: Tensor, energies: Tensor, value: Tensor, softmax: Softmax) -> Tensor:
        ctx.softmax = softmax
        ctx.save_for_backward(energies, value)
        return context.clone()  # a returned view could not be modified in place by the caller

    @staticmethod
    def backward(ctx: Any, gradient: Tensor) -> tuple[Tensor | None, ...]:  # type: ignore[override]
        energies, value = ctx.saved_tensors
        if not ctx.needs_input_grad[1]:
            return gradient, None, None, None
        by_weight = at_least_float32(gradient) @ at_least_float32(value).mT  # [..., T, S]
        return gradient, ctx.softmax.backward(ctx.softmax.weigh(energies), by_weight), None, None


def not_hard(request: Request) -> str | None:
    """Return why no kernel for hard attention can compute the request; None if one can."""
    if not isinstance(request.normalizer, Hard):
        return f"{type(request.normalizer).__name__} gives weight to many keys"
    return "dropout of a single weight is left to the reference" if request.dropout > 0 else None


def hard_result(chosen: Tensor, context: Tensor, energy: Tensor, soft: Tensor | None, lse: Tensor) -> Result:
    """Return the result of hard attention.

    It takes the chosen keys [..., T], their values and energies, the context of the surrogate if there is one, and the
    lse [..., T] of the softmax.
    """
    if soft is not None:
        context = _StraightThrough.apply(context, soft)  # type: ignore[no-untyped-call]
    empty = chosen < 0
    # At a probability of 1 rounding could leave the difference a little above 0.
    log_probability = (energy - lse.masked_fill(empty, 0)).clamp(max=0).masked_fill(empty, 0)
    return Result(context, chosen=chosen, log_probability=log_probability)


class _StraightThrough(torch.autograd.Function):
    """The straight-through estimator hard + (soft − soft.detach()) in one pass: both get the gradient."""

    @staticmethod
    def forward(ctx: Any, hard: Tensor, soft: Tensor) -> Tensor:
        return hard.clone()  # a returned view could not be modified in place by the caller

    @staticmethod
    def backward(ctx: Any, gradient: Tensor) -> tuple[Tensor, Tensor]:  # type: ignore[override]
        return gradient, gradient


def gather_chosen(request: Request, states: Tensor, chosen: Tensor) -> Tensor:
    """Like `gather_keys`, for states whose leading dims broadcast to the request's."""
    return gather_keys(states.expand(*request.leading, *states.shape[-2:]), chosen)


def gather_keys(states: Tensor, chosen: Tensor) -> Tensor:
    """Return states [..., S, D] at the chosen keys [..., T], [..., T, D]; 0 where no key was chosen."""
    if not states.shape[-2]:
        return states.new_zeros(*chosen.shape, states.shape[-1])
    index = chosen.clamp(min=0)[..., None].expand(*chosen.shape, states.shape[-1])
    # In float32, because the gradient of a key that many queries chose is summed in the dtype of the gathered states.
    taken = at_least_float32(states).gather(-2, index).to(states.dtype)
    return taken.masked_fill((chosen < 0)[..., None], 0)


def _chosen_energy(request: Request, chosen: Tensor) -> Tensor:
    """Return the energy, with bias, of each query with its chosen key, [..., T]."""
    assert request.terms is not None
    energy = request.terms.energies_with(gather_chosen(request, request.terms.key, chosen))
    if request.bias is None or not request.keys:
        return energy
    bias = request.bias.expand(*request.leading, request.queries, request.keys)
    return energy + bias.gather(-1, chosen.clamp(min=0)[..., None]).squeeze(-1)
