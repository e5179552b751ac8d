"""Hard attention without forming the matrix.

The choice is a scan for the largest (perturbed) energy, the context is the chosen value. What the estimators need
beside it is a softmax, which the tiles compute:

- the surrogate's gradient: what flows back to the context flows back to the softmax's context too. The soft context is
  taken of detached values, because the gradient of a value is that of the hard weights.
- log_probability = energy of the chosen key − lse.
"""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor

from regard.core.kernels.cpu.scan import best_energy
from regard.core.kernels.cpu.tile_kernels import prepare, solve, unregroupable, unsuited
from regard.core.normalizers import Hard, Softmax
from regard.core.request import Request
from regard.core.result import Result
from regard.core.scores import Bilinear, wide


class HardChoice:
    name = "hard"

    def refuse(self, request: Request) -> str | None:
        if not isinstance(request.normalizer, Hard):
            return f"{type(request.normalizer).__name__} gives weight to many keys"
        if request.dropout > 0:
            return "dropout of a single weight is left to the reference"
        return unsuited(request)

    def run(self, request: Request) -> Result:
        hard = request.normalizer
        assert isinstance(hard, Hard)
        regroup = unregroupable(request) is None
        settings, (query, key, vector, _) = prepare(request, Softmax(), gumbel=hard.sample, regroup=regroup)
        chosen = best_energy(settings, query, key, vector).view(*request.leading, request.queries)
        soft = None
        if hard.surrogate is not None:
            soft, _ = solve(request, hard.surrogate, request.value.detach(), gumbel=hard.sample, regroup=regroup)
        _, lse = solve(request, Softmax(), request.value[..., :1].detach(), regroup=regroup)
        assert lse is not None
        return answer(chosen, chosen_of(request, request.value, chosen), _energy_at(request, chosen), soft, lse)


def answer(chosen: Tensor, context: Tensor, energy: Tensor, soft: Tensor | None, lse: Tensor) -> Result:
    """From the chosen keys [..., T], their values and energies, the context of the surrogate, if there is one, and lse
    [..., T] of the softmax."""
    if soft is not None:
        context = _Through.apply(context, soft)  # type: ignore[no-untyped-call]
    nothing = chosen < 0
    # At a probability of 1 rounding could leave the difference a little above 0.
    log_probability = (energy - lse.masked_fill(nothing, 0)).clamp(max=0).masked_fill(nothing, 0)
    return Result(context, chosen=chosen, log_probability=log_probability)


class _Through(torch.autograd.Function):
    """hard + (soft − soft.detach()) in one pass: what flows back to the one flows back to the other."""

    @staticmethod
    def forward(ctx: Any, hard: Tensor, soft: Tensor) -> Tensor:
        return hard.clone()  # a view could not be changed in place by whoever gets it

    @staticmethod
    def backward(ctx: Any, gradient: Tensor) -> tuple[Tensor, Tensor]:  # type: ignore[override]
        return gradient, gradient


def chosen_of(request: Request, states: Tensor, chosen: Tensor) -> Tensor:
    """As `at`, of states whose leading dims broadcast to the request's."""
    return at(states.expand(*request.leading, *states.shape[-2:]), chosen)


def at(states: Tensor, chosen: Tensor) -> Tensor:
    """states [..., S, D] at the chosen keys [..., T] → [..., T, D], 0 where nothing was chosen."""
    if not states.shape[-2]:
        return states.new_zeros(*chosen.shape, states.shape[-1])
    index = chosen.clamp(min=0)[..., None].expand(*chosen.shape, states.shape[-1])
    # Wide, because the gradient of a key that many choose is summed up in the dtype of what they chose from.
    found = wide(states).gather(-2, index).to(states.dtype)
    return found.masked_fill((chosen < 0)[..., None], 0)


def _energy_at(request: Request, chosen: Tensor) -> Tensor:
    """The energy, with bias, of each query with its chosen key: [..., T]."""
    terms = request.terms
    assert terms is not None
    key = chosen_of(request, terms.key, chosen)
    if isinstance(terms, Bilinear):
        energy = (wide(terms.query) * wide(key)).sum(-1) * terms.scale
    else:
        energy = (torch.tanh(wide(terms.query) + wide(key)) * wide(terms.vector)[..., None, :]).sum(-1)
    if request.bias is None or not request.keys:
        return energy
    bias = request.bias.expand(*request.leading, request.queries, request.keys)
    return energy + bias.gather(-1, chosen.clamp(min=0)[..., None]).squeeze(-1)
