"""Hard attention with all energies formed: for so few pairs that a GPU spends its time on launching kernels.

    e = scale · q'ᵀk' + bias,      chosen = argmax(e + noise),      context = value[chosen]

Along blocks (gpu/hard.py) it takes more launches, and the first call of a combination compiles kernels for seconds.
"""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor

from regard.core.kernels.cpu.small_dense import HIDDEN
from regard.core.kernels.cpu.tile_kernels import unsuited
from regard.core.kernels.hard import answer, chosen_of
from regard.core.normalizers import Hard, Softmax
from regard.core.reference import counters
from regard.core.request import Request
from regard.core.result import Result
from regard.core.scores import Bilinear, wide
from regard.runtime import noise
from regard.runtime.autocast import without_autocast
from regard.runtime.matmul_precision import products

PAIRS = 1 << 22
"""of all rows together; their energies are 16 MiB"""


class DenseHard:
    name = "dense hard"

    def refuse(self, request: Request) -> str | None:
        if not isinstance(request.normalizer, Hard):
            return f"{type(request.normalizer).__name__} gives weight to many keys"
        if (reason := unsuited(request)) is not None:
            return reason
        if not isinstance(request.terms, Bilinear):
            return f"{request.score.title} is not a product of query and key"
        if request.dropout > 0:
            return "dropout of a single weight is left to the reference"
        pairs = request.leading.numel() * request.queries * request.keys
        if pairs == 0:
            return "there is nothing to compute"
        return f"{pairs:,} energies are too many to form" if pairs > PAIRS else None

    def run(self, request: Request) -> Result:
        hard = request.normalizer
        assert isinstance(hard, Hard)
        energies = _energies(request)  # [..., T, S]
        noisy = energies
        if hard.sample:
            noisy = energies + noise.gumbel(request.noise_seed, *counters(request), dtype=energies.dtype)
        nothing = energies.detach().amax(-1) <= HIDDEN / 2
        chosen = noisy.detach().argmax(-1).masked_fill(nothing, -1)
        context = chosen_of(request, request.value, chosen)
        if hard.surrogate is not None:
            context = _Surrogate.apply(context, noisy, request.value.detach(), hard.surrogate)  # type: ignore[no-untyped-call]
        energy = energies.gather(-1, chosen.clamp(min=0)[..., None]).squeeze(-1)
        return answer(chosen, context, energy, None, energies.logsumexp(-1))


def _energies(request: Request) -> Tensor:
    """float32 [*leading, T, S], HIDDEN where a query may not look. Factors are never rounded: what is chosen should not
    depend on that."""
    terms, mask = request.terms, request.mask()
    assert isinstance(terms, Bilinear)
    with without_autocast(request.query.device), products(exact=True):
        energies = (wide(terms.query) * terms.scale) @ wide(terms.key).mT
    if request.bias is not None:
        energies = (energies + request.bias).clamp(min=HIDDEN)
    if mask is not None:
        energies = energies.masked_fill(~mask, HIDDEN)
    return energies.expand(*request.leading, request.queries, request.keys)


class _Surrogate(torch.autograd.Function):
    """The context as it is; what flows back to it flows back to softmax(e / temperature) · value too."""

    @staticmethod
    def forward(ctx: Any, context: Tensor, energies: Tensor, value: Tensor, softmax: Softmax) -> Tensor:
        ctx.softmax = softmax
        ctx.save_for_backward(energies, value)
        return context.clone()  # a view could not be changed in place by whoever gets it

    @staticmethod
    def backward(ctx: Any, gradient: Tensor) -> tuple[Tensor | None, ...]:  # type: ignore[override]
        energies, value = ctx.saved_tensors
        if not ctx.needs_input_grad[1]:
            return gradient, None, None, None
        by_weight = wide(gradient) @ wide(value).mT  # [..., T, S]
        return gradient, ctx.softmax.backward(ctx.softmax.weigh(energies), by_weight), None, None
