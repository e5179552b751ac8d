"""Which kernel should take what on a GPU: ours along blocks, or torch's own with the pattern as a mask.

    python benchmarks/gpu_crossovers.py [--runs 10] [--json FILE]

16,384 positions in rows of 32 to 8,192, 8 heads of 64 features, bf16, forward + backward. Contexts and gradients of
both must agree first. Times as in gpu_attention.py; the kernel that `plan` chooses stands beside them.
"""

from __future__ import annotations

import argparse
import json
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import torch
from gpu_timing import apart, both_ways, introduced, timed
from torch import Tensor

from regard import Causal, Full, Pattern, Window, plan
from regard.core.kernels.dense import Dense
from regard.core.kernels.fused.kernels import FusedDot
from regard.core.kernels.kernel import Kernel

POSITIONS, HEADS, FEATURES = 16384, 8, 64
SIZES = (32, 64, 128, 256, 512, 1024, 2048, 4096, 8192)
PATTERNS: dict[str, tuple[Pattern, bool]] = {
    "full, padded": (Full(), True),
    "causal, padded": (Causal(), True),
    "window(16)": (Window(16), False),
    "window(64)": (Window(64), False),
    "window(256)": (Window(256), False),
}
"""pattern; whether every second row has a quarter of padding"""
AGREE = 0.02


@dataclass
class Row:
    pattern: str
    size: int
    blocks_ms: float
    masked_ms: float
    apart: float
    chosen: str

    def __str__(self) -> str:
        best = "blocks" if self.blocks_ms < self.masked_ms else "masked"
        told = f"blocks {self.blocks_ms:8.3f} ms, masked {self.masked_ms:8.3f} ms: {best}"
        return f"{self.pattern:16} {self.size:6,}  {told}; chosen: {self.chosen} (apart by {self.apart:.1e})"


def compared(name: str, size: int, runs: int) -> Row:
    pattern, padded = PATTERNS[name]
    torch.manual_seed(0)
    shape = (POSITIONS // size, HEADS, size, FEATURES)
    inputs = [torch.randn(shape, device="cuda", dtype=torch.bfloat16, requires_grad=True) for _ in range(3)]
    given = torch.randn_like(inputs[0])
    lengths = [size - row % 2 * (size // 4) for row in range(shape[0])] if padded else None

    def by(kernel: Kernel) -> Any:
        def look(query: Tensor, key: Tensor, value: Tensor) -> Tensor:
            return kernel.run(plan(query, key, value, pattern=pattern, lengths=_rows(lengths)).request).context

        return both_ways(look, inputs, given)

    blocks, masked = by(FusedDot()), by(Dense())
    errors = apart(blocks(), [x.double() for x in masked()], ("context", "q", "k", "v"))
    assert max(errors.values()) < AGREE, errors
    found = timed({"blocks": blocks, "masked": masked}, runs)
    chosen = plan(*inputs, pattern=pattern, lengths=_rows(lengths)).kernel.name
    return Row(name, size, found["blocks"], found["masked"], max(errors.values()), chosen)


def _rows(lengths: list[int] | None) -> Tensor | None:
    """[B, 1]: the same for every head"""
    return None if lengths is None else torch.tensor(lengths)[:, None]


def main() -> None:
    reader = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    reader.add_argument("--runs", type=int, default=10)
    reader.add_argument("--json", type=Path)
    arguments = reader.parse_args()
    print(introduced(), flush=True)
    rows = []
    for name in PATTERNS:
        for size in SIZES:
            rows.append(compared(name, size, arguments.runs))
            print(rows[-1], flush=True)
    if arguments.json is not None:
        arguments.json.write_text(json.dumps([asdict(row) for row in rows], indent=1), encoding="utf-8")


if __name__ == "__main__":
    main()
