"""The loss against torch's own cross-entropy."""

from __future__ import annotations

import pytest
import torch
from torch import Tensor
from torch.nn.functional import cross_entropy, kl_div, linear

from regard.training.loss import CPU_ROWS, smoothed_loss


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
    first, second = (half.log_softmax(-1) for half in logits.chunk(2))
    both_ways = kl_div(second, first, log_target=True, reduction="none") + kl_div(
        first, second, log_target=True, reduction="none"
    )
    real = expected.chunk(2)[0] != 0
    divergence = (both_ways.sum(-1) * real).sum() / real.sum()
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
