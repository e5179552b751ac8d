"""Every kernel on a GPU against the definition in float64 from the same rounded numbers, forward and backward."""

from __future__ import annotations

import os
from dataclasses import replace

import pytest
import torch
from torch import Tensor

from regard import Entmax15, Hard, Softmax, Sparsemax
from regard.core.kernels.cpu.tile_kernels import Regrouped, Tiles, Union
from regard.core.kernels.dense import Dense
from regard.core.kernels.gpu.kernels import Classes, FusedAdditive, FusedDot, FusedHard
from regard.core.kernels.hard import DenseHard, HardChoice
from regard.core.kernels.kernel import Kernel
from regard.core.plan import HEADS
from regard.core.reference import reference
from regard.core.request import Request
from regard.core.result import Result
from tests.gpu.drawn import CUDA, Case, Range, draw, is_hard

CASES = int(os.environ.get("REGARD_TEST_CASES", "1000"))
"""of each kernel"""
TOLERANCE = {torch.float32: 5e-5, torch.float16: 6e-3, torch.bfloat16: 4e-2}
TF32 = 6e-3
SOFT = (Softmax(), Softmax(0.6))
FAMILY = (*SOFT, Sparsemax(), Entmax15())
HARD = (Hard(), Hard("gumbel", 0.7, sample=True), Hard("reinforce", sample=True), Hard("reinforce"))
PRODUCTS = ("dot", "scaled_dot", "general", "cosine")
FIRST, STEP = (int(os.environ.get(f"REGARD_TEST_{name}", default)) for name, default in (("FIRST", "0"), ("STEP", "1")))
"""the cases that this process runs of them"""
drawn_cases = pytest.mark.parametrize("number", range(FIRST, CASES, STEP))


def check(kernel: Kernel, what: Range, number: int) -> None:
    case = draw(kernel, what, number)
    torch.backends.cuda.matmul.allow_tf32 = case.tf32
    output, expected = kernel.run(case.request), reference(case.exact)
    tolerance = TF32 if case.tf32 else TOLERANCE[case.request.value.dtype]
    if is_hard(case.request):
        assert output.chosen is not None and expected.chosen is not None
        if not torch.equal(output.chosen, expected.chosen):  # nearly equal energies may fall either way
            _check_choice(case, output.chosen, expected.chosen, tolerance)
            return
    outputs, rights = [output.context], [expected.context]
    if output.log_probability is not None and expected.log_probability is not None:
        outputs, rights = [*outputs, output.log_probability], [*rights, expected.log_probability]
    for mine, right in zip(outputs, rights, strict=True):
        _near(mine, right, tolerance, f"output of {case.text}")
    if isinstance(case.request.normalizer, Sparsemax) and _rounding_moves_the_support(case, expected):
        return
    mine, right = _gradients(outputs, case.leaves), _gradients(rights, case.exact_leaves)
    rounding = _rounding_errors(case, rights[0])
    for index in range(len(mine)):
        what = f"gradient {index} of {case.text}"
        _near(mine[index], right[index], tolerance, what, tolerance * rounding[index])
        if index in case.padding:
            assert not mine[index][case.padding[index]].any(), f"padding got a gradient: {case.text}"


def _rounding_moves_the_support(case: Case, exact: Result) -> bool:
    """Where a key's weight becomes 0, the gradient of sparsemax jumps."""
    rounded = reference(case.request).weights
    assert rounded is not None and exact.weights is not None
    return not torch.equal(rounded > 0, exact.weights > 0)


def _rounding_errors(case: Case, context: Tensor) -> list[float]:
    """Return for each leaf the norm of its gradient's error if the terms of ∂e have relative errors of 1.

    ∂e = p^(2−α) ⊙ (∂p − δ), δ the mean of ∂p weighted by p^(2−α), for α-entmax (softmax: α = 1, sparsemax: 2). ∂p and δ
    may nearly cancel, their errors do not: they are as large as p^(2−α) ⊙ (|∂p| + |δ|), with random signs.
    """
    request = case.exact
    if is_hard(request):
        request = replace(request, normalizer=Softmax(getattr(request.normalizer, "temperature", 1.0)))
    weights = reference(request).weights
    assert weights is not None
    power = {Sparsemax: 0.0, Entmax15: 0.5}.get(type(request.normalizer), 1.0)
    slope = torch.where(weights > 0, weights.detach() ** power, 0)
    weight_gradient = _output_gradients([context])[0].double() @ request.value.detach().transpose(-1, -2)
    delta = (slope * weight_gradient).sum(-1, keepdim=True) / slope.sum(-1, keepdim=True).clamp(min=1e-30)
    terms = slope * (weight_gradient.abs() + delta.abs()) / getattr(request.normalizer, "temperature", 1.0)
    signs = torch.randn(terms.shape, device=CUDA, generator=torch.Generator(CUDA).manual_seed(3)).sign()
    energies = _energies(request).expand(terms.shape)
    total = torch.where(weights > 0, energies * terms * signs, 0).sum()
    errors = torch.autograd.grad(total, case.exact_leaves, allow_unused=True, retain_graph=True)
    return [0.0 if each is None else float(each.nan_to_num().norm()) for each in errors]


def _energies(request: Request) -> Tensor:
    energies = request.score.energies(request.query, request.key)
    return energies if request.bias is None else energies + request.bias


def _output_gradients(outputs: list[Tensor]) -> list[Tensor]:
    generator = torch.Generator(CUDA).manual_seed(2)
    return [torch.randn(each.shape, device=CUDA, generator=generator) for each in outputs]


def _gradients(outputs: list[Tensor], leaves: list[Tensor]) -> list[Tensor]:
    total = torch.zeros((), device=CUDA, dtype=torch.float64)
    for each, gradient in zip(outputs, _output_gradients(outputs), strict=True):
        total = total + (each.masked_fill(each == -torch.inf, 0).double() * gradient).sum()
    if not total.requires_grad:
        return [torch.zeros_like(leaf) for leaf in leaves]
    gradients = torch.autograd.grad(total, leaves, allow_unused=True, retain_graph=True)
    return [torch.zeros_like(leaf) if each is None else each for leaf, each in zip(leaves, gradients, strict=True)]


def _near(mine: Tensor, right: Tensor, tolerance: float, what: str, rounding: float = 0.0) -> None:
    """Assert that ‖mine − right‖ is small beside ‖right‖, or beside that of numbers around 1, or is rounding alone."""
    mine, right = mine.double(), right.double()
    same = mine == right  # −inf among them
    error = torch.where(same, 0, mine - right).norm()
    bound = tolerance * (torch.where(same, 0, right).norm() + right.numel() ** 0.5) + rounding
    assert bool(error <= bound), f"error {float(error):.3g}, at most {float(bound):.3g}: {what}"


def _check_choice(case: Case, chosen: Tensor, right: Tensor, tolerance: float) -> None:
    """Where another key was chosen, its energy is nearly as high."""
    assert ((chosen < 0) == (right < 0)).all(), case.text
    request = case.exact
    if request.normalizer.sample:  # type: ignore[union-attr]
        return  # noise decides: other tests see to it that it is the same
    energies = _energies(request).expand(*request.leading, request.queries, request.keys)
    mine, best = (energies.gather(-1, each.clamp(min=0)[..., None])[..., 0] for each in (chosen, right))
    far = (best - mine > 40 * tolerance) & (right >= 0)
    assert not far.any(), f"a key of lower energy was chosen: {case.text}"


@drawn_cases
def test_fused_dot(number: int) -> None:
    check(FusedDot(), Range(PRODUCTS, features=(8, 24, 64, 80, 128), by_pair=False), number)


@drawn_cases
def test_fused_additive(number: int) -> None:
    check(FusedAdditive(), Range(("additive",), features=(8, 24, 64, 80, 256)), number)


@drawn_cases
def test_fused_hard(number: int) -> None:
    check(FusedHard(), Range(PRODUCTS, normalizers=HARD, features=(8, 24, 64, 128), by_pair=False), number)


@drawn_cases
def test_torch_dense(number: int) -> None:
    check(Dense(), Range(PRODUCTS), number)


@drawn_cases
def test_torch_classes(number: int) -> None:
    check(Classes(), Range(PRODUCTS, ("stride",), padding=False), number)


@drawn_cases
def test_torch_dense_hard(number: int) -> None:
    check(DenseHard(), Range(PRODUCTS, normalizers=HARD), number)


@drawn_cases
def test_anywhere_tiles(number: int) -> None:
    check(Tiles(), Range(normalizers=FAMILY, dropout=True), number)


@drawn_cases
def test_anywhere_regrouped(number: int) -> None:
    check(Regrouped(), Range(patterns=("strided",), normalizers=FAMILY, by_pair=False, dropout=True), number)


@drawn_cases
def test_anywhere_union(number: int) -> None:
    check(Union(), Range(patterns=("union",), by_pair=False, dropout=True), number)


@drawn_cases
def test_anywhere_hard(number: int) -> None:
    check(HardChoice(), Range(normalizers=HARD), number)


@drawn_cases
def test_anywhere_heads(number: int) -> None:
    check(HEADS, Range(by_head=True, features=(8, 64, 80), normalizers=(*FAMILY, *HARD)), number)
