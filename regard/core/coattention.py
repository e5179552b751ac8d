"""Co-attention: two sequences look at each other, by one set of energies (Lu et al. 2016, Xiong et al. 2017)."""

from __future__ import annotations

from dataclasses import replace
from typing import NamedTuple

import torch
from torch import Tensor

from regard.core import checks
from regard.core import request as requests
from regard.core.attention import read_normalizer, read_score
from regard.core.normalizers import Normalizer, Softmax
from regard.core.observe import lean_energies
from regard.core.patterns import Full
from regard.core.reference import weights_of
from regard.core.request import Lengths, Request
from regard.core.result import Result
from regard.core.scores import Score


class CoResult(NamedTuple):
    """Both directions."""

    a: Result
    """what a saw in b: context [..., T, Db], weights [..., T, S]"""
    b: Result
    """what b saw in a: context [..., S, Da], weights [..., S, T]"""


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
    """a [..., T, Da] and b [..., S, Db] look at each other.

        energies = score(a, b) + bias             [..., T, S]
        a looks at b: normalizer over S;          b looks at a: normalizer over T

    Padding (beyond `lengths_a`, `lengths_b`) neither looks nor is looked at: its context is 0. `allowed` and `bias` are
    as in `attention`, for the pairs (a, b).
    """
    checks.states("a", a)
    checks.states("b", b)
    leading = checks.common_leading(a=a, b=b)
    pairs = (*leading, a.shape[-2], b.shape[-2])
    bias = None if bias is None else checks.pairs("bias", bias, pairs, floating=True)
    allowed = None if allowed is None else checks.pairs("allowed", allowed, pairs, floating=False)
    seen_a, seen_b = _seen("lengths_a", lengths_a, a, leading), _seen("lengths_b", lengths_b, b, leading)
    for seen, side in ((seen_a, -1), (seen_b, -2)):
        if seen is not None:
            allowed = seen.unsqueeze(side) if allowed is None else allowed & seen.unsqueeze(side)
    if allowed is not None:  # 0 in what looks at nothing and is looked at by nothing, whatever it held
        a = requests.without_padding(a, allowed.any(-1).expand(*allowed.shape[:-2], a.shape[-2]))
        b = requests.without_padding(b, allowed.any(-2).expand(*allowed.shape[:-2], b.shape[-2]))
    way = read_normalizer(normalizer)
    forth = requests.read(a, b, b, read_score(score), Full(), way, bias, None, None, 0, 0.0, generator)
    back = replace(forth, query=b, key=a, value=a, bias=None if bias is None else bias.mT, seed=forth.seed + 1)
    energies = lean_energies(forth)
    return CoResult(
        _looked(replace(forth, allowed=allowed), energies),
        _looked(replace(back, allowed=None if allowed is None else allowed.mT), energies.mT),
    )


def _seen(name: str, lengths: Lengths | None, states: Tensor, leading: torch.Size) -> Tensor | None:
    """bool [..., N]: which positions are real."""
    if lengths is None:
        return None
    try:
        counts = requests.read_lengths(lengths, leading, states.shape[-2], states.device)
    except (TypeError, ValueError) as error:
        raise type(error)(str(error).replace("lengths:", f"{name}:")) from None
    return torch.arange(states.shape[-2], device=states.device) < counts[..., None]


def _looked(request: Request, energies: Tensor) -> Result:
    weights, chosen, log_probability = weights_of(request, energies)
    context = weights.to(request.value.dtype) @ request.value
    return Result(context, weights=weights, chosen=chosen, log_probability=log_probability)
