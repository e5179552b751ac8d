"""W x + b for many x, one after another, as a search needs them: W is laid out once.

On the CPU a product of few rows spends much of its time on bringing W into the order that the processor reads. oneDNN
keeps W in that order for whoever asks (torch itself does so where it compiles). What is asked for here is checked for
first, and without it the product is torch's own.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import lru_cache
from typing import cast

import torch
from torch import Tensor, nn
from torch.nn.functional import linear

from regard.runtime.autocast import autocast_dtype

ROWS = 64
"""of x, that W is laid out for; any number may come"""


class Product:
    """x [..., in] → W x + b [..., out], in the numbers that autocast asks for where the product is made.

    With `relu`, max(0, W x + b).
    """

    def __init__(self, weight: Tensor, bias: Tensor | None = None, relu: bool = False) -> None:
        self._given, self._dtype = (weight, bias), product_dtype(weight)
        self._with_gradients = torch.is_grad_enabled()
        self._weight, self._bias = self._cast()
        self._relu = relu
        self._laid_out = None
        if weight.device.type == "cpu" and not self._with_gradients and _lays_out(self._dtype):
            self._laid_out = torch.ops.mkldnn._reorder_linear_weight(self._weight.contiguous(), ROWS)

    def _cast(self) -> tuple[Tensor, Tensor | None]:
        weight, bias = self._given
        return weight.to(self._dtype), None if bias is None else bias.to(self._dtype)

    @classmethod
    def of(cls, layer: nn.Linear, relu: bool = False) -> Product:
        return cls(layer.weight, layer.bias, relu)

    def __call__(self, x: Tensor) -> Tensor:
        x = x.to(self._dtype)
        weight, bias = self._weight, self._bias
        if torch.is_grad_enabled() and not self._with_gradients:  # what was made without them has none to give
            weight, bias = self._cast()
        elif self._laid_out is not None and x.numel() > 0:
            after = "relu" if self._relu else "none"
            return _laid_out_product()(x, self._laid_out, bias, after, [], "")
        product = linear(x, weight, bias)
        return torch.relu(product) if self._relu else product


def product_dtype(weight: Tensor) -> torch.dtype:
    """What autocast asks for now; otherwise the weight's own."""
    return autocast_dtype(weight.device) or weight.dtype


def _laid_out_product() -> Callable[..., Tensor]:
    return cast(Callable[..., Tensor], torch.ops.mkldnn._linear_pointwise)


@lru_cache(maxsize=8)
def _lays_out(dtype: torch.dtype) -> bool:
    """Can this torch multiply by a W that is laid out, and is the result right?"""
    if dtype not in (torch.float32, torch.bfloat16) or not torch.backends.mkldnn.is_available():
        return False
    x, weight, bias = (torch.linspace(-1, 1, size, device="cpu").view(shape).to(dtype) for size, shape in _TRIAL)
    try:
        laid_out = torch.ops.mkldnn._reorder_linear_weight(weight, ROWS)
        found = _laid_out_product()(x, laid_out, bias, "relu", [], "")
    except (AttributeError, RuntimeError, TypeError, NotImplementedError):
        return False
    return torch.allclose(found.float(), torch.relu(linear(x, weight, bias)).float(), atol=0.05)


_TRIAL = ((48, (3, 16)), (128, (8, 16)), (8, (8,)))
"""size and shape of x, W, b"""
