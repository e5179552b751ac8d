"""Co-attention: two sequences attend to each other with one matrix of energies (Lu et al. 2016, Xiong et al. 2017)."""

from __future__ import annotations

from dataclasses import replace
from typing import NamedTuple

import torch
from torch import Tensor

from regard.core import checks
from regard.core import request as requests
from regard.core.attention import read_normalizer, read_score
from regard.core.normalizers import Normalizer, Softmax
from regard.core.observe import memory_efficient_energies
from regard.core.patterns import Full
from regard.core.reference import result_of
from regard.core.request import CallOptions, Lengths
from regard.core.result import Result
from regard.core.scores import Score


class CoResult(NamedTuple):
    """The results of both directions."""

    a: Result  # a attends to b: context [..., T, Db], weights [..., T, S]
    b: Result  # b attends to a: context [..., S, Da], weights [..., S, T]


def coattend(
    a: Tensor,
    b: Tensor,
    *,
    score: Score | str = "scaled_dot",
    normalizer: Normalizer | str = Softmax(),  # noqa: B008, a frozen value
    bias: Tensor | None = None,
    lengths_a: Lengths | None = None,
    lengths_b: Lengths | None = None,
    allowed: Tensor | None = None,
    generator: torch.Generator | None = None,
) -> CoResult:
    """Let a [..., T, Da] and b [..., S, Db] attend to each other.

        energies = score(a, b) + bias             [..., T, S]
        a attends to b: normalizer over S;        b attends to a: normalizer over T

    Padding (beyond `lengths_a`, `lengths_b`) neither attends nor is attended to: its context is 0. `allowed` and `bias`
    are as in `attention`, for the pairs (a, b).
    """
    checks.states("a", a)
    checks.states("b", b)
    leading = checks.common_leading(a=a, b=b)
    pairs = (*leading, a.shape[-2], b.shape[-2])
    bias = None if bias is None else checks.pairs("bias", bias, pairs, floating=True)
    allowed = None if allowed is None else checks.pairs("allowed", allowed, pairs, floating=False)
    real_a, real_b = _real("lengths_a", lengths_a, a, leading), _real("lengths_b", lengths_b, b, leading)
    for real, dim in ((real_a, -1), (real_b, -2)):
        if real is not None:
            allowed = real.unsqueeze(dim) if allowed is None else allowed & real.unsqueeze(dim)
    if allowed is not None:  # zero fully masked positions: they may hold NaN
        a = requests.zero_hidden(a, allowed.any(-1).expand(*allowed.shape[:-2], a.shape[-2]))
        b = requests.zero_hidden(b, allowed.any(-2).expand(*allowed.shape[:-2], b.shape[-2]))
    normalizer = read_normalizer(normalizer)
    a_to_b = requests.read(a, b, b, CallOptions(read_score(score), Full(), normalizer, bias, generator=generator))
    b_to_a = replace(a_to_b, query=b, key=a, value=a, bias=None if bias is None else bias.mT, seed=a_to_b.seed + 1)
    energies = memory_efficient_energies(a_to_b)
    return CoResult(
        result_of(replace(a_to_b, allowed=allowed), energies),
        result_of(replace(b_to_a, allowed=None if allowed is None else allowed.mT), energies.mT),
    )


def _real(name: str, lengths: Lengths | None, states: Tensor, leading: torch.Size) -> Tensor | None:
    """Return bool [..., N], True at real positions, False at padding; None without lengths."""
    if lengths is None:
        return None
    try:
        counts = requests.read_lengths(lengths, leading, states.shape[-2], states.device)
    except (TypeError, ValueError) as error:
        raise type(error)(str(error).replace("lengths:", f"{name}:")) from None
    return requests.visible_keys(counts, states.shape[-2])
