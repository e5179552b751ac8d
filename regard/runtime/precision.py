"""Where, and in which numbers, products are computed."""

from __future__ import annotations

from contextlib import AbstractContextManager, nullcontext
from pathlib import Path
from typing import Literal

import torch

from regard.runtime.matmul_precision import products

Precision = Literal["auto", "fp32", "bf16"]


def autocast(precision: Precision, device: torch.device) -> AbstractContextManager[object]:
    """bfloat16 products where asked for, or where `auto` and the CPU has them in hardware.

    On a GPU `auto` stays in float32, by TF32 (`fast_products`).
    """
    if precision not in ("auto", "fp32", "bf16"):
        raise ValueError(f"precision: expected auto, fp32 or bf16, got {precision!r}")
    narrow = precision == "bf16" or (precision == "auto" and device.type == "cpu" and cpu_has_bfloat16())
    return torch.autocast(device.type, torch.bfloat16, enabled=narrow)


def fast_products(precision: Precision, device: torch.device) -> AbstractContextManager[None]:
    """While a model trains on a GPU: factors of float32 products rounded to TF32's 10 bits, unless `fp32` is asked
    for. Sums, states and weights stay float32."""
    return products(exact=precision == "fp32") if device.type == "cuda" else nullcontext()


def read_device(name: str | None) -> torch.device:
    """The device of that name; of none, a GPU if there is one."""
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
    """Does the processor multiply bfloat16 itself?"""
    try:
        flags = Path("/proc/cpuinfo").read_text(encoding="utf-8")
    except OSError:
        return False
    return "avx512_bf16" in flags or "amx_bf16" in flags
