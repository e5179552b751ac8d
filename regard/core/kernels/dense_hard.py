"""Hard attention with an explicit energy matrix: for so few pairs that a GPU spends its time on kernel launches.

    e = scale · q'ᵀk' + bias,      chosen = argmax(e + noise),      context = value[chosen]

The kernel along blocks (gpu/hard.py) takes more launches, and its first call compiles for seconds.
"""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor

from regard.core.kernels.cpu.tile_kernels import unsuited
from regard.core.kernels.hard import gather_chosen, hard_result, not_hard
from regard.core.kernels.kernel import Kernel
from regard.core.normalizers import MASKED_ENERGY, Hard, Softmax
from regard.core.reference import counters
from regard.core.request import Request
from regard.core.result import Result
from regard.core.scores import at_least_float32
from regard.runtime import noise
from regard.runtime.autocast import without_autocast
from regard.runtime.precision import float32_products

MAX_PAIRS = 1 << 22
"""the most pairs, over all rows of the batch; their energies take 16 MiB"""


class DenseHard(Kernel):
    """Hard attention by an argmax over the energy matrix."""

    name = "dense hard"

    def refuse(self, request: Request) -> str | None:
        if (reason := not_hard(request) or unsuited(request)) is not None:
            return reason
        if request.bilinear is None:
            return f"{request.score.title} is not a product of query and key"
        pairs = request.leading.numel() * request.queries * request.keys
        if pairs == 0:
            return "there is nothing to compute"
        return f"{pairs:,} energies are too many to form" if pairs > MAX_PAIRS else None

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
