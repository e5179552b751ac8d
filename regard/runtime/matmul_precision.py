"""How torch rounds the factors of float32 products on a GPU.

torch can be told in an older way (`set_float32_matmul_precision`, `allow_tf32`) and in a newer (`fp32_precision`).
Where the newer says something else, it will not be asked in the older.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import torch
from torch.backends import cudnn


def exact_products() -> bool:
    return _matmul_precision() == "highest"


@contextmanager
def products(exact: bool) -> Iterator[None]:
    """Meanwhile they are exact, or rounded to TF32's 10 bits."""
    matmul, others = _matmul_precision(), _cudnn_precision()
    torch.set_float32_matmul_precision("highest" if exact else "high")
    cudnn.allow_tf32 = not exact  # type: ignore[misc]
    try:
        yield
    finally:
        torch.set_float32_matmul_precision(matmul)
        for where, name, value in others:
            setattr(where, name, value)


def _matmul_precision() -> str:
    """ "highest", "high" or "medium" """
    try:
        return torch.get_float32_matmul_precision()
    except RuntimeError:
        return "high" if torch.backends.cuda.matmul.fp32_precision == "tf32" else "highest"


def _cudnn_precision() -> list[tuple[Any, str, Any]]:
    """(whose, name, value) of what it was told"""
    try:
        return [(cudnn, "allow_tf32", cudnn.allow_tf32)]
    except RuntimeError:
        parts = cudnn.conv, cudnn.rnn  # type: ignore[attr-defined]
        return [(where, "fp32_precision", where.fp32_precision) for where in parts]
