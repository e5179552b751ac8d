"""A product laid out once against torch's own."""

import pytest
import torch
from torch import nn

from regard.runtime.packed_product import PackedProduct


@pytest.mark.parametrize("precision", [torch.float32, torch.bfloat16])
@pytest.mark.parametrize("relu", [False, True])
@pytest.mark.parametrize("biased", [False, True])
@pytest.mark.parametrize("rows", [(0,), (1,), (3, 1), (2, 0, 5), (70, 2)])
def test_as_torchs_own(precision: torch.dtype, relu: bool, biased: bool, rows: tuple[int, ...]) -> None:
    layer, x = nn.Linear(24, 40, bias=biased), torch.randn(*rows, 24)
    with torch.no_grad(), torch.autocast("cpu", torch.bfloat16, enabled=precision is torch.bfloat16):
        product = PackedProduct.of(layer, relu)
        expected = torch.relu(layer(x)) if relu else layer(x)
    with torch.no_grad():
        result = product(x)
    assert result.dtype is expected.dtype is precision
    close = {"atol": 2e-2, "rtol": 2e-2} if precision is torch.bfloat16 else {"atol": 1e-5, "rtol": 1e-5}
    torch.testing.assert_close(result, expected, **close)


def test_gradients_flow_where_they_are_asked_for() -> None:
    layer, x = nn.Linear(3, 4), torch.randn(5, 3)
    PackedProduct.of(layer)(x).sum().backward()
    torch.testing.assert_close(layer.weight.grad, x.sum(0).expand(4, 3))


def test_other_numbers_are_left_to_torch() -> None:
    layer, x = nn.Linear(3, 4, dtype=torch.float64), torch.randn(5, 3, dtype=torch.float64)
    with torch.no_grad():
        torch.testing.assert_close(PackedProduct.of(layer)(x), layer(x))
