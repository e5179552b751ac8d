"""What torch was told about float32 products, in its older and its newer way."""

from collections.abc import Iterator

import pytest
import torch

from regard import attention
from regard.runtime.precision import exact_products, float32_products

NEWER = hasattr(torch.backends, "fp32_precision")


@pytest.fixture(autouse=True)
def as_before() -> Iterator[None]:
    yield
    if NEWER:
        torch.backends.fp32_precision = torch.backends.cuda.matmul.fp32_precision = "none"
        torch.backends.cudnn.conv.fp32_precision = torch.backends.cudnn.rnn.fp32_precision = "tf32"
    torch.set_float32_matmul_precision("highest")
    torch.backends.cudnn.allow_tf32 = True
    if NEWER:
        torch.backends.cuda.matmul.fp32_precision = "none"


def test_the_older_way() -> None:
    assert exact_products()
    torch.set_float32_matmul_precision("medium")
    assert not exact_products()
    with float32_products(exact=True):
        assert exact_products() and not torch.backends.cudnn.allow_tf32
    assert torch.get_float32_matmul_precision() == "medium" and torch.backends.cudnn.allow_tf32


@pytest.mark.skipif(not NEWER, reason="torch has the older way alone")
@pytest.mark.parametrize("where", ["torch.backends", "torch.backends.cuda.matmul"])
def test_the_newer_way(where: str) -> None:
    exec(f"{where}.fp32_precision = 'tf32'")
    torch.backends.cudnn.conv.fp32_precision = "ieee"
    assert not exact_products()
    states = torch.randn(2, 600, 8)
    assert attention(states, states, states).context.isfinite().all()
    with float32_products(exact=True):
        assert exact_products()
    assert not exact_products()
    assert torch.backends.cudnn.conv.fp32_precision == "ieee"
    assert torch.backends.cudnn.rnn.fp32_precision == "tf32"
