"""Triton kernels of one step of a GRU of one or two directions, and of its gradients.

B rows of the batch, S positions, H features, W directions. Both directions run in one launch: at step t the first is at
position t, the second at S − 1 − t. Padding comes last in a row. States of padding are 0, and so is the initial state
of each direction, so that the previous state is always at the neighbouring position. Products with states are passed as
parts [parts, B, …] (step_device.py); the columns of the second direction begin at `border`.

    r, z = σ(a_r + b_r), σ(a_z + b_z);   n = tanh(a_n + r b_n);   h' = n + z (h − n)
"""

from __future__ import annotations

import triton
import triton.language as tl

from regard.models.recurrent.step_device import gates_backward, gates_forward, sum_parts


@triton.jit
def _positions(t, steps):
    """Return the position of this program's direction and that of its previous state."""
    direction = tl.program_id(2)
    return tl.where(direction == 0, t, steps - 1 - t), tl.where(direction == 0, t - 1, steps - t)


@triton.jit
def _is_last(position, length):
    """Is the position the last one of this program's direction?"""
    return position == tl.where(tl.program_id(2) == 0, length - 1, 0)


@triton.jit(do_not_specialize=["t", "steps", "batch"])
def encode_forward(
    gates, state_product, state_bias, lengths, states, last, saved_gates,
    t, steps, batch, hidden, directions, border, product_row, product_part,
    STATE_PARTS: tl.constexpr, BLOCK: tl.constexpr,
):  # fmt: skip
    """Compute the new states h' [S, B, W, H], given a [S, B, W, 3H] (`gates`) and W_h h in STATE_PARTS parts (0: none).
    The final state of each direction is written to `last` [B, W, H], and r, z, n and b_n are saved, [S, B, W, 4H]."""
    row, direction, i = tl.program_id(1), tl.program_id(2), tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    position, previous = _positions(t, steps)
    length = tl.minimum(tl.load(lengths + row), steps)
    mask, real = i < hidden, position < length
    index = (position.to(tl.int64) * batch + row) * directions + direction
    inputs = gates + index * 3 * hidden + i
    bias = state_bias + direction * 3 * hidden + i
    r_in, z_in = tl.load(bias, mask, 0.0), tl.load(bias + hidden, mask, 0.0)
    b_n = tl.load(bias + 2 * hidden, mask, 0.0)
    h = tl.zeros((BLOCK,), tl.float32)
    if STATE_PARTS > 0:
        offsets = row * product_row + direction * border + i
        r_in += sum_parts(state_product, offsets, mask, product_part, STATE_PARTS)
        z_in += sum_parts(state_product, offsets + hidden, mask, product_part, STATE_PARTS)
        b_n += sum_parts(state_product, offsets + 2 * hidden, mask, product_part, STATE_PARTS)
        h = tl.load(states + ((previous.to(tl.int64) * batch + row) * directions + direction) * hidden + i, mask, 0.0)
    r_in += tl.load(inputs, mask, 0.0)
    z_in += tl.load(inputs + hidden, mask, 0.0)
    a_n = tl.load(inputs + 2 * hidden, mask, 0.0)
    new = gates_forward(r_in, z_in, a_n, b_n, h, saved_gates + index * 4 * hidden + i, hidden, mask)
    new = tl.where(real, new, 0.0)
    tl.store(states + index * hidden + i, new, mask)
    final = i < tl.where(_is_last(position, length), hidden, 0)
    tl.store(last + (row * directions + direction) * hidden + i, new, final)


@triton.jit(do_not_specialize=["t", "steps", "batch", "b_offset"])
def encode_backward(
    grad_states, grad_last, carried, grad_state, saved_gates, states, lengths, grad_gates,
    t, steps, batch, hidden, directions, b_offset, border, product_row, product_part,
    CARRIED_PARTS: tl.constexpr, BLOCK: tl.constexpr,
):  # fmt: skip
    """Compute ∂a and, `b_offset` after it, ∂b, [S, B, W, 3H], and in `grad_state` [B, W, H] ∂h without the part that
    comes through b.

    Given are ∂h' [S, B, W, H], ∂last [B, W, H] and, in CARRIED_PARTS parts (0: none), the gradient through W_h of the
    next step.
    """
    row, direction, i = tl.program_id(1), tl.program_id(2), tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    position, previous = _positions(t, steps)
    length = tl.minimum(tl.load(lengths + row), steps)
    mask = i < hidden
    index = (position.to(tl.int64) * batch + row) * directions + direction
    row_offsets = (row * directions + direction) * hidden + i
    g = tl.load(grad_states + index * hidden + i, mask, 0.0)
    g += tl.load(grad_last + row_offsets, i < tl.where(_is_last(position, length), hidden, 0), 0.0)
    if CARRIED_PARTS > 0:
        g += sum_parts(carried, row * product_row + direction * border + i, mask, product_part, CARRIED_PARTS)
        g += tl.load(grad_state + row_offsets, mask, 0.0)
    g = tl.where(position < length, g, 0.0)
    has_previous = i < tl.where(t > 0, hidden, 0)
    previous_index = (previous.to(tl.int64) * batch + row) * directions + direction
    h = tl.load(states + previous_index * hidden + i, has_previous, 0.0)
    saved, a = saved_gates + index * 4 * hidden + i, grad_gates + index * 3 * hidden + i
    tl.store(grad_state + row_offsets, gates_backward(g, h, saved, a, b_offset, hidden, mask), mask)
