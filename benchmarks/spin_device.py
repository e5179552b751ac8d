"""A GPU's special-function unit, kept busy: what bounds tanh."""

from __future__ import annotations

import triton
import triton.language as tl


@triton.jit
def spin(x, out, times, BLOCK: tl.constexpr):
    """Four chains of tanh as the chip has it, each `times` long."""
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    one = tl.load(x + i)
    two, three, four = one + 0.1, one + 0.2, one + 0.3
    for _ in range(times):
        one, two, three, four = _tanh(one), _tanh(two), _tanh(three), _tanh(four)
    tl.store(out + i, one + two + three + four)


@triton.jit
def _tanh(x):
    return tl.inline_asm_elementwise("tanh.approx.f32 $0, $1;", "=f,f", [x], dtype=tl.float32, is_pure=True, pack=1)
