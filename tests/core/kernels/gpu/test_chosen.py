"""What hard attention takes, in Triton's interpreter, against torch's own gather."""

import pytest
import torch
from torch import Tensor

pytest.importorskip("triton", minversion="3.4")  # older interpreters do not know the numpy of today
from regard.core.kernels.gpu.chosen import take


def expected(query: Tensor, key: Tensor, value: Tensor, chosen: Tensor, scale: float) -> tuple[Tensor, Tensor]:
    index, nothing = chosen.clamp(min=0)[..., None], (chosen < 0)[..., None]
    keys, values = (x.gather(1, index.expand(-1, -1, x.shape[-1])).masked_fill(nothing, 0) for x in (key, value))
    return values, (query * keys).sum(-1) * scale


@pytest.mark.parametrize("deterministic", [False, True])
@pytest.mark.parametrize("of", ["both", "context", "energy"])
def test_values_energies_and_gradients(monkeypatch: pytest.MonkeyPatch, of: str, deterministic: bool) -> None:
    """Keys that many choose, and queries that chose none; a gradient that nobody asked for is not there."""
    monkeypatch.setattr(torch, "are_deterministic_algorithms_enabled", lambda: deterministic)
    inputs = [torch.randn(3, size, width, requires_grad=True) for size, width in ((37, 24), (9, 24), (9, 20))]
    chosen = torch.randint(-1, 9, (3, 37))
    result, right = take(*inputs, chosen, 0.3), expected(*inputs, chosen, 0.3)
    torch.testing.assert_close(result, right)
    given = torch.randn_like(result[0]), torch.randn_like(result[1])
    some = {"both": (0, 1), "context": (0,), "energy": (1,)}[of]
    ours, theirs = (
        torch.autograd.grad([x[i] for i in some], inputs, [given[i] for i in some], allow_unused=True)
        for x in (result, right)
    )
    for mine, other in zip(ours, theirs, strict=True):
        assert (mine is None) == (other is None)
        if mine is not None:
            torch.testing.assert_close(mine, other)


def test_gradients_of_16_bits_are_summed_up_in_32() -> None:
    value = torch.zeros(1, 1, 16, dtype=torch.bfloat16, requires_grad=True)
    query, key = torch.zeros(1, 1000, 16, dtype=torch.bfloat16), torch.zeros(1, 1, 16, dtype=torch.bfloat16)
    context, _ = take(query, key, value, torch.zeros(1, 1000, dtype=torch.long), 1.0)
    (gradient,) = torch.autograd.grad(context.sum(), value)
    assert (gradient == 1000).all()


def test_nobody_asks() -> None:
    inputs = [torch.randn(2, size, 16, requires_grad=True) for size in (0, 5, 5)]
    context, energy = take(*inputs, torch.zeros(2, 0, dtype=torch.long), 1.0)
    assert context.shape == (2, 0, 16) and energy.shape == (2, 0)
    for gradient in torch.autograd.grad(context.sum() + energy.sum(), inputs):
        assert not gradient.any()


def test_what_needs_no_gradient_gets_none() -> None:
    query, key, value = (torch.randn(1, 5, 16, requires_grad=needed) for needed in (False, False, True))
    context, energy = take(query, key, value, torch.arange(5)[None], 1.0)
    (context.sum() + energy.sum()).backward()  # type: ignore[no-untyped-call]
    assert query.grad is None and key.grad is None
    torch.testing.assert_close(value.grad, torch.ones_like(value))
