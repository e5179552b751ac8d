"""W x + b for many x, one after another, as in a search: W is packed once.

On the CPU, a product of few rows spends much of its time on reordering W into the memory layout of the kernel. oneDNN
can pack W in that layout in advance (torch.compile uses this, too). The operators for it are private, so they are
tested first; where they are missing or wrong, the product is `torch.nn.functional.linear`.
"""

from __future__ import annotations

from typing import cast

import torch
from torch import Tensor, nn
from torch.nn.functional import linear

from regard.runtime.caches import cached
from regard.runtime.precision import autocast_dtype

PACKED_FOR_ROWS = 64  # the number of rows of x for which W is packed; the actual number may differ


class PackedProduct:
    """Maps x [..., in] to W x + b [..., out], in the dtype of autocast at construction.

    With `relu`, the result is max(0, W x + b).
    """

    def __init__(self, weight: Tensor, bias: Tensor | None = None, relu: bool = False) -> None:
        self._parameters, self._dtype = (weight, bias), product_dtype(weight)
        self._with_gradients = torch.is_grad_enabled()
        self._weight, self._bias = self._cast()
        self._relu = relu
        self._packed_weight = None
        if weight.device.type == "cpu" and not self._with_gradients and _can_pack(self._dtype):
            self._packed_weight = torch.ops.mkldnn._reorder_linear_weight(self._weight.contiguous(), PACKED_FOR_ROWS)

    def _cast(self) -> tuple[Tensor, Tensor | None]:
        """Return weight and bias in the dtype of the product."""
        weight, bias = self._parameters
        return weight.to(self._dtype), None if bias is None else bias.to(self._dtype)

    @classmethod
    def of(cls, layer: nn.Linear, relu: bool = False) -> PackedProduct:
        """Return the product of a linear layer."""
        return cls(layer.weight, layer.bias, relu)

    def __call__(self, x: Tensor) -> Tensor:
        x = x.to(self._dtype)
        weight, bias = self._weight, self._bias
        if torch.is_grad_enabled() and not self._with_gradients:  # the cast made without gradients is detached
            weight, bias = self._cast()
        elif self._packed_weight is not None and x.numel() > 0:
            return _packed_linear(x, self._packed_weight, bias, self._relu)
        product = linear(x, weight, bias)
        return torch.relu(product) if self._relu else product


def product_dtype(weight: Tensor) -> torch.dtype:
    """Return the dtype of autocast or, if it is off, that of the weight."""
    return autocast_dtype(weight.device) or weight.dtype


def _packed_linear(x: Tensor, weight: Tensor, bias: Tensor | None, relu: bool) -> Tensor:
    return cast(Tensor, torch.ops.mkldnn._linear_pointwise(x, weight, bias, "relu" if relu else "none", [], ""))


@cached(maxsize=8, reason="each product of a model asks, and the test takes a tenth of a millisecond")
def _can_pack(dtype: torch.dtype) -> bool:
    """Return whether this torch can multiply by a packed W, and the result is right."""
    if dtype not in (torch.float32, torch.bfloat16) or not torch.backends.mkldnn.is_available():
        return False
    x, weight, bias = (torch.linspace(-1, 1, n, device="cpu").to(dtype) for n in (48, 128, 8))
    x, weight = x.view(3, 16), weight.view(8, 16)
    try:
        packed = torch.ops.mkldnn._reorder_linear_weight(weight, PACKED_FOR_ROWS)
        product = _packed_linear(x, packed, bias, relu=True)
    except (AttributeError, RuntimeError, TypeError, NotImplementedError):
        return False
    return torch.allclose(product.float(), torch.relu(linear(x, weight, bias)).float(), atol=0.05)
