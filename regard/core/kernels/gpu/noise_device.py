"""Gumbel noise on the device: a function of (seed, row, i, j), bit for bit equal to runtime/noise.py."""

from __future__ import annotations

import triton
import triton.language as tl

GOLDEN = tl.constexpr(0x9E3779B9 - (1 << 32))
FIRST = tl.constexpr(0x7FEB352D)
SECOND = tl.constexpr(0x846CA68B - (1 << 32))


@triton.jit
def _hash(x):
    x = (x ^ ((x >> 16) & 0xFFFF)) * FIRST
    x = (x ^ ((x >> 15) & 0x1FFFF)) * SECOND
    return x ^ ((x >> 16) & 0xFFFF)


@triton.jit
def gumbel(state, i, j, ACROSS: tl.constexpr):
    """Return −log(−log u) for queries at positions i and keys at positions j, [queries, keys]; with ACROSS [keys,
    queries]. `state` is the hash of seed and row."""
    query_hash, key_counter = _hash(state + i * GOLDEN), j * GOLDEN
    counter = query_hash[None, :] + key_counter[:, None] if ACROSS else query_hash[:, None] + key_counter[None, :]
    uniform = (((_hash(counter) & 0x7FFFFFFF) >> 8).to(tl.float32) + 0.5) * 1.1920928955078125e-07  # 2⁻²³
    return -tl.log(-tl.log(uniform))
