"""`gradcheck` in float64: every score × pattern × {Softmax, Sparsemax, Entmax15}, in the kernels and the reference."""

import pytest
import torch
from torch import Tensor
from torch.autograd import gradcheck
from torch.func import functional_call

from regard import Attention, Entmax15, LocalPredictive, Pattern, Softmax, Sparsemax, attention, parse_pattern, plan
from regard.core.reference import reference
from tests.core.test_scores import every_score

PATTERNS = [
    "full",
    "causal",
    "window(2, 1)",
    "strided(3)",
    "dilated(1, 2)",
    "global(0, 3)",
    "random(1, 2, 5)",
    "blocks([[0, 2], [1], [0]], 2)",
    "longformer(2, [1], stride=3)",
    "bigbird(2, [0], random=1, block=2)",
    "(window(1) | strided(2)) & causal",
    "per_head(window(1), strided(2) | global(0))",
]


@pytest.mark.usefixtures("small_tiles")
@pytest.mark.parametrize("normalizer", [Softmax(0.8), Sparsemax(), Entmax15()], ids=lambda n: type(n).__name__)
@pytest.mark.parametrize("text", PATTERNS)
@pytest.mark.parametrize("which", range(5), ids=["dot", "scaled", "general", "cosine", "additive"])
def test_kernels(which: int, text: str, normalizer) -> None:
    module = Attention(every_score()[which], text, normalizer)
    names = [name for name, _ in module.named_parameters()]
    parameters = [p.detach().clone().requires_grad_() for p in module.parameters()]

    def run(query: Tensor, key: Tensor, value: Tensor, *given: Tensor) -> Tensor:
        return functional_call(module, dict(zip(names, given, strict=True)), (query, key, value)).context

    assert gradcheck(run, (*_inputs(2, 6, 5), *parameters))


@pytest.mark.usefixtures("small_tiles")
@pytest.mark.parametrize(
    ("text", "kernel"),
    [("strided(2)", "regrouped"), ("window(1) | strided(3)", "union"), ("window(1)", "tiles"), ("full", "small dense")],
)
def test_lse(text: str, kernel: str) -> None:
    query, key = (x[..., :3].detach().requires_grad_() for x in _inputs(2, 7, 7)[:2])
    value = _inputs(2, 7, 7)[2]
    assert plan(query, key, value, pattern=text).kernel.name == kernel

    def run(*states: Tensor) -> tuple[Tensor, Tensor]:
        out = attention(*states, pattern=text, normalizer=Softmax(0.7), lse=True)
        assert out.lse is not None
        return out.context, out.lse

    assert gradcheck(run, (query, key, value))


@pytest.mark.usefixtures("small_tiles")
@pytest.mark.parametrize("shape", [(2, 6, 5), (6, 5), (1, 5), (6, 1), ()])
@pytest.mark.parametrize("text", ["full", "window(1) | global(0)"])
def test_bias(text: str, shape: tuple[int, ...]) -> None:
    bias = torch.randn(shape, dtype=torch.float64, requires_grad=True)

    def run(bias: Tensor, *states: Tensor) -> Tensor:
        return attention(*states, pattern=text, normalizer=Softmax(0.7), bias=bias).context

    assert gradcheck(run, (bias, *_inputs(2, 6, 5)))


@pytest.mark.parametrize("normalizer", [Softmax(), Sparsemax(), Entmax15()], ids=lambda n: type(n).__name__)
@pytest.mark.parametrize("looks", [parse_pattern("window(1) | global(0)"), LocalPredictive(4, 2).double()], ids=str)
def test_reference(looks: Pattern | LocalPredictive, normalizer) -> None:
    def run(*states: Tensor) -> tuple[Tensor, Tensor]:
        out = reference(plan(*states, pattern=looks, normalizer=normalizer).request)
        assert out.weights is not None
        return out.context, out.weights

    assert gradcheck(run, _inputs(2, 4, 5))


def _inputs(batch: int, queries: int, keys: int) -> tuple[Tensor, Tensor, Tensor]:
    query, key, value = (
        torch.randn(batch, n, d, dtype=torch.float64, requires_grad=True)
        for n, d in ((queries, 4), (keys, 4), (keys, 3))
    )
    return query, key, value
