"""What a new length costs on a GPU: kernels compiled for it, which should be none, and the time of its first call.

    python benchmarks/gpu_lengths.py [--json FILE]

8 heads of 64 features, bf16, forward + backward (additive: float32, 64 hidden). Two lengths come first, one of them a
multiple of 16, which a kernel may be compiled for on its own; then others. "first call" has the making of the lists of
blocks in it, "later" is the same length again; both are wall times, medians over the lengths.
"""

from __future__ import annotations

import argparse
import json
import statistics
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import torch
import triton
from gpu_timing import introduced
from torch import Tensor

from regard import Additive, Dilated, Hard, Window, attention, bigbird, longformer

FIRST, OTHERS = (3000, 3008), (3017, 3184, 3501, 3520, 4003, 4096)
WORKS: dict[str, dict[str, Any]] = {
    "window": {"pattern": Window(256)},
    "longformer": {"pattern": longformer(512, range(64))},
    "longformer with a stride": {"pattern": longformer(512, range(64), 64)},
    "bigbird": {"pattern": bigbird(512, range(64), 3, 128)},
    "dilated": {"pattern": Dilated(64, 8)},
    "hard": {"pattern": Window(256), "normalizer": Hard()},
    "additive": {"pattern": Window(64)},
}


def asked(name: str) -> Callable[[int], list[Tensor]]:
    """Forward and backward at a length"""
    additive = name == "additive"
    more: dict[str, Any] = {"score": Additive(64, 64, hidden=64).cuda()} if additive else {}

    def run(length: int) -> list[Tensor]:
        dtype = torch.float32 if additive else torch.bfloat16
        states = [torch.randn(1, 8, length, 64, device="cuda", dtype=dtype, requires_grad=True) for _ in range(3)]
        query, key, value = states
        result = attention(query, key, value, **WORKS[name], **more)
        total = result.context.sum()
        if result.log_probability is not None:
            total = total + result.log_probability.sum()
        return list(torch.autograd.grad(total, states))

    return run


def timed(run: Callable[[int], list[Tensor]], length: int) -> float:
    torch.cuda.synchronize()
    before = time.perf_counter()
    run(length)
    torch.cuda.synchronize()
    return (time.perf_counter() - before) * 1e3


def main() -> None:
    reader = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    reader.add_argument("--json", type=Path)
    arguments = reader.parse_args()
    print(introduced(), flush=True)
    compiled: list[str] = []
    triton.knobs.compilation.listener = lambda *, src, **_: compiled.append(src.name)
    rows = []
    for name in WORKS:
        run = asked(name)
        for length in FIRST:
            run(length)
        before, first, later = len(compiled), [], []
        for length in OTHERS:
            first.append(timed(run, length))
            later.append(timed(run, length))
        more = compiled[before:]
        row = {"work": name, "first": statistics.median(first), "later": statistics.median(later), "compiled": more}
        rows.append(row)
        print(
            f"{name:26} first call {row['first']:6.1f} ms, later {row['later']:6.2f} ms; "
            f"compiled for {len(OTHERS)} more lengths: {', '.join(more) or 'nothing'}",
            flush=True,
        )
    if arguments.json is not None:
        arguments.json.write_text(json.dumps(rows, indent=1), encoding="utf-8")


if __name__ == "__main__":
    main()
