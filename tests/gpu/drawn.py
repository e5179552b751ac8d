"""Requests drawn for a GPU: dtypes, widths, T ≠ S, offsets, lengths, masks, biases, NaN in padding, empty rows."""

from __future__ import annotations

import copy
import random
from collections.abc import Sequence
from dataclasses import dataclass

import torch
from torch import Tensor

from regard import Additive, Cosine, Dot, General, Hard, Normalizer, Pattern, ScaledDot, Score, Softmax, parse_pattern
from regard.core import request as requests
from regard.core.kernels.kernel import Kernel
from regard.core.request import CallOptions, Request

CUDA = torch.device("cuda")
LEADING = ((), (3,), (1, 2), (2, 3))
SIZES = (1, 2, 5, 16, 33, 64, 65, 100, 130, 200)
FEATURES = (8, 16, 24, 32, 64, 80, 128, 160, 256)
DTYPES = (torch.float32, torch.bfloat16, torch.float16)
TRIES = 400


@dataclass(frozen=True)
class Range:
    """What is drawn for one kernel."""

    scores: Sequence[str] = ("dot", "scaled_dot", "general", "cosine", "additive")
    patterns: Sequence[str] = ("plain", "strided", "union", "global")
    normalizers: Sequence[Normalizer] = (Softmax(), Softmax(0.6))
    features: Sequence[int] = FEATURES
    by_pair: bool = True
    """biases and masks of pairs too"""
    by_head: bool = False
    dropout: bool = False
    padding: bool = True
    """lengths, masks and offsets too"""


@dataclass
class Case:
    """A request, the same in float64, and the leaves of both whose gradients are compared."""

    request: Request
    exact: Request
    leaves: list[Tensor]
    exact_leaves: list[Tensor]
    states: int
    """how many of the leaves are query, key, value and bias; the others are parameters"""
    padding: dict[int, Tensor]
    """bool [..., S] of key (1) and value (2): which positions are padding to every query"""
    tf32: bool
    text: str


def draw(kernel: Kernel, what: Range, number: int) -> Case:
    """The first case of this number that the kernel takes."""
    for attempt in range(TRIES):
        case = _drawn(random.Random(f"{kernel.name} {number} {attempt}"), what)
        if kernel.refuse(case.request) is None:
            return case
    raise AssertionError(f"{kernel.name} refused {TRIES} drawn cases: {kernel.refuse(case.request)}")


def _drawn(rng: random.Random, what: Range) -> Case:
    dtype = rng.choice(DTYPES)
    tf32 = dtype is torch.float32 and rng.random() < 0.5
    torch.backends.cuda.matmul.allow_tf32 = tf32
    generator = torch.Generator(CUDA).manual_seed(rng.getrandbits(31))
    leading = rng.choice([(2,), (2, 3)] if what.by_head else LEADING)
    queries, keys, features = rng.choice(SIZES), rng.choice(SIZES), rng.choice(what.features)
    width = features if rng.random() < 0.8 else rng.choice(what.features)

    def states(size: int, features: int) -> Tensor:
        drawn = torch.randn(*leading, size, features, device=CUDA, generator=generator).to(dtype)
        return drawn[:1] if leading and rng.random() < 0.1 else drawn

    leaves = [states(queries, features), states(keys, features), states(keys, width)]
    name = rng.choice(what.scores)
    if name in ("dot", "general"):  # energies of a few units, as the other scores have
        leaves[0] = (leaves[0] * (rng.choice([1.0, 3.0]) / features**0.5)).to(dtype)
    leading = torch.broadcast_shapes(*(each.shape[:-2] for each in leaves))
    lengths, allowed, bias = None, None, None
    if what.padding:
        lengths, allowed, bias = _masks(rng, generator, leading, queries, keys, dtype, what.by_pair)
    padding = _put_nan(leaves, leading, lengths, allowed)
    position = rng.choice([0, 0, 3, 64, 150]) if what.padding else 0
    pattern = _pattern(rng, what, leading)
    score = _score(name, features, dtype, rng)
    normalizer, dropout = rng.choice(what.normalizers), rng.choice([0.0, 0.0, 0.3]) if what.dropout else 0.0
    seed = rng.getrandbits(31)
    leaves += [] if bias is None else [bias]
    exact_leaves = [each.double().detach() for each in leaves]
    exact_score = copy.deepcopy(score).double()
    both = []
    for own, chosen in ((leaves, score), (exact_leaves, exact_score)):
        for leaf in own:
            leaf.requires_grad_()
        noise = torch.Generator().manual_seed(seed)
        given = (None if bias is None else own[3], allowed, position, dropout, noise)
        both.append(requests.read(*own[:3], CallOptions(chosen, pattern, normalizer, *given), lengths))
    text = f"{dtype} tf32={tf32} {leading} T={queries} S={keys} D={features} F={width} at {position}"
    text += f" {name} {pattern} {normalizer}"
    text += f" lengths={lengths is not None} allowed={allowed is not None} bias={bias is not None} dropout={dropout}"
    parameters, exact_parameters = list(score.parameters()), list(exact_score.parameters())
    every = [*leaves, *parameters], [*exact_leaves, *exact_parameters]
    return Case(*both, *every, len(leaves), padding, tf32, text)


def _score(name: str, features: int, dtype: torch.dtype, rng: random.Random) -> Score:
    torch.manual_seed(rng.getrandbits(31))
    made: Score = {
        "dot": Dot,
        "scaled_dot": ScaledDot,
        "general": lambda: General(features, features),
        "cosine": lambda: Cosine(4.0, learned=True),
        "additive": lambda: Additive(features, features, rng.choice([12, 32, 80])),
    }[name]()
    return made.to(CUDA, dtype)


def _pattern(rng: random.Random, what: Range, leading: Sequence[int]) -> Pattern:
    if what.by_head:
        some = [_text(rng, rng.choice(what.patterns)) for _ in range(leading[-1])]
        return parse_pattern(f"per_head({', '.join(some)})")
    return parse_pattern(_text(rng, rng.choice(what.patterns)))


def _text(rng: random.Random, kind: str) -> str:
    n, step = rng.choice([1, 9, 64, 100]), rng.choice([2, 4, 7, 33])
    plain = [f"window({n})", f"window({n}, 0)", "causal", "full", f"window(0, {n})"]
    if kind == "stride":
        return f"strided({step})"
    strided = [f"strided({step})", f"dilated({rng.choice([1, 3, 9])}, {step})", f"strided({step}) & window({n})"]
    wider = [
        f"window({n}) | global(0, {rng.choice([5, 70, 190])})",
        f"bigbird({2 * n}, 0:2, 2, 16)",
        "longformer(18, 0)",
    ]
    return rng.choice(
        {"plain": plain, "strided": strided, "global": wider, "union": [f"{a} | {b}" for a in wider for b in strided]}[
            kind
        ]
    )


def _masks(
    rng: random.Random,
    generator: torch.Generator,
    leading: Sequence[int],
    queries: int,
    keys: int,
    dtype: torch.dtype,
    by_pair: bool,
) -> tuple[Tensor | None, Tensor | None, Tensor | None]:
    lengths = allowed = bias = None
    if rng.random() < 0.5:
        prefix = tuple(leading)[: rng.randint(0, len(leading))]
        lengths = torch.tensor([rng.choice([0, 1, keys // 3, keys]) for _ in range(max(1, torch.Size(prefix).numel()))])
        lengths = lengths[: torch.Size(prefix).numel()].view(prefix)
    if rng.random() < 0.25:
        shape = rng.choice([(queries, keys), (1, keys), (keys,)] if by_pair else [(1, keys), (keys,)])
        allowed = torch.rand(shape, device=CUDA, generator=generator) < 0.7
    if by_pair and rng.random() < 0.25:
        shape = rng.choice([(*leading, queries, keys), (queries, keys), (1, keys)])
        bias = torch.randn(shape, device=CUDA, generator=generator).to(dtype)
        bias[torch.rand(shape, device=CUDA, generator=generator) < 0.1] = -torch.inf
    return lengths, allowed, bias


def _put_nan(
    leaves: Sequence[Tensor], leading: torch.Size, lengths: Tensor | None, allowed: Tensor | None
) -> dict[int, Tensor]:
    """NaN keys and infinite values where no query of any row that shares them may look; gives where that is."""
    keys = leaves[1].shape[-2]
    seen = torch.ones(*leading, keys, dtype=torch.bool, device=CUDA)
    if lengths is not None:
        counts = lengths.to(CUDA).view((*lengths.shape, *[1] * (len(leading) - lengths.dim())))
        seen = seen & (torch.arange(keys, device=CUDA) < counts[..., None])
    if allowed is not None:
        seen = seen & (allowed if allowed.dim() > 1 else allowed[None]).any(-2).expand(keys)
    padding = {}
    for index, filling in ((1, torch.nan), (2, torch.inf)):
        states = leaves[index]
        shared = seen if states.shape[:-2] == leading else seen.any(0, keepdim=True)
        states[~shared] = filling
        padding[index] = ~shared
    return padding


def is_hard(request: Request) -> bool:
    return isinstance(request.normalizer, Hard)
