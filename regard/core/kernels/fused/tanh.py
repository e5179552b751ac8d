"""v · tanh(q + k) for pairs of hidden features at a time, on the device.

What is packed is two 16-bit floats in one int32: the GPU's special-function unit takes two tanh in the time of one, and
one instruction adds, or multiplies and adds, both. float16 has the mantissa of TF32, ten bits, and tanh is flat where
its range ends.

    ASM = True     the unit's own tanh (tanh.approx.f16x2), as NVIDIA GPUs from compute capability 7.5 on have it
    ASM = False    the same by exponentials, rounded to float16 as the unit does: elsewhere, and in Triton's interpreter
"""

from __future__ import annotations

import triton
import triton.language as tl


@triton.jit
def halves(pair):
    """int32 → (low, high) as float32"""
    low = (pair & 0xFFFF).to(tl.int16).to(tl.float16, bitcast=True)
    high = ((pair >> 16) & 0xFFFF).to(tl.int16).to(tl.float16, bitcast=True)
    return low.to(tl.float32), high.to(tl.float32)


@triton.jit
def packed(low, high):
    """(low, high) → int32, each rounded to float16"""
    lower = low.to(tl.float16).to(tl.int16, bitcast=True).to(tl.int32) & 0xFFFF
    upper = high.to(tl.float16).to(tl.int16, bitcast=True).to(tl.int32)
    return lower | (upper << 16)


@triton.jit
def tanh(x):
    """In float32, by an exponential that cannot overflow."""
    small = tl.exp(-2.0 * tl.abs(x))
    size = (1.0 - small) / (1.0 + small)
    return tl.where(x < 0, -size, size)


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
def weighted_tanh(query, key, vector, total, ASM: tl.constexpr):
    """total + vector · tanh(query + key), all packed."""
    if ASM:
        return tl.inline_asm_elementwise(
            """{
            .reg .b32 x;
            add.rn.f16x2 x, $1, $2;
            tanh.approx.f16x2 x, x;
            fma.rn.f16x2 $0, x, $3, $4;
            }""",
            "=r,r,r,r,r",
            [query, key, vector, total],
            dtype=tl.int32,
            is_pure=True,
            pack=1,
        )
    else:
        low, high = _tanh_pair(query, key)
        low_vector, high_vector = halves(vector)
        low_total, high_total = halves(total)
        return packed(low_total + low_vector * low, high_total + high_vector * high)


@triton.jit
def tanh_and_slope(query, key, ASM: tl.constexpr):
    """query, key packed → y = tanh(query + key) and 1 − y², as (y low, y high, slope low, slope high) in float32."""
    if ASM:
        return tl.inline_asm_elementwise(
            """{
            .reg .b32 x, n, s;
            .reg .b16 a, b;
            add.rn.f16x2 x, $4, $5;
            tanh.approx.f16x2 x, x;
            neg.f16x2 n, x;
            mov.b32 s, 0x3C003C00;
            fma.rn.f16x2 s, n, x, s;
            mov.b32 {a, b}, x;
            cvt.f32.f16 $0, a;
            cvt.f32.f16 $1, b;
            mov.b32 {a, b}, s;
            cvt.f32.f16 $2, a;
            cvt.f32.f16 $3, b;
            }""",
            "=f,=f,=f,=f,r,r",
            [query, key],
            dtype=(tl.float32, tl.float32, tl.float32, tl.float32),
            is_pure=True,
            pack=1,
        )
    else:
        low, high = _tanh_pair(query, key)
        return low, high, 1.0 - low * low, 1.0 - high * high


@triton.jit
def _tanh_pair(query, key):
    low_query, high_query = halves(query)
    low_key, high_key = halves(key)
    return halves(packed(tanh(low_query + low_key), tanh(high_query + high_key)))
