"""Dense attention, for bilinear scores, softmax and little sparsity: by torch's function, or by our own on few pairs.

Three things need care with scaled_dot_product_attention: its `is_causal` is aligned to the top left, which equals ours
only at position 0; a row in which every key is masked may come out as NaN; masked padding may contain NaN (the request
has zeroed that already).
"""

from __future__ import annotations

import torch
from torch import Tensor

from regard.core.kernels.cpu.second_order import differentiable_twice
from regard.core.kernels.gpu.kernels import FusedDot, rounds_float32
from regard.core.kernels.kernel import Kernel
from regard.core.kernels.sdpa import sdpa
from regard.core.local import LocalPredictive
from regard.core.normalizers import MASKED_ENERGY, Softmax
from regard.core.patterns import Causal, Full
from regard.core.request import Request
from regard.core.result import Result
from regard.core.scores import at_least_float32
from regard.runtime.precision import without_autocast

_MAX_MASKED_PAIRS = 1 << 14  # pairs (T · S): below this a dense mask costs less than the tiles' bookkeeping
_MIN_BLOCKED_PAIRS = 1 << 18  # from here on torch's float32 takes longer than TF32 along blocks (docs/performance.md)


class Dense(Kernel):
    """torch's own attention."""

    name = "dense"

    def refuse(self, request: Request) -> str | None:
        if isinstance(request.pattern, LocalPredictive):
            return "predictive local attention has a gain on the weights"
        if not isinstance(request.normalizer, Softmax):
            return f"{type(request.normalizer).__name__} is not a softmax"
        if request.bilinear is None:
            return f"{request.score.title} is not a product of query and key"
        if request.dropout > 0:
            return "torch's dropout follows no generator"
        if request.bias is not None and request.bias.requires_grad:
            return "with a trained bias, torch forms all weights"
        if request.bilinear.query.shape[-1] != request.value.shape[-1]:
            return "values and keys differ in width: torch would form all weights"
        if 0 in (*request.leading, request.queries, request.keys):
            return "there is nothing to compute"
        pairs = request.queries * request.keys
        if pairs > _MAX_MASKED_PAIRS and request.pattern != Full() and not self._causal(request):
            return f"the pattern would become a mask of {request.queries} × {request.keys}"
        if (reason := request.transform) is not None and not (torch.compiler.is_compiling() or request.query.is_meta):
            return reason
        if pairs >= _MIN_BLOCKED_PAIRS and FusedDot().refuse(request) is None and rounds_float32(request):
            return "torch's attention in float32 takes longer than products in TF32 along blocks"
        return None

    def run(self, request: Request) -> Result:
        terms = request.bilinear
        assert terms is not None and isinstance(request.normalizer, Softmax)
        temperature = request.normalizer.temperature
        causal = self._causal(request)
        mask = None if causal else request.mask()
        empty = None
        if mask is not None:
            empty = ~mask.any(-1, keepdim=True)  # [..., T, 1]
            mask = mask | empty  # such rows attend to everything, and their context is set to 0 below
        if request.bias is not None:
            bias = (request.bias / temperature).to(terms.query.dtype)
            mask = bias if mask is None else torch.where(mask, bias, -torch.inf)
            hidden = (mask == -torch.inf).all(-1, keepdim=True)
            mask = mask.masked_fill(hidden, 0)
            empty = hidden if empty is None else empty | hidden
        query, key, value = (_to_four_dims(x, request.leading) for x in (terms.query, terms.key, request.value))
        mask = None if mask is None else _to_four_dims(mask, request.leading)
        scale = terms.scale / temperature
        context = sdpa(query, key, value, mask, causal=causal, scale=scale)
        if context.requires_grad and not torch.compiler.is_compiling():
            differentiable_twice(context, query, key, value, mask, causal, scale)
        context = context.reshape(*request.leading, request.queries, -1)
        return Result(context if empty is None else context.masked_fill(empty, 0))

    @staticmethod
    def _causal(request: Request) -> bool:
        masked = request.visible is not None or request.allowed is not None or request.bias is not None
        return request.pattern == Causal() and request.position == 0 and not masked


MAX_PAIRS, MAX_PAIRS_16_BIT = 1 << 8, 1 << 12
"""the largest T · S at which this is faster than torch's attention, measured on 2 cores with AVX-512"""


class SmallDense(Kernel):
    """Softmax attention by its definition, with a weight matrix: the fastest way for very few pairs on a CPU.

        e = scale · q'ᵀk' + bias,      w = softmax(e / temperature),      context = w · value

    There torch's attention works in blocks of many positions and converts every 16-bit block: for sentences of a dozen
    words that takes longer than the products themselves.
    """

    name = "small dense"

    def refuse(self, request: Request) -> str | None:
        if request.query.is_cuda:
            return "on a GPU torch's attention is faster"
        limit = MAX_PAIRS if request.query.element_size() >= 4 else MAX_PAIRS_16_BIT
        if request.queries * request.keys > limit:
            return f"{request.queries} × {request.keys} pairs; from {limit + 1:,} pairs on torch's attention is faster"
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


def _to_four_dims(x: Tensor, leading: torch.Size) -> Tensor:
    """Reshape [..., N, D] to [B, heads, N, D]: torch's fast kernel takes exactly two leading dims."""
    if len(leading) == 2 and x.dim() == 4:
        return x.expand(*leading, -1, -1) if x.shape[-1] != 1 else x
    x = x.expand(*leading, *x.shape[-2:])
    heads = leading[-1] if leading else 1
    return x.reshape(-1, heads, *x.shape[-2:])
