"""The gradients of queries, keys and v of additive attention on the device, from those of the energies.

    ∂q_th = v_h Σ_s ∂e (1 − tanh²),      ∂k_sh = v_h Σ_t ∂e (1 − tanh²),      ∂v_h = Σ ∂e tanh

A thread owns (t, h) and loops over s for ∂q, and owns (s, h) and loops over t for ∂k; states have their usual layout.
Names and r are those of additive_device.py.
"""

from __future__ import annotations

import triton
import triton.language as tl

from regard.core.kernels.gpu.tanh import NEAR, exponential, reciprocal, tanh

LENGTHS = ["own_size", "other_size", "own_tiles", "other_tiles", "blocks"]
"""arguments that change from call to call: kernels are compiled once for all their values"""
UNALIGNED = ["own_max_abs", "other_max_abs"]
"""tensors that share an allocation in pairs, so that the second is not always aligned"""


@triton.jit
def _load_states(base, indices, features, size, hidden):
    """Load float32 [N, FEATURES] of states [size, hidden], 0 out of bounds."""
    in_bounds = (indices < size)[:, None] & (features < hidden)[None, :]
    return tl.load(base + indices[:, None] * hidden + features[None, :], in_bounds, 0.0).to(tl.float32)


@triton.jit
def _store_states(base, states, indices, features, size, hidden):
    in_bounds = (indices < size)[:, None] & (features < hidden)[None, :]
    tl.store(base + indices[:, None] * hidden + features[None, :], states.to(base.dtype.element_ty), in_bounds)


@triton.jit
def _near_block(
    first_power, second_power, other, grad_energies, first_total, second_total, first_vector, second_vector,
    one, two, begin, count, hidden, VECTOR: tl.constexpr, ASM: tl.constexpr, OWN: tl.constexpr,
):  # fmt: skip
    """Add Σ ∂e (r − r²), and with VECTOR Σ ∂e r, over `count` states of the other side, by exponentials."""
    base = other + begin.to(tl.int64) * hidden
    first_x, second_x = tl.load(base + one, one < hidden, 0.0), tl.load(base + two, two < hidden, 0.0)
    slope = tl.load(grad_energies)
    for number in range(count):
        a = first_power * exponential(first_x.to(tl.float32))[None, :] + 1.0
        b = second_power * exponential(second_x.to(tl.float32))[None, :] + 1.0
        weights = slope[:, None]
        # Prefetched for the next iteration.
        following = tl.minimum(number + 1, count - 1)
        base = other + (begin + following).to(tl.int64) * hidden
        first_x, second_x = tl.load(base + one, one < hidden, 0.0), tl.load(base + two, two < hidden, 0.0)
        slope = tl.load(grad_energies + following * OWN)
        inverse = reciprocal(a * b, ASM)
        first_r, second_r = b * inverse, a * inverse
        first_total += weights * (first_r - first_r * first_r)
        second_total += weights * (second_r - second_r * second_r)
        if VECTOR:
            first_vector += weights * first_r
            second_vector += weights * second_r
    return first_total, second_total, first_vector, second_vector


@triton.jit
def _far_block(
    own, other, grad_energies, first_total, second_total, first_vector, second_vector,
    indices, one, two, begin, count, own_size, hidden, OWN: tl.constexpr,
):  # fmt: skip
    """Add Σ ∂e (r − r²) and Σ ∂e r over `count` states of the other side, by tanh, which cannot overflow."""
    for number in range(count):
        base = other + (begin + number).to(tl.int64) * hidden
        weights = tl.load(grad_energies + number * OWN)[:, None]
        x = tl.load(base + one, one < hidden, 0.0).to(tl.float32)
        r = 0.5 - 0.5 * tanh(_load_states(own, indices, one, own_size, hidden) + x[None, :])
        first_total += weights * (r - r * r)
        first_vector += weights * r
        x = tl.load(base + two, two < hidden, 0.0).to(tl.float32)
        r = 0.5 - 0.5 * tanh(_load_states(own, indices, two, own_size, hidden) + x[None, :])
        second_total += weights * (r - r * r)
        second_vector += weights * r
    return first_total, second_total, first_vector, second_vector


@triton.jit(do_not_specialize=LENGTHS, do_not_specialize_on_alignment=UNALIGNED)
def state_gradient(
    own, other, vector, grad_energies, own_max_abs, other_max_abs, result, vector_sums, starts, others, numbers,
    own_first, other_first, own_size, other_size, hidden, own_tiles, other_tiles, blocks, vector_row,
    VECTOR: tl.constexpr, ASM: tl.constexpr, OWN: tl.constexpr, OTHER: tl.constexpr,
    STRIP: tl.constexpr, FEATURES: tl.constexpr,
):  # fmt: skip
    """Compute ∂q or ∂k [G, N, H], whichever is `own`, from ∂e [G, n, OTHER, OWN]; with VECTOR also Σ ∂e r of each
    strip, [G, n, H]. A program has STRIP of its own states and twice FEATURES of H, in two halves."""
    strip, row = tl.program_id(0), tl.program_id(2).to(tl.int64)
    tile, within = strip // (OWN // STRIP), strip % (OWN // STRIP) * STRIP + tl.arange(0, STRIP)
    indices = own_first + tile * OWN + within
    # Neighbours are swapped, so that a thread gets all states of one feature instead of several features.
    one = tl.program_id(1) * 2 * FEATURES + (tl.arange(0, FEATURES) ^ 1)
    two = one + FEATURES
    own, other = own + row * own_size * hidden, other + row * other_size * hidden
    first_power = exponential(_load_states(own, indices, one, own_size, hidden))
    second_power = exponential(_load_states(own, indices, two, own_size, hidden))
    first_total = tl.zeros((STRIP, FEATURES), tl.float32)
    second_total = tl.zeros((STRIP, FEATURES), tl.float32)
    first_vector = tl.zeros((STRIP, FEATURES), tl.float32)
    second_vector = tl.zeros((STRIP, FEATURES), tl.float32)
    max_abs = tl.load(own_max_abs + row * own_tiles + own_first // OWN + tile)
    for index in range(tl.load(starts + tile), tl.load(starts + tile + 1)):
        other_tile = tl.load(others + index)
        first = other_first + other_tile * OTHER
        block = grad_energies + (row * blocks + tl.load(numbers + index)) * OWN * OTHER + within
        count = min(OTHER, other_size - first)
        if 2.0 * (max_abs + tl.load(other_max_abs + row * other_tiles + other_first // OTHER + other_tile)) <= NEAR:
            first_total, second_total, first_vector, second_vector = _near_block(
                first_power, second_power, other, block, first_total, second_total, first_vector, second_vector,
                one, two, first, count, hidden, VECTOR, ASM, OWN,
            )  # fmt: skip
        else:
            first_total, second_total, first_vector, second_vector = _far_block(
                own, other, block, first_total, second_total, first_vector, second_vector,
                indices, one, two, first, count, own_size, hidden, OWN,
            )  # fmt: skip
    first_v = tl.load(vector + row * vector_row + one, one < hidden, 0.0)
    second_v = tl.load(vector + row * vector_row + two, two < hidden, 0.0)
    result += row * own_size * hidden
    _store_states(result, 4.0 * first_v[None, :] * first_total, indices, one, own_size, hidden)
    _store_states(result, 4.0 * second_v[None, :] * second_total, indices, two, own_size, hidden)
    if VECTOR:
        target = vector_sums + (row * tl.num_programs(0) + strip) * hidden
        tl.store(target + one, tl.sum(first_vector, 0), one < hidden)
        tl.store(target + two, tl.sum(second_vector, 0), two < hidden)
