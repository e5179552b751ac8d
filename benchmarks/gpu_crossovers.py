"""Which kernel should take what on a GPU: ours along blocks, or torch's own with the pattern as a mask.

    python benchmarks/gpu_crossovers.py [--dtype float32] [--matmul high] [--patterns …] [--sizes …] [--runs 10]
                                        [--json FILE]

16,384 positions in rows of 32 to 8,192, 8 heads of 64 features, forward + backward. Contexts and gradients of
both must agree first. Times are those of the device, as in gpu_attention.py, and, "asked", those of many calls one
behind the other, in which Python may take longer than the device. The kernel that `plan` chooses stands beside them.
"""

from __future__ import annotations

import argparse
import json
import statistics
import time
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import torch
from gpu_timing import apart, both_ways, introduced, timed
from torch import Tensor

from regard import Causal, Dilated, Full, Global, Pattern, Strided, Window, plan
from regard.core.kernels.dense import Dense
from regard.core.kernels.kernel import Kernel
from regard.core.plan import GPU_KERNELS

POSITIONS, HEADS, FEATURES = 16384, 8, 64
SIZES = (32, 64, 128, 256, 512, 1024, 2048, 4096, 8192)
PATTERNS: dict[str, tuple[Pattern, bool]] = {
    "full": (Full(), False),
    "full, padded": (Full(), True),
    "causal": (Causal(), False),
    "causal, padded": (Causal(), True),
    "window(16)": (Window(16), False),
    "window(64)": (Window(64), False),
    "window(256)": (Window(256), False),
    "global": (Window(16) | Global(range(4)), False),
    "strided(8)": (Strided(8), False),
    "dilated(4, 4)": (Dilated(4, 4), False),
}
"""pattern; whether every second row has a quarter of padding"""
AGREE = 0.02
CALLS = 20
"""one behind the other"""


@dataclass
class Row:
    pattern: str
    size: int
    ours: str
    ours_ms: float
    masked_ms: float
    ours_asked_ms: float
    masked_asked_ms: float
    apart: float
    chosen: str

    def __str__(self) -> str:
        ours = f"{self.ours} {self.ours_ms:6.3f} ms, asked {self.ours_asked_ms:6.3f}"
        masked = f"masked {self.masked_ms:6.3f} ms, asked {self.masked_asked_ms:6.3f}"
        return f"{self.pattern:15} {self.size:6,}  {ours}; {masked}; chosen: {self.chosen} (apart by {self.apart:.1e})"


def compared(name: str, size: int, dtype: torch.dtype, runs: int) -> Row:
    pattern, padded = PATTERNS[name]
    torch.manual_seed(0)
    shape = (POSITIONS // size, HEADS, size, FEATURES)
    inputs = [torch.randn(shape, device="cuda", dtype=dtype, requires_grad=True) for _ in range(3)]
    given = torch.randn_like(inputs[0])
    lengths = [size - row % 2 * (size // 4) for row in range(shape[0])] if padded else None

    def by(kernel: Kernel) -> Any:
        def look(query: Tensor, key: Tensor, value: Tensor) -> Tensor:
            return kernel.run(plan(query, key, value, pattern=pattern, lengths=_rows(lengths)).request).context

        return both_ways(look, inputs, given)

    request = plan(*inputs, pattern=pattern, lengths=_rows(lengths))
    own = next(kernel for kernel in GPU_KERNELS if kernel.refuse(request.request) is None)
    sides = {"ours": by(own), "masked": by(Dense())}
    errors = apart(sides["ours"](), [x.detach().double() for x in sides["masked"]()], ("context", "q", "k", "v"))
    assert max(errors.values()) < AGREE, errors
    result = timed(sides, runs)
    asked = {side: statistics.median(_asked(run) for _ in range(5)) for side, run in sides.items()}
    times = result["ours"], result["masked"], asked["ours"], asked["masked"]
    return Row(name, size, own.name, *times, max(errors.values()), request.kernel.name)


def _asked(run: Any) -> float:
    """ms a call"""
    torch.cuda.synchronize()
    before = time.perf_counter()
    for _ in range(CALLS):
        run()
    torch.cuda.synchronize()
    return (time.perf_counter() - before) / CALLS * 1e3


def _rows(lengths: list[int] | None) -> Tensor | None:
    """[B, 1]: the same for every head"""
    return None if lengths is None else torch.tensor(lengths)[:, None]


def main() -> None:
    reader = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    reader.add_argument("--dtype", choices=["bfloat16", "float16", "float32"], default="bfloat16")
    reader.add_argument("--matmul", choices=["highest", "high"], default="highest", help="products of float32")
    reader.add_argument("--patterns", choices=PATTERNS, nargs="+", default=list(PATTERNS))
    reader.add_argument("--sizes", type=int, nargs="+", default=SIZES)
    reader.add_argument("--runs", type=int, default=10)
    reader.add_argument("--json", type=Path)
    arguments = reader.parse_args()
    print(f"{introduced()}, {arguments.dtype}, {arguments.matmul}", flush=True)
    torch.set_float32_matmul_precision(arguments.matmul)
    dtype = getattr(torch, arguments.dtype)
    rows = []
    for name in arguments.patterns:
        for size in arguments.sizes:
            rows.append(compared(name, size, dtype, arguments.runs))
            print(rows[-1], flush=True)
    if arguments.json is not None:
        arguments.json.write_text(json.dumps([asdict(row) for row in rows], indent=1), encoding="utf-8")


if __name__ == "__main__":
    main()
