"""Dropout keeps its share, its mean, and its hands off in use."""

import pytest
import torch

from regard.models.dropout import Dropout


@pytest.mark.parametrize("chance", [0.1, 0.3, 0.5, 0.9])
def test_the_share_that_is_dropped_and_the_mean(chance: float) -> None:
    dropped = Dropout(chance)(torch.ones(500, 401))
    fraction = (dropped == 0).double().mean().item()
    assert fraction == pytest.approx(chance, abs=1 / 512 + 0.005)
    assert dropped.mean().item() == pytest.approx(1, abs=0.03)
    remaining = dropped[dropped != 0]
    assert (remaining == remaining[0]).all()
    assert remaining[0].item() == pytest.approx(1 / (1 - round(chance * 256) / 256))


def test_places_are_dropped_alike() -> None:
    """Eight features share a draw: none of them is favoured, and neighbours do not go together."""
    remaining = (Dropout(0.3)(torch.ones(20_000, 16)) != 0).double()
    assert (remaining.mean(0) - 0.7).abs().max() < 0.02
    together = torch.corrcoef(remaining.T) - torch.eye(16)
    assert together.abs().max() < 0.04


def test_any_chance_below_1() -> None:
    for chance in (0.001, 0.99, 0.998, 0.999):
        dropped = Dropout(chance)(torch.ones(4096))
        assert torch.isfinite(dropped).all()
        assert (dropped == 0).double().mean().item() == pytest.approx(chance, abs=0.01)


@pytest.mark.parametrize("shape", [(), (1,), (7,), (8,), (3, 5), (0, 4)])
def test_any_shape_and_dtype(shape: tuple[int, ...]) -> None:
    for dtype in (torch.float32, torch.float64, torch.bfloat16):
        dropped = Dropout(0.5)(torch.full(shape, 3.0, dtype=dtype))
        assert dropped.shape == shape and dropped.dtype == dtype
        assert ((dropped == 0) | (dropped == 6)).all()


def test_off_in_use_and_at_0() -> None:
    states = torch.randn(4, 5)
    assert Dropout(0.5).eval()(states) is states
    assert Dropout(0.0)(states) is states


def test_the_seed_fixes_the_mask() -> None:
    dropout, states = Dropout(0.5), torch.ones(100)
    torch.manual_seed(3)
    one, two = dropout(states), dropout(states)
    torch.manual_seed(3)
    assert torch.equal(dropout(states), one)
    assert not torch.equal(one, two)


def test_the_gradient_is_the_mask() -> None:
    states = torch.randn(100, requires_grad=True)
    dropped = Dropout(0.5)(states)
    dropped.sum().backward()
    torch.testing.assert_close(states.grad * states, dropped)


@pytest.mark.parametrize("chance", [-0.1, 1, 1.0, "0.1", True])
def test_a_chance_that_is_none(chance: object) -> None:
    with pytest.raises(ValueError, match=r"dropout: expected a number in \[0, 1\)"):
        Dropout(chance)  # type: ignore[arg-type]
