"""What a GPU computes by kernels of our own, and when."""

from __future__ import annotations

from dataclasses import replace
from functools import lru_cache
from importlib.util import find_spec

import torch

from regard.core.kernels.cpu.tile_kernels import regroups, unsuited
from regard.core.kernels.flat import Flat, fold
from regard.core.kernels.gpu.arrangement import arrangements_of, merged
from regard.core.kernels.gpu.device import shared_memory, start_triton
from regard.core.kernels.gpu.tile_size import stages
from regard.core.kernels.hard import answer
from regard.core.kernels.residues import regroup, ungroup
from regard.core.kernels.sdpa import sdpa
from regard.core.normalizers import Hard, Softmax
from regard.core.patterns import Full, Pattern
from regard.core.request import Request
from regard.core.result import Result
from regard.core.scores import AdditiveTerms, Bilinear
from regard.runtime.matmul_precision import exact_products

NARROW = (torch.float32, torch.bfloat16, torch.float16)
MOST_ROWS = 65535
"""as many programs as a grid can have beside each other in its second and third direction"""


class FusedAdditive:
    """gpu/additive.py"""

    name = "fused additive"

    def refuse(self, request: Request) -> str | None:
        reason = _not_softmax(request) or _unsuited(request)
        if reason is not None:
            return reason
        if not isinstance(request.terms, AdditiveTerms):
            return f"{request.score.title} is not additive"
        longest = max(request.queries, request.keys) * (3 if regroups(request) else 1)  # with what fills up classes
        return "its places have 32 bits" if longest * request.terms.query.shape[-1] >= 1 << 31 else None

    def run(self, request: Request) -> Result:
        from regard.core.kernels.gpu.additive import Settings, attend

        start_triton(request.query.device)
        terms, leading, pattern = request.terms, request.leading, request.pattern
        assert isinstance(terms, AdditiveTerms) and isinstance(request.normalizer, Softmax)
        assert isinstance(pattern, Pattern)
        allowed = None if request.allowed is None else Flat.fold(request.allowed, leading, 2)
        precision = "pairs" if rounds_float32(request) else "tf32x3"
        vector, temperature = terms.vector, request.normalizer.temperature
        vector = fold((vector if temperature == 1 else vector / temperature)[..., None, :], leading)[:, 0]
        query, key, value = (fold(x, leading) for x in (terms.query, terms.key, request.value))
        found = []
        for order in arrangements_of(pattern, request.queries, request.keys, request.position, regroups(request)):
            visible = order.visible_order(_visible(request))
            settings = Settings(order.pattern, order.position, visible, allowed, precision, asm=query.is_cuda)
            states = order.query_order(query), order.key_order(key), vector, order.key_order(value)
            some, sums = attend(settings, *states)
            found.append((order.as_queries(some), order.as_queries(sums)))
        context, lse = found[0] if len(found) == 1 else merged(found)
        return Result(context.view(*leading, *context.shape[1:]), lse=lse.view(*leading, request.queries))


class FusedDot:
    """gpu/dot.py"""

    name = "fused"

    def refuse(self, request: Request) -> str | None:
        return _not_softmax(request) or _unsuited(request) or _not_products(request)

    def run(self, request: Request) -> Result:
        from regard.core.kernels.gpu.dot import Settings, attend

        start_triton(request.query.device)
        terms, leading = request.terms, request.leading
        assert isinstance(terms, Bilinear) and isinstance(request.normalizer, Softmax)
        assert isinstance(request.pattern, Pattern)
        precision = "tf32x3" if exact_products() else "tf32"
        scale = terms.scale / request.normalizer.temperature
        settings = Settings(request.pattern, request.position, _visible(request), scale, precision)
        query, key = terms.query.to(request.value.dtype), terms.key.to(request.value.dtype)
        context, lse = attend(settings, fold(query, leading), fold(key, leading), fold(request.value, leading))
        return Result(context.view(*leading, *context.shape[1:]), lse=lse.view(*leading, request.queries))


class FusedHard:
    """gpu/hard.py; what estimators need beside the choice is a softmax, by gpu/dot.py."""

    name = "fused hard"

    def refuse(self, request: Request) -> str | None:
        if not isinstance(request.normalizer, Hard):
            return f"{type(request.normalizer).__name__} gives weight to many keys"
        reason = _unsuited(request) or _not_products(request)
        return reason or ("there is nothing to compute" if 0 in (request.queries, request.keys) else None)

    def run(self, request: Request) -> Result:
        from regard.core.kernels.gpu import chosen as choices
        from regard.core.kernels.gpu.dot import Noise, Settings, attend, prepare
        from regard.core.kernels.gpu.hard import choose
        from regard.runtime import noise

        start_triton(request.query.device)
        hard, terms, leading = request.normalizer, request.terms, request.leading
        assert isinstance(terms, Bilinear) and isinstance(hard, Hard) and isinstance(request.pattern, Pattern)
        # As exact as may be: what is chosen should not depend on how products are rounded.
        plain = Settings(request.pattern, request.position, _visible(request), terms.scale, "tf32x3")
        settings = plain
        if hard.sample:
            settings = replace(plain, noise=Noise(noise.mixed_in(request.noise_seed, request.rows.flatten())))
        query, key = (fold(x.to(request.value.dtype), leading) for x in (terms.query, terms.key))
        value = fold(request.value, leading)
        # The softmax behind the log-probability is the surrogate too, unless that has noise or a temperature.
        apart = hard.surrogate is not None and (hard.sample or hard.temperature != 1)
        fixed = value.detach()  # its gradient is that of the hard weights
        softmaxes = [(plain, fixed[..., :1] if apart or hard.surrogate is None else fixed)]
        if apart:
            share = 1 / hard.temperature
            some = None if settings.noise is None else replace(settings.noise, share=share)
            softmaxes.append((replace(plain, scale=terms.scale * share, noise=some), fixed))
        # Everything is compiled while the choice is. A log-probability beside a surrogate is seldom differentiated.
        trains = [each is softmaxes[-1] for each in softmaxes]
        for (each, weighted), train in zip(softmaxes, trains, strict=True):
            prepare(each, query, key, weighted, train)
        choices.prepare(query, key, value, terms.scale, trains_energy=hard.surrogate is None)
        chosen = choose(settings, query.detach(), key.detach())
        both = zip(softmaxes, trains, strict=True)
        found = [attend(each, query, key, weighted, train) for (each, weighted), train in both]
        soft, lse = found[-1][0], found[0][1]
        shape = (*leading, request.queries)
        surrogate = None if hard.surrogate is None else soft.view(*shape, value.shape[-1])
        context, energy = choices.take(query, key, value, chosen, terms.scale)
        context = context.view(*shape, value.shape[-1])
        return answer(chosen.view(shape), context, energy.view(shape), surrogate, lse.view(shape))


class Classes:
    """A stride: full attention inside each residue class of positions, by torch's own."""

    name = "classes"

    def refuse(self, request: Request) -> str | None:
        if not request.query.is_cuda:
            return "not on a GPU"
        reason = unsuited(request)
        if reason is not None:
            return reason
        assert isinstance(request.pattern, Pattern)
        if request.pattern.step == 1 or request.pattern.unstrided != Full():
            return "the pattern is not a stride alone"
        if not isinstance(request.normalizer, Softmax) or not isinstance(request.terms, Bilinear):
            return "it is not a softmax over products"
        if request.dropout > 0 or request.bias is not None or request.allowed is not None:
            return "dropout, a bias or a mask of pairs cannot be regrouped into classes"
        if request.position or request.visible is not None:
            return "positions do not begin at 0, or some keys are padding"
        if request.queries % request.pattern.step or request.keys % request.pattern.step:
            return "classes would differ in size"
        if 0 in (*request.leading, request.queries, request.keys):
            return "there is nothing to compute"
        return None

    def run(self, request: Request) -> Result:
        terms, leading = request.terms, request.leading
        assert isinstance(terms, Bilinear) and isinstance(request.normalizer, Softmax)
        assert isinstance(request.pattern, Pattern)
        step = request.pattern.step
        states = (fold(x.to(request.value.dtype), leading) for x in (terms.query, terms.key, request.value))
        query, key, value = (regroup(x, step, 0) for x in states)  # [step, G, M, D]
        scale = terms.scale / request.normalizer.temperature
        context = ungroup(sdpa(query, key, value, scale=scale), request.queries, 0)
        return Result(context.view(*leading, *context.shape[1:]))


def _not_softmax(request: Request) -> str | None:
    is_one = isinstance(request.normalizer, Softmax)
    return None if is_one else f"{type(request.normalizer).__name__} is not a softmax"


def _not_products(request: Request) -> str | None:
    """Why no kernel for products of queries and keys can serve the request."""
    from regard.core.kernels.gpu.dot import MOST_FEATURES

    if not isinstance(request.terms, Bilinear):
        return f"{request.score.title} is not a product of query and key"
    if request.allowed is not None:
        return "a mask of pairs would have to be asked for every pair"
    features, values = request.terms.query.shape[-1], request.value.shape[-1]
    if max(features, values) > MOST_FEATURES:
        return f"heads of {max(features, values)} features are too wide for it"
    precision = "tf32" if isinstance(request.normalizer, Softmax) and not exact_products() else "tf32x3"
    available = shared_memory(request.query.device)
    if not stages(request.value.dtype, features, values, precision, available):
        return (
            f"heads of {max(features, values)} features need more shared memory than the {available:,} bytes there are"
        )
    return None


def _unsuited(request: Request) -> str | None:
    """Why none of the fused kernels can serve the request."""
    reason = without_kernels(request.query.device) or unsuited(request)
    if reason is not None:
        return reason
    if request.value.dtype not in NARROW:
        return f"it computes in float32 at most, not {request.value.dtype}"
    if request.dropout > 0:
        return "it has no dropout"
    if request.bias is not None:
        return "it takes no bias"
    if request.leading.numel() > MOST_ROWS:
        return f"it takes {MOST_ROWS:,} rows at most"
    return None


def rounds_float32(request: Request) -> bool:
    """Is it float32 whose products need not be exact?"""
    return request.value.dtype is torch.float32 and not exact_products()


def _visible(request: Request) -> Flat | None:
    return None if request.visible is None else Flat.fold(request.visible, request.leading, 1)


@lru_cache(maxsize=16)
def without_kernels(device: torch.device) -> str | None:
    """Why kernels of our own do not run on a device; None: they do."""
    if device.type != "cuda":
        return "not on a GPU"
    if find_spec("triton") is None:
        return "Triton is not installed"
    if torch.version.hip is not None or torch.cuda.get_device_capability(device) < (8, 0):
        return "the GPU is not one of NVIDIA's of compute capability 8.0 or later"
    return None
