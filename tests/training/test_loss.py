"""The loss against torch's own cross-entropy."""

from __future__ import annotations

import pytest
import torch
from torch import Tensor
from torch.nn.functional import cross_entropy, linear, one_hot

from regard.training.loss import CPU_ROWS, smoothed_loss
from tests.training.loss_oracle import drawn_teacher, pair_divergences, teacher_loss


def drawn(rows: int, size: int = 23, features: int = 7, dtype: torch.dtype = torch.float64) -> list[Tensor]:
    """output, weight, bias; with logits of a few units, so that probabilities differ."""
    shapes = ((rows, features), (size, features), (size,))
    return [(2 * torch.randn(shape, dtype=dtype)).requires_grad_() for shape in shapes]


def both(
    tensors: list[Tensor], expected: Tensor, smoothing: float, with_bias: bool = True, upstream: float = 1.0
) -> tuple[tuple[Tensor, Tensor, list[Tensor]], tuple[Tensor, Tensor, list[Tensor]]]:
    """(loss, of each row, gradients) of ours and of torch's."""
    output, weight, bias = tensors
    wanted = tensors if with_bias else tensors[:2]
    given = bias if with_bias else None
    ours, each = smoothed_loss(output, weight, given, expected, smoothing)
    result = torch.autograd.grad(ours * upstream, wanted)
    rows = cross_entropy(linear(output, weight, given), expected, label_smoothing=smoothing, reduction="none")
    right = torch.autograd.grad(rows.mean() * upstream, wanted)
    return (ours, each, list(result)), (rows.mean(), rows, list(right))


@pytest.mark.parametrize("smoothing", [0.0, 0.1, 0.7])
@pytest.mark.parametrize("rows", [1, CPU_ROWS - 1, CPU_ROWS, CPU_ROWS + 1, 3 * CPU_ROWS + 5])
@pytest.mark.parametrize("with_bias", [True, False])
def test_value_rows_and_gradients_are_those_of_cross_entropy(smoothing: float, rows: int, with_bias: bool) -> None:
    tensors = drawn(rows)
    expected = torch.randint(0, 23, (rows,))
    (ours, each, result), (loss, by_row, right) = both(tensors, expected, smoothing, with_bias)
    torch.testing.assert_close(ours, loss, rtol=1e-12, atol=1e-12)
    torch.testing.assert_close(each, by_row, rtol=1e-12, atol=1e-12)
    for mine, theirs in zip(result, right, strict=True):
        torch.testing.assert_close(mine, theirs, rtol=1e-10, atol=1e-12)


@pytest.mark.parametrize("smoothing", [0.0, 0.1])
@pytest.mark.parametrize("padding", [0, 3])
def test_padding_counts_nothing(smoothing: float, padding: int) -> None:
    tensors = drawn(2 * CPU_ROWS + 5)
    expected = torch.randint(0, 5, (2 * CPU_ROWS + 5,))
    ours, each = smoothed_loss(*tensors, expected, smoothing, padding)
    result = torch.autograd.grad(ours, tensors)
    logits = linear(*tensors)
    loss = cross_entropy(logits, expected, ignore_index=padding, label_smoothing=smoothing)
    by_row = cross_entropy(logits, expected, ignore_index=padding, label_smoothing=smoothing, reduction="none")
    torch.testing.assert_close(ours, loss, rtol=1e-12, atol=1e-12)
    torch.testing.assert_close(each, by_row, rtol=1e-12, atol=1e-12)
    for mine, theirs in zip(result, torch.autograd.grad(loss, tensors), strict=True):
        torch.testing.assert_close(mine, theirs, rtol=1e-10, atol=1e-12)


def test_nothing_but_padding() -> None:
    tensors = drawn(4)
    loss, each = smoothed_loss(*tensors, torch.zeros(4, dtype=torch.long), 0.1, 0)
    assert loss == 0 and not each.any()
    assert not any(x.any() for x in torch.autograd.grad(loss, tensors))


@pytest.mark.parametrize("upstream", [0.0, -2.5, 1e-3, 4.0])
def test_an_upstream_gradient_scales_every_gradient(upstream: float) -> None:
    expected = torch.randint(0, 23, (CPU_ROWS + 3,))
    (_, _, result), (_, _, right) = both(drawn(CPU_ROWS + 3), expected, 0.1, upstream=upstream)
    for mine, theirs in zip(result, right, strict=True):
        torch.testing.assert_close(mine, theirs, rtol=1e-10, atol=1e-12)


def test_the_loss_of_a_row_carries_no_gradient() -> None:
    loss, each = smoothed_loss(*drawn(5), torch.randint(0, 23, (5,)), 0.1)
    assert loss.requires_grad and not each.requires_grad


def test_large_logits_overflow_nothing() -> None:
    output, weight, bias = drawn(9, dtype=torch.float32)
    tensors = [(300 * output).detach().requires_grad_(), weight, bias]
    (ours, each, result), (loss, by_row, right) = both(tensors, torch.randint(0, 23, (9,)), 0.1)
    assert loss.item() > 100
    torch.testing.assert_close(ours, loss, rtol=1e-5, atol=1e-5)
    torch.testing.assert_close(each, by_row, rtol=1e-5, atol=1e-4)
    for mine, theirs in zip(result, right, strict=True):
        torch.testing.assert_close(mine, theirs, rtol=1e-4, atol=1e-4)


@pytest.mark.parametrize("smoothing", [0.0, 0.1])
def test_under_autocast_it_is_as_near_as_bfloat16_is(smoothing: float) -> None:
    """The oracle is cross-entropy over the bfloat16 product, in float32: what autocast computes."""
    output, weight, bias = drawn(2 * CPU_ROWS + 7, size=101, features=32, dtype=torch.float32)
    output = (output / 4).detach().requires_grad_()
    expected = torch.randint(0, 101, (len(output),))
    with torch.autocast("cpu", torch.bfloat16):
        ours, each = smoothed_loss(output, weight, bias, expected, smoothing)
    assert ours.dtype == each.dtype == torch.float32
    result = torch.autograd.grad(ours, [output, weight, bias])
    exact = cross_entropy(linear(output, weight, bias), expected, label_smoothing=smoothing)
    right = torch.autograd.grad(exact, [output, weight, bias])
    assert ours.item() == pytest.approx(exact.item(), rel=1e-2)
    for mine, theirs, given in zip(result, right, (output, weight, bias), strict=True):
        assert mine.dtype == given.dtype and mine.shape == given.shape
        assert float((mine - theirs).norm() / theirs.norm()) < 2e-2


def test_gradients_reach_what_lies_before_and_are_those_of_torch() -> None:
    before = torch.randn(20, 5, dtype=torch.float64, requires_grad=True)
    maps = torch.randn(7, 5, dtype=torch.float64)
    _, weight, bias = drawn(1)
    expected = torch.randint(0, 23, (20,))
    loss, _ = smoothed_loss(torch.tanh(before @ maps.T), weight, bias, expected, 0.1)
    right = cross_entropy(linear(torch.tanh(before @ maps.T), weight, bias), expected, label_smoothing=0.1)
    (mine,) = torch.autograd.grad(3 * loss, [before])
    (theirs,) = torch.autograd.grad(3 * right, [before])
    torch.testing.assert_close(mine, theirs, rtol=1e-10, atol=1e-12)


def torch_consistency(
    tensors: list[Tensor], expected: Tensor, smoothing: float, weight: float
) -> tuple[Tensor, Tensor]:
    """(R-Drop's loss, halved; the cross-entropy of each row) by torch's own functions; PAD is 0."""
    logits = linear(*tensors)
    rows = cross_entropy(logits, expected, label_smoothing=smoothing, reduction="none", ignore_index=0)
    real = expected.chunk(2)[0] != 0
    divergence = (pair_divergences(logits) * real).sum() / real.sum()
    return rows.sum() / (expected != 0).sum() + 0.5 * weight * 0.5 * divergence, rows


@pytest.mark.parametrize("smoothing", [0.0, 0.1])
@pytest.mark.parametrize("pairs", [1, CPU_ROWS // 2, CPU_ROWS + 5])
@pytest.mark.parametrize("weight", [0.5, 5.0])
@pytest.mark.parametrize("lowest", [0, 1])  # 0: some rows are padding
def test_consistency_is_that_of_two_divergences(smoothing: float, pairs: int, weight: float, lowest: int) -> None:
    tensors = drawn(2 * pairs)
    expected = torch.randint(lowest, 5, (pairs,)).repeat(2)
    expected[0] = expected[pairs] = 1
    ours, each = smoothed_loss(*tensors, expected, smoothing, None if lowest else 0, consistency=weight)
    right, rows = torch_consistency(tensors, expected, smoothing, weight)
    torch.testing.assert_close(ours, right, rtol=1e-12, atol=1e-12)
    torch.testing.assert_close(each, rows, rtol=1e-12, atol=1e-12)
    for mine, theirs in zip(torch.autograd.grad(ours, tensors), torch.autograd.grad(right, tensors), strict=True):
        torch.testing.assert_close(mine, theirs, rtol=1e-9, atol=1e-12)


def test_equal_passes_have_no_divergence() -> None:
    output, weight, bias = drawn(8)
    expected = torch.randint(0, 23, (8,))
    alone, _ = smoothed_loss(output, weight, bias, expected, 0.1)
    twice, _ = smoothed_loss(output.repeat(2, 1), weight, bias, expected.repeat(2), 0.1, consistency=5.0)
    torch.testing.assert_close(alone, twice)


def drawn_pairs(lowest: int, consistency: float, pairs: int = CPU_ROWS // 2 + 3) -> tuple[Tensor, Tensor]:
    """expected [2 · pairs], of which some are padding if the lowest is 0, and a teacher, senseless for padding."""
    expected = torch.randint(lowest, 5, (pairs,)).repeat(2)
    teacher = drawn_teacher(pairs if consistency else 2 * pairs, 23)
    return expected, torch.where(expected[: len(teacher), None] == 0, 1e3 * torch.randn_like(teacher), teacher)


@pytest.mark.parametrize("teacher_weight", [0.3, 1.0])
@pytest.mark.parametrize("consistency", [0.0, 5.0])
@pytest.mark.parametrize("smoothing", [0.0, 0.1])
@pytest.mark.parametrize("lowest", [0, 1])  # 0: some rows are padding
@pytest.mark.parametrize("with_bias", [True, False])
@pytest.mark.parametrize("dtype", [torch.float64, torch.float32, torch.bfloat16])
def test_a_teacher_is_mixed_into_the_target(
    teacher_weight: float, consistency: float, smoothing: float, lowest: int, with_bias: bool, dtype: torch.dtype
) -> None:
    expected, teacher = drawn_pairs(lowest, consistency)
    teacher = teacher.to(dtype)
    tensors = drawn(len(expected))[: 3 if with_bias else 2]
    output, weight, bias = (*tensors, None)[:3]
    padding = None if lowest else 0
    ours, each = smoothed_loss(output, weight, bias, expected, smoothing, padding, consistency, teacher, teacher_weight)
    right, rows = teacher_loss(linear(*tensors), expected, smoothing, consistency, teacher, teacher_weight)
    torch.testing.assert_close(ours, right, rtol=1e-12, atol=1e-12)
    torch.testing.assert_close(each, rows, rtol=1e-12, atol=1e-12)
    for mine, theirs in zip(torch.autograd.grad(ours, tensors), torch.autograd.grad(right, tensors), strict=True):
        torch.testing.assert_close(mine, theirs, rtol=1e-9, atol=1e-12)


@pytest.mark.parametrize("consistency", [0.0, 5.0])
def test_a_teacher_of_weight_zero_changes_no_bit(consistency: float) -> None:
    expected, teacher = drawn_pairs(0, consistency)
    tensors = drawn(len(expected), dtype=torch.float32)
    with_teacher = smoothed_loss(*tensors, expected, 0.1, 0, consistency, teacher, 0.0)
    without = smoothed_loss(*tensors, expected, 0.1, 0, consistency)
    both = [[*result, *torch.autograd.grad(result[0], tensors)] for result in (with_teacher, without)]
    assert all(torch.equal(mine, theirs) for mine, theirs in zip(*both, strict=True))


def test_a_certain_teacher_is_the_expected_token() -> None:
    tensors, expected = drawn(8), torch.randint(0, 23, (8,))
    ours, _ = smoothed_loss(*tensors, torch.zeros_like(expected), 0.1, None, 0.0, one_hot(expected, 23).float(), 1.0)
    torch.testing.assert_close(ours, smoothed_loss(*tensors, expected, 0.0)[0])


def test_a_teacher_gets_no_gradient() -> None:
    tensors, teacher = drawn(8), drawn_teacher(8, 23).requires_grad_()
    loss, _ = smoothed_loss(*tensors, torch.randint(0, 23, (8,)), 0.1, None, 0.0, teacher, 0.5)
    loss.backward()  # type: ignore[no-untyped-call]
    assert teacher.grad is None and all(each.grad is not None for each in tensors)


@pytest.mark.parametrize("consistency", [0.0, 5.0])
def test_a_teacher_of_another_shape_is_refused(consistency: float) -> None:
    given, wanted = (8, 4) if consistency else (4, 8)
    with pytest.raises(ValueError, match=rf"teacher has shape \({given}, 23\); expected \({wanted}, 23\)"):
        smoothed_loss(*drawn(8), torch.randint(0, 23, (8,)), 0.1, None, consistency, drawn_teacher(given, 23), 0.5)
