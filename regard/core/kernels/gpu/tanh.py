"""tanh on the device.

    1 / (e^{2(q+k)} + 1) = (1 − tanh(q + k)) / 2

With e^{2q} and e^{2k} at hand it costs a product, a sum and a reciprocal; the reciprocals of two numbers a and b are
b / ab and a / ab, so that the GPU's special-function unit, which bounds all this, works once for two.
"""

from __future__ import annotations

import triton
import triton.language as tl

NEAR = tl.constexpr(43.0)
"""2 (q + k) up to which the product of two such numbers is a float32"""


@triton.jit
def tanh(x):
    """In float32; the exponential cannot overflow."""
    return 1.0 - 2.0 / (tl.exp(2.0 * tl.minimum(x, NEAR, propagate_nan=tl.PropagateNan.ALL)) + 1.0)


@triton.jit
def reciprocal(x, ASM: tl.constexpr):
    """1 / x to one unit in the last place, for x ≥ 1."""
    if ASM:
        return tl.inline_asm_elementwise(
            "rcp.approx.ftz.f32 $0, $1;", "=f,f", [x], dtype=tl.float32, is_pure=True, pack=1
        )
    else:
        return 1.0 / x


@triton.jit
def exponential(x):
    """e^{2x}, where it is a float32; beyond, what it would be at the border."""
    held = tl.maximum(x, -NEAR, propagate_nan=tl.PropagateNan.ALL)
    return tl.exp(2.0 * tl.minimum(held, NEAR, propagate_nan=tl.PropagateNan.ALL))
