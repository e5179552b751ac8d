"""tanh on the device.

    1 / (e^{2(q+k)} + 1) = (1 − tanh(q + k)) / 2

Given e^{2q} and e^{2k}, it costs a product, a sum and a reciprocal. The reciprocals of two numbers a and b are b / ab
and a / ab, so that the GPU's special-function unit, which is the bottleneck, is used once for two numbers.
"""

from __future__ import annotations

import triton
import triton.language as tl

NEAR = tl.constexpr(43.0)  # the largest 2 (q + k) for which the product of two such exponentials fits into a float32


@triton.jit
def tanh(x):
    """Return tanh(x) in float32; the exponential cannot overflow."""
    return 1.0 - 2.0 / (tl.exp(2.0 * tl.minimum(x, NEAR, propagate_nan=tl.PropagateNan.ALL)) + 1.0)


@triton.jit
def reciprocal(x, ASM: tl.constexpr):
    """Return 1 / x to one unit in the last place, for x ≥ 1."""
    if ASM:
        return tl.inline_asm_elementwise(
            "rcp.approx.ftz.f32 $0, $1;", "=f,f", [x], dtype=tl.float32, is_pure=True, pack=1
        )
    else:
        return 1.0 / x


@triton.jit
def exponential(x):
    """Return e^{2x}, with |x| clamped to NEAR so that the result fits into a float32."""
    bounded = tl.maximum(x, -NEAR, propagate_nan=tl.PropagateNan.ALL)
    return tl.exp(2.0 * tl.minimum(bounded, NEAR, propagate_nan=tl.PropagateNan.ALL))
