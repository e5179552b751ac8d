"""`attention`, its memories and modules on a GPU, by whatever kernel the plan chooses."""

from __future__ import annotations

import random
from itertools import product

import pytest
import torch

import regard
from regard import Attention, MultiHead, Softmax
from regard.core.plan import choose
from tests.gpu.drawn import CUDA, DTYPES, Range
from tests.gpu.drawn import _drawn as drawn
from tests.gpu.test_kernels import FAMILY, HARD, check

SCORES = ("dot", "scaled_dot", "general", "cosine", "additive")
KINDS = ("plain", "strided", "global", "union")
COMBINATIONS = list(product(SCORES, KINDS, (*FAMILY, *HARD)))


class Planned:
    """The kernel that the plan chooses."""

    name = "planned"

    def refuse(self, request):  # type: ignore[no-untyped-def]
        return None

    def run(self, request):  # type: ignore[no-untyped-def]
        return choose(request).run()


@pytest.mark.parametrize("number", range(6))
@pytest.mark.parametrize(("score", "kind", "normalizer"), COMBINATIONS)
def test_every_score_pattern_and_normalizer(score: str, kind: str, normalizer: regard.Normalizer, number: int) -> None:
    check(Planned(), Range((score,), (kind,), (normalizer,), features=(8, 24, 64, 80, 160), by_pair=True), number)


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("score", SCORES)
def test_a_memory_read_step_by_step(score: str, dtype: torch.dtype) -> None:
    case = drawn(random.Random(1), Range((score,)))
    made = case.request.score.to(dtype)
    width = case.request.query.shape[-1]
    attend = Attention(made, normalizer=Softmax())
    key, value = (torch.randn(3, 20, width, device=CUDA, dtype=dtype, requires_grad=True) for _ in range(2))
    queries = torch.randn(3, 5, width, device=CUDA, dtype=dtype) / width**0.5  # energies around 1
    memory = attend.remember(key, value, lengths=[20, 7, 0])
    steps = torch.cat([memory.read(queries[:, t : t + 1]).context for t in range(5)], 1)
    whole = regard.attention(queries, key, value, score=made, lengths=[20, 7, 0]).context
    close = {"atol": 3e-2, "rtol": 3e-2} if dtype is not torch.float32 else {"atol": 1e-4, "rtol": 1e-3}
    torch.testing.assert_close(steps, whole, **close)
    ours, theirs = (torch.autograd.grad(each.float().pow(2).sum(), (key, value)) for each in (steps, whole))
    torch.testing.assert_close(ours, theirs, atol=0.1 if dtype is not torch.float32 else 1e-3, rtol=5e-2)


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize(
    "pattern", ["full", "causal", "window(8) | global(0)", "per_head(full, causal, strided(4), window(8))"]
)
def test_several_heads_as_on_the_cpu(pattern: str, dtype: torch.dtype) -> None:
    torch.manual_seed(0)
    heads = MultiHead(64, 4, pattern=pattern)
    states = torch.randn(2, 150, 64)
    right = heads(states, lengths=[150, 40]).context
    result = heads.to(CUDA, dtype)(states.to(CUDA, dtype), lengths=[150, 40]).context
    bound = 1e-4 if dtype is torch.float32 else 3e-2
    torch.testing.assert_close(result.float().cpu(), right, atol=bound, rtol=bound)


def test_a_second_gradient_is_refused_in_a_sentence() -> None:
    states = torch.randn(2, 300, 64, device=CUDA, requires_grad=True)
    out = regard.attention(states, states, states, pattern="window(8)").context
    with pytest.raises(RuntimeError, match="gives no gradient of a gradient"):
        torch.autograd.grad(out.sum(), states, create_graph=True)
