"""The kernels that use our own Triton code, and which requests they can compute."""

from __future__ import annotations

from dataclasses import replace
from importlib.util import find_spec

import torch

from regard.core.kernels.cpu.tile_kernels import regroups, unsuited
from regard.core.kernels.flat import FlatRows, fold
from regard.core.kernels.gpu.arrangement import arrangements_of, merged
from regard.core.kernels.gpu.blocks import HEIGHT, WIDTH, group_blocks
from regard.core.kernels.gpu.launch import gpu_properties, shared_memory, start_triton
from regard.core.kernels.gpu.tile_size import stages
from regard.core.kernels.hard import hard_result
from regard.core.kernels.kernel import Kernel
from regard.core.kernels.residues import regroup, ungroup
from regard.core.kernels.sdpa import sdpa
from regard.core.normalizers import Hard, Softmax
from regard.core.patterns import Full, Pattern
from regard.core.request import Request
from regard.core.result import Result
from regard.runtime.precision import exact_products

SUPPORTED_DTYPES = (torch.float32, torch.bfloat16, torch.float16)
HAS_TRITON = find_spec("triton") is not None
MAX_ROWS = 65535  # the most programs that CUDA allows in the second and third dimension of a grid


class FusedAdditive(Kernel):
    """Additive attention along blocks (gpu/additive.py)."""

    name = "fused additive"

    def refuse(self, request: Request) -> str | None:
        if reason := _not_softmax(request) or _why_not_fused(request):
            return reason
        if request.additive is None:
            return f"{request.score.title} is not additive"
        longest = max(request.queries, request.keys) * (3 if regroups(request) else 1)  # with the padding of classes
        return "its places have 32 bits" if longest * request.additive.query.shape[-1] >= 1 << 31 else None

    def run(self, request: Request) -> Result:
        from regard.core.kernels.gpu.additive import AdditiveSettings, attend

        start_triton(request.query.device)
        terms, leading, pattern = request.additive, request.leading, request.pattern
        assert terms is not None and isinstance(request.normalizer, Softmax) and isinstance(pattern, Pattern)
        allowed = None if request.allowed is None else FlatRows.fold(request.allowed, leading, 2)
        precision = "pairs" if rounds_float32(request) else "tf32x3"
        vector, temperature = terms.vector, request.normalizer.temperature
        vector = fold((vector if temperature == 1 else vector / temperature)[..., None, :], leading)[:, 0]
        query, key, value = (fold(x, leading) for x in (terms.query, terms.key, request.value))
        outputs = []
        for arrangement in arrangements_of(pattern, request.queries, request.keys, request.position, regroups(request)):
            visible = arrangement.visible_order(_visible(request))
            place = arrangement.pattern, arrangement.position
            settings = AdditiveSettings(*place, visible, allowed, precision, asm=query.is_cuda)
            states = arrangement.query_order(query), arrangement.key_order(key), vector, arrangement.key_order(value)
            term_context, term_lse = attend(settings, *states)
            outputs.append((arrangement.as_queries(term_context), arrangement.as_queries(term_lse)))
        context, lse = outputs[0] if len(outputs) == 1 else merged(outputs)
        return Result(context.view(*leading, *context.shape[1:]), lse=lse.view(*leading, request.queries))

    def computed_pairs(self, request: Request) -> int:
        return _pairs_in_blocks(request, regroups(request))


class FusedDot(Kernel):
    """Dot-product attention along blocks (gpu/dot.py)."""

    name = "fused"

    def refuse(self, request: Request) -> str | None:
        return _not_softmax(request) or _why_not_fused(request) or _not_products(request)

    def run(self, request: Request) -> Result:
        from regard.core.kernels.gpu.dot import attend
        from regard.core.kernels.gpu.dot_problem import DotSettings

        start_triton(request.query.device)
        terms, leading, pattern = request.bilinear, request.leading, request.pattern
        assert terms is not None and isinstance(request.normalizer, Softmax) and isinstance(pattern, Pattern)
        precision = "tf32x3" if exact_products() else "tf32"
        scale = terms.scale / request.normalizer.temperature
        settings = DotSettings(pattern, request.position, _visible(request), scale, precision)
        states = (terms.query, terms.key, request.value)
        query, key, value = (fold(x.to(request.value.dtype), leading) for x in states)
        context, lse = attend(settings, query, key, value)
        return Result(context.view(*leading, *context.shape[1:]), lse=lse.view(*leading, request.queries))

    def computed_pairs(self, request: Request) -> int:
        return _pairs_in_blocks(request)


class FusedHard(Kernel):
    """Hard attention along blocks (gpu/hard.py); the softmax of the gradient estimators is computed by gpu/dot.py."""

    name = "fused hard"

    def refuse(self, request: Request) -> str | None:
        if not isinstance(request.normalizer, Hard):
            return f"{type(request.normalizer).__name__} gives weight to many keys"
        reason = _why_not_fused(request) or _not_products(request)
        return reason or ("there is nothing to compute" if 0 in (request.queries, request.keys) else None)

    def run(self, request: Request) -> Result:
        from regard.core.kernels.gpu import chosen as choices
        from regard.core.kernels.gpu.dot import attend, prepare
        from regard.core.kernels.gpu.dot_problem import DotSettings, Noise
        from regard.core.kernels.gpu.hard import choose
        from regard.runtime import noise

        start_triton(request.query.device)
        hard, terms, leading = request.normalizer, request.bilinear, request.leading
        assert terms is not None and isinstance(hard, Hard) and isinstance(request.pattern, Pattern)
        # As exact as possible, because the choice should not depend on how products are rounded.
        noiseless = DotSettings(request.pattern, request.position, _visible(request), terms.scale, "tf32x3")
        settings = noiseless
        if hard.sample:
            settings = replace(noiseless, noise=Noise(noise.mixed_in(request.noise_seed, request.rows.flatten())))
        query, key = (fold(x.to(request.value.dtype), leading) for x in (terms.query, terms.key))
        value = fold(request.value, leading)
        # The softmax of the log-probability serves as the surrogate too, unless that has noise or a temperature.
        separate = hard.surrogate is not None and (hard.sample or hard.temperature != 1)
        detached = value.detach()  # its gradient is that of the hard weights
        softmaxes = [(noiseless, detached[..., :1] if separate or hard.surrogate is None else detached)]
        if separate:
            inverse = 1 / hard.temperature
            surrogate_noise = None if settings.noise is None else replace(settings.noise, scale=inverse)
            softmaxes.append((replace(noiseless, scale=terms.scale * inverse, noise=surrogate_noise), detached))
        # All kernels are compiled in parallel. With a surrogate, the log-probability is seldom differentiated.
        calls = [(each, query, key, weighted, each is softmaxes[-1][0]) for each, weighted in softmaxes]
        for call in calls:
            prepare(*call)
        choices.prepare(query, key, value, terms.scale, trains_energy=hard.surrogate is None)
        chosen = choose(settings, query.detach(), key.detach())
        outputs = [attend(*call) for call in calls]
        soft, lse = outputs[-1][0], outputs[0][1]
        shape = (*leading, request.queries)
        surrogate = None if hard.surrogate is None else soft.view(*shape, value.shape[-1])
        context, energy = choices.take(query, key, value, chosen, terms.scale)
        context = context.view(*shape, value.shape[-1])
        return hard_result(chosen.view(shape), context, energy.view(shape), surrogate, lse.view(shape))

    def computed_pairs(self, request: Request) -> int:
        return _pairs_in_blocks(request)


class Classes(Kernel):
    """Strides: full attention inside each residue class of positions, by torch's own attention."""

    name = "classes"

    def refuse(self, request: Request) -> str | None:
        if reason := unsuited(request) if request.query.is_cuda else "not on a GPU":
            return reason
        assert isinstance(request.pattern, Pattern)
        if request.pattern.step == 1 or request.pattern.unstrided != Full():
            return "the pattern is not a stride alone"
        if not isinstance(request.normalizer, Softmax) or request.bilinear is None:
            return "it is not a softmax over products"
        if request.dropout > 0 or request.bias is not None or request.allowed is not None:
            return "dropout, a bias or a mask of pairs cannot be regrouped into classes"
        if request.position or request.visible is not None:
            return "positions do not begin at 0, or some keys are padding"
        if request.queries % request.pattern.step or request.keys % request.pattern.step:
            return "classes would differ in size"
        return "there is nothing to compute" if 0 in (*request.leading, request.queries, request.keys) else None

    def run(self, request: Request) -> Result:
        terms, leading, pattern = request.bilinear, request.leading, request.pattern
        assert terms is not None and isinstance(request.normalizer, Softmax) and isinstance(pattern, Pattern)
        states = (fold(x.to(request.value.dtype), leading) for x in (terms.query, terms.key, request.value))
        query, key, value = (regroup(x, pattern.step, 0) for x in states)  # [step, G, M, D]
        scale = terms.scale / request.normalizer.temperature
        context = ungroup(sdpa(query, key, value, scale=scale), request.queries, 0)
        return Result(context.view(*leading, *context.shape[1:]))

    def computed_pairs(self, request: Request) -> int:
        assert isinstance(request.pattern, Pattern)
        return request.queries * request.keys // request.pattern.step


def _not_softmax(request: Request) -> str | None:
    is_softmax = isinstance(request.normalizer, Softmax)
    return None if is_softmax else f"{type(request.normalizer).__name__} is not a softmax"


def _not_products(request: Request) -> str | None:
    """Return why no kernel for dot products of queries and keys can compute the request; None if one can."""
    from regard.core.kernels.gpu.dot_problem import MAX_FEATURES

    if request.bilinear is None:
        return f"{request.score.title} is not a product of query and key"
    if request.allowed is not None:
        return "a mask of pairs would have to be asked for every pair"
    features, values = request.bilinear.query.shape[-1], request.value.shape[-1]
    if max(features, values) > MAX_FEATURES:
        return f"heads of {max(features, values)} features are too wide for it"
    precision = "tf32" if isinstance(request.normalizer, Softmax) and not exact_products() else "tf32x3"
    available = shared_memory(request.query.device)
    if stages(request.value.dtype, features, values, precision, available):
        return None
    return f"heads of {max(features, values)} features need more shared memory than the {available:,} bytes there are"


def _why_not_fused(request: Request) -> str | None:
    """Return why none of the fused kernels can compute the request; None if one can."""
    if reason := why_no_triton(request.query.device) or unsuited(request):
        return reason
    if request.value.dtype not in SUPPORTED_DTYPES:
        return f"it computes in float32 at most, not {request.value.dtype}"
    if request.dropout > 0:
        return "it has no dropout"
    if request.bias is not None:
        return "it takes no bias"
    return f"it takes {MAX_ROWS:,} rows at most" if request.leading.numel() > MAX_ROWS else None


def rounds_float32(request: Request) -> bool:
    """Is the request in float32, and may its products be rounded?"""
    return request.value.dtype is torch.float32 and not exact_products()


def _pairs_in_blocks(request: Request, regroup: bool = True) -> int:
    """Return how many pairs the blocks of the fused kernels hold; they are counted on the CPU."""
    assert isinstance(request.pattern, Pattern)
    cpu, count = torch.device("cpu"), 0
    for arranged in arrangements_of(request.pattern, request.queries, request.keys, request.position, regroup):
        groups = group_blocks(arranged.pattern, *arranged.sizes, arranged.position, HEIGHT, WIDTH, cpu)
        count += sum(blocks.count for _, blocks in groups)
    return count * HEIGHT * WIDTH


def _visible(request: Request) -> FlatRows | None:
    return None if request.visible is None else FlatRows.fold(request.visible, request.leading, 1)


def why_no_triton(device: torch.device) -> str | None:
    """Return why our own kernels do not run on a device; None if they do."""
    if device.type != "cuda":
        return "not on a GPU"
    if not HAS_TRITON:
        return "Triton is not installed"
    if torch.version.hip is not None or gpu_properties(device).major < 8:
        return "the GPU is not one of NVIDIA's of compute capability 8.0 or later"
    return None
