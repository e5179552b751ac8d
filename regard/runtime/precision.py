"""The device and the precision of computations."""

from __future__ import annotations

from contextlib import AbstractContextManager, nullcontext
from pathlib import Path
from typing import Literal

import torch

from regard.runtime.matmul_precision import float32_products

Precision = Literal["auto", "fp32", "bf16"]


def autocast(precision: Precision, device: torch.device) -> AbstractContextManager[object]:
    """Return the autocast context: bfloat16 for `bf16`, and for `auto` on a CPU with bfloat16 instructions.

    On a GPU, `auto` means float32 with TF32 products (`tf32_products`).
    """
    if precision not in ("auto", "fp32", "bf16"):
        raise ValueError(f"precision: expected auto, fp32 or bf16, got {precision!r}")
    use_bfloat16 = precision == "bf16" or (precision == "auto" and device.type == "cpu" and cpu_has_bfloat16())
    return torch.autocast(device.type, torch.bfloat16, enabled=use_bfloat16)


def tf32_products(precision: Precision, device: torch.device) -> AbstractContextManager[None]:
    """Return a context for training on a GPU: TF32 products unless `precision` is `fp32`.

    TF32 rounds the factors of float32 products to 10 bits; sums, states and weights stay float32.
    """
    return float32_products(exact=precision == "fp32") if device.type == "cuda" else nullcontext()


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


def cpu_has_bfloat16() -> bool:
    """Return whether the processor has bfloat16 instructions."""
    try:
        flags = Path("/proc/cpuinfo").read_text(encoding="utf-8")
    except OSError:
        return False
    return "avx512_bf16" in flags or "amx_bf16" in flags
