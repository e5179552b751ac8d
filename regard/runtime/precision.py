"""The device and the precision of computations.

torch has an older API for the precision of float32 products on a GPU (`set_float32_matmul_precision`, `allow_tf32`) and
a newer one (`fp32_precision`). Reading the older one raises a RuntimeError if the newer one was set to something else.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator
from contextlib import AbstractContextManager, contextmanager, nullcontext
from pathlib import Path
from typing import Any, Literal

import torch
from torch.backends import cudnn

Precision = Literal["auto", "fp32", "bf16"]


def check_finite(values: Iterable[float]) -> None:
    """Raise a ValueError if values that a model computed are NaN or infinite: finite weights can be so large."""
    if not all(map(math.isfinite, values)):
        raise ValueError(
            "the model computes NaN or infinite values: its weights are damaged, or too large for this precision"
        )


def autocast(precision: Precision, device: torch.device) -> AbstractContextManager[object]:
    """Return the autocast context: bfloat16 for `bf16`, and for `auto` on a CPU with bfloat16 instructions.

    On a GPU, `auto` means float32 with TF32 products (`tf32_products`).
    """
    if precision not in ("auto", "fp32", "bf16"):
        raise ValueError(f"precision: expected auto, fp32 or bf16, got {precision!r}")
    use_bfloat16 = precision == "bf16" or (precision == "auto" and device.type == "cpu" and cpu_has_bfloat16())
    return torch.autocast(device.type, torch.bfloat16, enabled=use_bfloat16)


def autocast_dtype(device: torch.device) -> torch.dtype | None:
    """Return the dtype in which autocast computes matrix products; None: autocast is off."""
    kind = device.type
    return torch.get_autocast_dtype(kind) if kind != "meta" and torch.is_autocast_enabled(kind) else None


def without_autocast(device: torch.device) -> AbstractContextManager[object]:
    """Return a context in which autocast is off, so that products keep the dtype of their factors."""
    return nullcontext() if device.type == "meta" else torch.autocast(device.type, enabled=False)


def tf32_products(precision: Precision, device: torch.device) -> AbstractContextManager[None]:
    """Return a context for training on a GPU: TF32 products unless `precision` is `fp32`.

    TF32 rounds the factors of float32 products to 10 bits; sums, states and weights stay float32.
    """
    return float32_products(exact=precision == "fp32") if device.type == "cuda" else nullcontext()


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


def read_device(name: str | None) -> torch.device:
    """Return the device of that name; None: a GPU if there is one, else the CPU."""
    if name is None:
        return torch.device("cuda" if torch.cuda.is_available() else "cpu")
    try:
        device = torch.device(name)
    except RuntimeError:
        device = None
    if device is None or device.type not in ("cpu", "cuda"):
        raise ValueError(f"device: expected cpu or cuda, got {name!r}")
    if device.type == "cuda" and (device.index or 0) >= torch.cuda.device_count():
        raise ValueError(f"device: got {name!r}, and torch finds {torch.cuda.device_count()} GPUs here")
    return device


def gpu_names(name: str | None) -> list[str]:
    """Return the GPUs over which several runs on the device of that name can be spread: all for None and "cuda"."""
    device = read_device(name)
    if device.type != "cuda":
        return []
    return [f"cuda:{index}" for index in range(torch.cuda.device_count())] if device.index is None else [str(device)]


def cpu_has_bfloat16() -> bool:
    """Return whether the processor has bfloat16 instructions."""
    try:
        flags = Path("/proc/cpuinfo").read_text(encoding="utf-8")
    except OSError:
        return False
    return "avx512_bf16" in flags or "amx_bf16" in flags
