"""How GPU benchmarks take their times, and how far results may lie apart."""

from __future__ import annotations

import statistics
from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor

import regard

Run = Callable[[], Any]
Look = Callable[..., Tensor]

BUSY = 20_000_000
"""clocks for which the device has something to do while Python asks for more: about 10 ms"""


def introduced() -> str:
    """What is measured, and on what; there is nothing to measure without a GPU."""
    if not torch.cuda.is_available():
        raise SystemExit("this measures on an NVIDIA GPU; torch finds none here")
    return f"regard {regard.__version__}, torch {torch.__version__}, {torch.cuda.get_device_name()}"


def timed(sides: dict[str, Run], runs: int) -> dict[str, float]:
    """Medians in ms, sides alternating."""
    result: dict[str, list[float]] = {name: [] for name in sides}
    for run in sides.values():
        for _ in range(3):
            run()
    torch.cuda.synchronize()
    for _ in range(runs):
        for name, run in sides.items():
            torch.cuda._sleep(BUSY)  # type: ignore[no-untyped-call]
            before, after = (torch.cuda.Event(enable_timing=True) for _ in range(2))
            before.record()  # type: ignore[no-untyped-call]
            run()
            after.record()  # type: ignore[no-untyped-call]
            torch.cuda.synchronize()
            result[name].append(before.elapsed_time(after))
    return {name: statistics.median(times) for name, times in result.items()}


def peak(run: Run) -> int:
    """Bytes above what is there before."""
    run()
    torch.cuda.synchronize()
    torch.cuda.reset_peak_memory_stats()
    before = torch.cuda.memory_allocated()
    run()
    torch.cuda.synchronize()
    return torch.cuda.max_memory_allocated() - before


def apart(result: list[Tensor], right: list[Tensor], names: tuple[str, ...]) -> dict[str, float]:
    return {
        name: float((x.detach().double() - y).norm() / y.norm())
        for name, x, y in zip(names, result, right, strict=True)
    }


def both_ways(look: Look, inputs: list[Tensor], given: Tensor) -> Callable[[], list[Tensor]]:
    """Forward and backward: [context, *gradients]"""

    def run() -> list[Tensor]:
        context = look(*inputs)
        return [context, *torch.autograd.grad(context, inputs, given)]

    return run
