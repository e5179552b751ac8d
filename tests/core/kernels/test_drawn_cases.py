"""Every kernel against the reference, forward and backward, over a thousand drawn cases each."""

import pytest
import torch
from hypothesis import HealthCheck, assume, given, settings
from torch import Tensor

from regard import Entmax15, Hard, Softmax, Sparsemax
from regard.core.kernels import dense
from regard.core.kernels.cpu.tile_kernels import Regrouped, Tiles, Union
from regard.core.kernels.dense import Dense, SmallDense
from regard.core.kernels.hard import DenseHard, HardChoice
from regard.core.kernels.kernel import Kernel
from regard.core.observe import run_with_outputs
from regard.core.plan import HEADS, Plan
from regard.core.reference import log_sum_exp, reference
from tests.core.drawn import NORMALIZERS, Case, cases, strided, unions

many = settings(
    max_examples=1000,
    deadline=None,
    suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.filter_too_much, HealthCheck.too_slow],
)
SOFT = [Softmax(), Softmax(0.6)]
FAMILY = [*SOFT, Sparsemax(), Entmax15()]
HARD = [n for n in NORMALIZERS if isinstance(n, Hard)]

tiled = pytest.mark.usefixtures("small_tiles")


def gradients(case: Case, outputs: list[Tensor]) -> dict[str, Tensor]:
    generator = torch.Generator().manual_seed(2)
    total = sum(
        (out.masked_fill(out == -torch.inf, 0) * torch.randn(out.shape, generator=generator, dtype=out.dtype)).sum()
        for out in outputs
    )
    result: dict[str, Tensor] = {}
    if isinstance(total, Tensor) and total.requires_grad:
        grads = torch.autograd.grad(total, list(case.leaves.values()), allow_unused=True, retain_graph=True)
        result = {name: grad for name, grad in zip(case.leaves, grads, strict=True) if grad is not None}
    return result


def same(mine: Tensor, other: Tensor) -> None:
    torch.testing.assert_close(mine, other, rtol=1e-8, atol=1e-8)


def check(kernel: Kernel, case: Case) -> None:
    """Context, and whatever else is asked for, with all gradients."""
    request = case.request
    assume(kernel.refuse(request) is None)
    soft = isinstance(request.normalizer, Softmax)
    plain = kernel.run(request)
    result = run_with_outputs(Plan(request, kernel, ()), weights=True, top=3, lse=soft)
    expected = reference(request)
    assert result.weights is not None and expected.weights is not None and result.top is not None
    assert torch.equal(result.context, plain.context), "asking for more changed the context"
    same(result.context, expected.context)
    same(result.weights, expected.weights)
    mine, theirs = [result.context, result.weights], [expected.context, expected.weights]
    if soft:
        lse = log_sum_exp(request, request.score.energies(request.query, request.key))
        assert result.lse is not None
        same(result.lse, lse)
        mine, theirs = [*mine, result.lse], [*theirs, lse]
    if expected.chosen is not None:
        assert result.chosen is not None and result.log_probability is not None
        assert expected.log_probability is not None
        assert torch.equal(result.chosen, expected.chosen)
        same(result.log_probability, expected.log_probability)
        mine, theirs = [*mine, result.log_probability], [*theirs, expected.log_probability]
    check_top(kernel, case, expected.weights)
    expected_gradients = gradients(case, theirs)
    for name, grad in gradients(case, mine).items():
        assert torch.isfinite(grad).all(), name
        same(grad, expected_gradients.get(name, torch.zeros_like(grad)))
        if name in case.padding:
            assert (grad[case.padding[name]] == 0).all(), "padding got a gradient"


def check_top(kernel: Kernel, case: Case, weights: Tensor) -> None:
    """The largest three without the matrix, against sorting the matrix."""
    top = run_with_outputs(Plan(case.request, kernel, ()), top=3).top
    assert top is not None
    ordered, positions = weights.detach().sort(dim=-1, descending=True, stable=True)
    filled = torch.nn.functional.pad(ordered, (0, 3))[..., :3]
    same(top.weights, filled)
    used = filled > 1e-9
    distinct = (filled.diff(dim=-1).abs() > 1e-9).all(-1, keepdim=True)  # near ties may fall either way
    places = torch.nn.functional.pad(positions, (0, 3), value=-1)[..., :3]
    assert torch.equal(top.positions[used & distinct], places[used & distinct])
    assert (top.positions[top.weights == 0] == -1).all()


@given(cases(SOFT))
@many
@pytest.mark.parametrize("kernel", [Dense(), SmallDense()], ids=["by torch", "with weights"])
def test_dense(kernel: Kernel, case: Case) -> None:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(dense, "MAX_PAIRS", 1 << 20)
        check(kernel, case)


@given(cases(FAMILY))
@many
@tiled
def test_tiles(case: Case) -> None:
    check(Tiles(), case)


@given(cases(FAMILY, strided, by_pair=False))
@many
@tiled
def test_regrouped(case: Case) -> None:
    check(Regrouped(), case)


@given(cases(SOFT, unions, by_pair=False))
@many
@tiled
def test_union(case: Case) -> None:
    check(Union(), case)


@given(cases(HARD))
@many
@tiled
def test_hard(case: Case) -> None:
    check(HardChoice(), case)


@given(cases(HARD))
@many
def test_dense_hard(case: Case) -> None:
    check(DenseHard(), case)


@given(cases(by_head=True))
@many
@tiled
def test_heads(case: Case) -> None:
    check(HEADS, case)
