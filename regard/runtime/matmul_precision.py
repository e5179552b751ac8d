"""The precision of float32 matrix products on a GPU.

torch has an older API for it (`set_float32_matmul_precision`, `allow_tf32`) and a newer one (`fp32_precision`). Reading
the older one raises a RuntimeError if the newer one was set to something else.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import torch
from torch.backends import cudnn


def exact_products() -> bool:
    """Return whether float32 products are exact, without TF32."""
    return _matmul_precision() == "highest"


@contextmanager
def float32_products(exact: bool) -> Iterator[None]:
    """In this context, compute float32 products exactly, or from factors rounded to TF32's 10 bits."""
    matmul_before, cudnn_before = _matmul_precision(), _cudnn_precision()
    torch.set_float32_matmul_precision("highest" if exact else "high")
    cudnn.allow_tf32 = not exact  # type: ignore[misc]
    try:
        yield
    finally:
        torch.set_float32_matmul_precision(matmul_before)
        for backend, name, value in cudnn_before:
            setattr(backend, name, value)


def _matmul_precision() -> str:
    """Return "highest", "high" or "medium"."""
    try:
        return torch.get_float32_matmul_precision()
    except RuntimeError:
        return "high" if torch.backends.cuda.matmul.fp32_precision == "tf32" else "highest"


def _cudnn_precision() -> list[tuple[Any, str, Any]]:
    """Return (backend, attribute, value) of cuDNN's settings."""
    try:
        return [(cudnn, "allow_tf32", cudnn.allow_tf32)]
    except RuntimeError:
        backends = cudnn.conv, cudnn.rnn  # type: ignore[attr-defined]
        return [(backend, "fp32_precision", backend.fp32_precision) for backend in backends]
