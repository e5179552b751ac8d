"""δ_t = Σ_d ∂c_td c_td − ∂lse_t, which every gradient of a softmax needs, in one pass over ∂c and c."""

from __future__ import annotations

import torch
import triton
import triton.language as tl
from torch import Tensor

from regard.core.kernels.gpu.launch import launch

QUERIES_PER_PROGRAM = 32


def delta_of(gradient: Tensor, context: Tensor, lse_gradient: Tensor) -> Tensor:
    """Return δ, float32 [G, T], from ∂c and c [G, T, F] and ∂lse [G, T]."""
    rows, queries, features = context.shape
    result = lse_gradient.new_empty(rows, queries, dtype=torch.float32)
    launch(
        _delta, (-(-rows * queries // QUERIES_PER_PROGRAM),), gradient.contiguous(), context,
        lse_gradient.contiguous(), result, rows * queries, features, BLOCK_ROWS=QUERIES_PER_PROGRAM, FEATURES=64,
    )  # fmt: skip
    return result


@triton.jit(do_not_specialize=["size"])  # compiled once for all lengths
def _delta(gradient, context, lse_gradient, result, size, features, BLOCK_ROWS: tl.constexpr, FEATURES: tl.constexpr):
    rows = tl.program_id(0) * BLOCK_ROWS + tl.arange(0, BLOCK_ROWS)
    total = -tl.load(lse_gradient + rows, rows < size, 0.0).to(tl.float32)
    for first in range(0, features, FEATURES):
        d = first + tl.arange(0, FEATURES)
        in_bounds = (rows < size)[:, None] & (d < features)[None, :]
        offsets = rows[:, None].to(tl.int64) * features + d[None, :]
        g, c = tl.load(gradient + offsets, in_bounds, 0.0), tl.load(context + offsets, in_bounds, 0.0)
        total += tl.sum(g.to(tl.float32) * c.to(tl.float32), 1)
    tl.store(result + rows, total, rows < size)
