"""Attention inside of transforms of torch: shapes without numbers, torch.func, compiling, exporting, second order.

Torch's compilers are asked without generating code: whether one graph is captured, and whether it computes the same.
"""

from collections.abc import Callable
from typing import Any
from weakref import ref

import pytest
import torch
from torch import Tensor, nn
from torch._subclasses import FakeTensorMode
from torch.autograd import forward_ad, gradgradcheck

from regard import (
    Additive,
    Attention,
    Blocks,
    Cosine,
    General,
    Hard,
    LocalPredictive,
    MultiHead,
    attention,
    parse_pattern,
    plan,
)
from regard.core.memory import Memory
from regard.core.observe import run_with_outputs
from regard.core.plan import Plan, Reference

D = torch.float64
SIZE = 6
CHOICES: dict[str, Callable[[], dict[str, Any]]] = {
    "full": dict,
    "causal": lambda: {"pattern": parse_pattern("causal")},
    "window": lambda: {"pattern": parse_pattern("window(2)"), "weights": True, "top": 2, "lse": True},
    "union": lambda: {"pattern": parse_pattern("window(1) | strided(3) | global(0)")},
    "bigbird": lambda: {"pattern": parse_pattern("bigbird(2, [0], random=1, block=2)")},
    "blocks": lambda: {"pattern": Blocks([[0], [1]], 3)},
    "per_head": lambda: {"pattern": parse_pattern("per_head(causal, window(1))")},
    "general": lambda: {"score": General(4, 4).double()},
    "cosine": lambda: {"score": Cosine(learned=True).double()},
    "additive": lambda: {"score": Additive(4, 4, 5).double(), "weights": True},
    "sparsemax": lambda: {"normalizer": "sparsemax"},
    "entmax15": lambda: {"normalizer": "entmax15", "pattern": parse_pattern("causal")},
    "hard": lambda: {"normalizer": "hard"},
    "local": lambda: {"pattern": LocalPredictive(4, 2).double()},
    "lengths": lambda: {"lengths": [4, 0]},
    "masks": lambda: {"allowed": torch.ones(SIZE, SIZE).tril(1) > 0, "bias": torch.linspace(0, 1, SIZE, dtype=D)[None]},
}
RANDOM = {"dropout": {"dropout": 0.3}, "gumbel": {"normalizer": Hard("gumbel", sample=True)}}
MODULES: dict[str, Callable[[], nn.Module]] = {
    "causal": lambda: MultiHead(8, 2, pattern="causal"),
    "rotary": lambda: MultiHead(8, 4, kv_heads=2, pattern="causal", rotary=True),
    "additive": lambda: MultiHead(8, 2, score="additive", pattern="window(2)"),
    "sparse": lambda: MultiHead(8, 2, pattern="per_head(causal, strided(2))", normalizer="sparsemax"),
    "steps": lambda: Steps(Attention(Additive(8, 8, 5))),
    "cache": lambda: Cached(MultiHead(8, 2, pattern="causal", rotary=True)),
}
DTYPES = dict.fromkeys(MODULES, torch.float32)


class Steps(nn.Module):
    """A decoder that reads a memory step by step."""

    def __init__(self, attend: nn.Module) -> None:
        super().__init__()
        self.attend = attend

    def forward(self, x: Tensor) -> Tensor:
        memory: Memory = self.attend.remember(x)
        return torch.cat([memory.read(x[..., t : t + 1, :], position=t).context for t in range(3)], -2)


class Cached(Steps):
    """One that grows it."""

    def forward(self, x: Tensor) -> Tensor:
        memory, result = self.attend.remember(x[..., :1, :]), []
        for t in range(1, 4):
            memory = memory.append(x[..., t : t + 1, :])
            result.append(memory.read(x[..., t : t + 1, :], position=t).context)
        return torch.cat(result, -2)


TORCH = tuple(int(number) for number in torch.__version__.split(".")[:2])
needs_dynamo = pytest.mark.skipif(TORCH < (2, 7), reason="Dynamo of torch 2.6 does not trace dataclasses.replace")


@pytest.fixture(autouse=True)
def _fresh_compiler() -> Any:
    yield
    torch.compiler.reset()


@pytest.fixture(params=[f"attention: {name}" for name in CHOICES] + [f"module: {name}" for name in MODULES])
def case(request: pytest.FixtureRequest) -> tuple[Callable[[Tensor], Any], Tensor]:
    """(a function of states, the states)"""
    torch.manual_seed(3)
    kind, name = request.param.split(": ")
    if kind == "attention":
        arguments = CHOICES[name]()
        return lambda x: attention(x, x, x, **arguments), torch.randn(2, 2, SIZE, 4, dtype=D)
    return MODULES[name]().double(), torch.randn(3, 5, 8, dtype=D)


def context(answer: Any) -> Tensor:
    return answer if isinstance(answer, Tensor) else answer.context


def gradient(run: Callable[[Tensor], Any], x: Tensor) -> Tensor:
    x = x.clone().requires_grad_()
    return torch.autograd.grad(context(run(x)).sin().sum(), x)[0]


@pytest.mark.parametrize("name", CHOICES)
def test_shapes_without_numbers(name: str) -> None:
    arguments = {
        key: value.to("meta") if isinstance(value, (nn.Module, Tensor)) else value
        for key, value in CHOICES[name]().items()
    }
    x = torch.empty(2, 2, SIZE, 4, dtype=D, device="meta", requires_grad=True)
    out = attention(x, x, x, **arguments)
    assert out.context.is_meta and out.context.shape == x.shape
    out.context.sum().backward()
    assert x.grad is not None and x.grad.is_meta
    asked = {key: value for key, value in arguments.items() if key not in ("weights", "top", "lse")}
    assert "kernel" in plan(x, x, x, **asked).explain()


@pytest.mark.parametrize("name", MODULES)
def test_modules_without_numbers(name: str) -> None:
    """In float32, which is what autocast would ask about; the whole module is made there."""
    with torch.device("meta"):
        module, x = MODULES[name](), torch.empty(3, 5, 8, requires_grad=True)
        out = context(module(x))
    assert out.is_meta and out.shape[-1] == 8
    out.sum().backward()
    assert all(parameter.grad is not None for parameter in module.parameters())


def test_long_sequences_without_numbers_and_without_memory() -> None:
    x = torch.empty(64, 16, 100_000, 64, device="meta")
    for arguments in ({}, {"pattern": "window(5)"}, {"score": "cosine", "normalizer": "sparsemax"}):
        assert attention(x, x, x, **arguments).context.shape == x.shape


def test_vmap(case: tuple[Callable[[Tensor], Any], Tensor]) -> None:
    run, x = case
    rows = torch.stack([x, x.flip(0), 2 * x])
    torch.testing.assert_close(
        context(torch.vmap(run)(rows)), torch.stack([context(run(row)) for row in rows]), equal_nan=True
    )


def test_func_grad(case: tuple[Callable[[Tensor], Any], Tensor]) -> None:
    run, x = case
    expected = gradient(run, x)
    torch.testing.assert_close(torch.func.grad(lambda x: context(run(x)).sin().sum())(x), expected)
    (result,) = torch.func.vjp(lambda x: context(run(x)).sin().sum(), x)[1](torch.ones((), dtype=D))
    torch.testing.assert_close(result, expected)
    torch.testing.assert_close(torch.func.jacrev(lambda x: context(run(x)).sin().sum())(x), expected)
    moved = torch.func.jvp(lambda x: context(run(x)).sin().sum(), (x,), (x.cos(),))[1]
    torch.testing.assert_close(moved, (expected * x.cos()).sum())


def test_func_grad_of_parameters() -> None:
    module, x = MultiHead(8, 2, pattern="causal"), torch.randn(3, 5, 8)
    result = torch.func.grad(lambda given: torch.func.functional_call(module, given, (x,)).context.sin().sum())(
        {name: parameter.detach() for name, parameter in module.named_parameters()}
    )
    module(x).context.sin().sum().backward()
    torch.testing.assert_close(result, {name: parameter.grad for name, parameter in module.named_parameters()})


def test_forward_mode() -> None:
    x = torch.randn(300, 4, dtype=D)
    expected = gradient(lambda x: attention(x, x, x, pattern="window(3)"), x)
    with forward_ad.dual_level():
        dual = forward_ad.make_dual(x, x.cos())
        out = attention(dual, dual, dual, pattern="window(3)").context.sin().sum()
        torch.testing.assert_close(forward_ad.unpack_dual(out).tangent, (expected * x.cos()).sum())


@needs_dynamo
def test_compiled_as_one_graph(case: tuple[Callable[[Tensor], Any], Tensor]) -> None:
    run, x = case
    compiled = torch.compile(run, fullgraph=True, backend="eager")
    torch.testing.assert_close(gradient(compiled, x), gradient(run, x))


@needs_dynamo
def test_compiled_forward_and_backward() -> None:
    module, x = MultiHead(8, 2, pattern="causal"), torch.randn(3, 5, 8)
    compiled = torch.compile(module, fullgraph=True, backend="aot_eager")
    torch.testing.assert_close(gradient(compiled, x), gradient(module, x))
    torch.testing.assert_close(compiled(x).context, module(x).context)


@pytest.mark.parametrize(
    ("name", "strict"), [*((name, False) for name in MODULES), pytest.param("causal", True, marks=needs_dynamo)]
)
def test_exported(name: str, strict: bool) -> None:
    module, x = MODULES[name](), torch.randn(3, 5, 8)
    exported = torch.export.export(module, (x,), strict=strict).module()
    torch.testing.assert_close(context(exported(x)), context(module(x)))
    module(x)  # nothing of the tracing is left in a cache


@needs_dynamo
@pytest.mark.parametrize("name", RANDOM)
def test_noise(name: str) -> None:
    """A seed is drawn inside the transform: the same graph gives new noise at every call."""
    x = torch.randn(2, 50, 4)
    compiled = torch.compile(lambda x: attention(x, x, x, **RANDOM[name]).context, fullgraph=True, backend="eager")
    assert not torch.equal(compiled(x), compiled(x))
    rows = torch.vmap(lambda x: attention(x, x, x, **RANDOM[name]).context, randomness="different")(
        x[:1].expand(2, -1, -1)
    )
    assert not torch.equal(rows[0], rows[1])


def test_gradients_of_gradients(case: tuple[Callable[[Tensor], Any], Tensor], request: pytest.FixtureRequest) -> None:
    if "hard" in request.node.name:
        pytest.skip("a straight-through estimator's gradient is not that of what it computes")
    run, x = case
    assert gradgradcheck(lambda x: context(run(x)), x.clone().requires_grad_(), fast_mode=True)


@pytest.mark.parametrize(
    "arguments",
    [
        {},
        {"pattern": "causal"},
        {"lengths": [40, 3]},
        {"bias": torch.randn(40, 40, dtype=D)},
        {"pattern": "window(3) | strided(7)", "lse": True},
        {"pattern": "window(3)", "bias": torch.randn(40, 1, dtype=D, requires_grad=True)},
        {"normalizer": "sparsemax", "dropout": 0.2},
        {"normalizer": "entmax15", "pattern": "causal", "lengths": [40, 3]},
        {"score": Additive(4, 4, 3).double(), "weights": True},
        {"pattern": "per_head(window(3), causal)"},
    ],
    ids=lambda arguments: ", ".join(arguments) or "full",
)
def test_gradients_of_gradients_of_every_kernel(arguments: dict[str, Any]) -> None:
    """Those of kernels that form no matrix are the reference's; with penalties on gradients, as people train."""
    states = [torch.randn(2, 2, 40, 4, dtype=D, requires_grad=True) for _ in range(3)]
    leaves = [*states, *(x for x in arguments.values() if isinstance(x, Tensor) and x.requires_grad)]
    asked = {name: arguments[name] for name in ("weights", "lse") if name in arguments}
    given = {name: value for name, value in arguments.items() if name not in asked}
    result = []
    for kernel in (plan(*states, **given).kernel, Reference()):
        out = run_with_outputs(Plan(plan(*states, **given).request, kernel, ()), **asked)
        total = sum(x.sin().sum() for x in (out.context, out.weights, out.lse) if x is not None)
        grads = torch.autograd.grad(total, leaves, create_graph=True)
        result.append(torch.autograd.grad(sum(g.square().sum() for g in grads), leaves))
    torch.testing.assert_close(*result)


@pytest.mark.parametrize("lengths", [None, [7, 2]])
def test_gradients_of_gradients_over_several_reads(lengths: list[int] | None) -> None:
    module = Attention(Additive(4, 4, 3)).double()
    key, value, query = (torch.randn(2, 7, 4, dtype=D, requires_grad=True) for _ in range(3))
    leaves = [key, value, query, *module.parameters()]
    result = []
    for whole in (False, True):
        memory = module.remember(key, value, lengths)
        steps = [slice(None)] if whole else [slice(t, t + 1) for t in range(7)]
        total = sum(memory.read(query[:, step]).context.sin().sum() for step in steps)
        grads = torch.autograd.grad(total, leaves, create_graph=True)
        result.append(torch.autograd.grad(sum(g.square().sum() for g in grads), leaves))
    torch.testing.assert_close(*result)


def test_states_live_no_longer_for_a_second_derivative() -> None:
    """torch's attention finds them where autograd keeps them, until the graph is freed."""
    x = torch.randn(2, 2, 40, 8, requires_grad=True)
    query = x * 2
    seen = ref(query)
    loss = attention(query, x, x).context.sum()
    del query
    loss.backward()
    assert seen() is None and loss.grad_fn is not None


def test_nothing_made_without_numbers_stays_in_a_cache() -> None:
    torch.manual_seed(0)
    pattern = Blocks([[0, 1], [1], [2]], 3)
    module = MultiHead(8, 2, rotary=True, pattern=pattern)
    with FakeTensorMode(allow_non_fake_inputs=True), torch.no_grad():
        assert module(torch.randn(2, 9, 8)).context.shape == (2, 9, 8)
    torch.vmap(lambda x: module(x).context)(torch.randn(3, 2, 9, 8))
    with torch.device("meta"):
        MultiHead(8, 2, rotary=True, pattern=pattern)(torch.empty(2, 9, 8))
    out = module(torch.randn(2, 9, 8, requires_grad=True)).context
    out.sum().backward()
    assert type(out) is Tensor and out.isfinite().all()


def test_kernels_say_why_they_refuse() -> None:
    x = torch.empty(300, 4, device="meta")
    assert "not tiles: these tensors have shapes, but no numbers" in plan(x, x, x, pattern="window(3)").explain()
    y = torch.randn(2, 300, 4)
    printed: list[str] = []

    def note(x: Tensor) -> Tensor:
        printed.append(repr(plan(x, x, x, pattern="window(3)").refusals))
        return x

    torch.vmap(note)(y)
    assert "it runs inside a transform of torch.func" in printed[0]


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"dropout": 0.5, "generator": torch.Generator()}, "call torch.manual_seed before instead"),
        ({"pattern": "grid(2, 3).axial"}, "reads no text of a grid"),
    ],
)
def test_limits_of_compiling_are_named(arguments: dict[str, Any], message: str) -> None:
    run = torch.compile(lambda x: attention(x, x, x, **arguments).context, fullgraph=True, backend="eager")
    with pytest.raises(Exception, match=message if TORCH >= (2, 8) else None):  # before, Dynamo hides messages
        run(torch.randn(SIZE, 4))
