"""Softmax attention by its definition, with a weight matrix: the fastest way for very few pairs on a CPU.

    e = scale · q'ᵀk' + bias,      w = softmax(e / temperature),      context = w · value

On the CPU torch's attention works in blocks of many positions and converts every 16-bit block: for sentences of a dozen
words that takes longer than the products themselves.
"""

from __future__ import annotations

import torch

from regard.core.kernels.dense import Dense
from regard.core.kernels.kernel import Kernel
from regard.core.normalizers import MASKED_ENERGY, Softmax
from regard.core.request import Request
from regard.core.result import Result
from regard.core.scores import at_least_float32
from regard.runtime.autocast import without_autocast

MAX_PAIRS, MAX_PAIRS_16_BIT = 1 << 8, 1 << 12
"""the largest T · S at which this is faster than torch's attention, measured on 2 cores with AVX-512"""


class SmallDense(Kernel):
    """Dense attention to very few keys, with an explicit weight matrix."""

    name = "small dense"

    def refuse(self, request: Request) -> str | None:
        if request.query.is_cuda:
            return "on a GPU torch's attention is faster"
        limit = MAX_PAIRS if request.query.element_size() >= 4 else MAX_PAIRS_16_BIT
        if request.queries * request.keys > limit:
            return f"{request.queries} × {request.keys} pairs; from {limit + 1:,} on torch's attention is faster"
        return Dense().refuse(request)

    def run(self, request: Request) -> Result:
        terms, normalizer = request.bilinear, request.normalizer
        assert terms is not None and isinstance(normalizer, Softmax)
        mask = request.mask()
        scale = terms.scale / normalizer.temperature
        with without_autocast(request.query.device):  # energies stay in float32
            energies = (at_least_float32(terms.query) * scale) @ at_least_float32(terms.key).mT
            if request.bias is not None:
                energies = energies + request.bias / normalizer.temperature
            if mask is not None:
                energies = energies.masked_fill(~mask, MASKED_ENERGY)
            weights = torch.softmax(energies, -1)  # [..., T, S]
            context = weights.to(request.value.dtype) @ request.value
        empty = energies.detach().amax(-1, keepdim=True) <= MASKED_ENERGY / 2  # the rows that see no key, [..., T, 1]
        if request.transform is not None or bool(empty.any()):
            context = context.masked_fill(empty, 0)
        return Result(context.expand(*request.leading, *context.shape[-2:]))
