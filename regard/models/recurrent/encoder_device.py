"""One step of a GRU of one or two directions on the device, and back.

B rows of the batch, S places, H features. `ways` directions walk at once: at step t the first is at place t, the second
at S − 1 − t. Padding comes last in a row; states there are 0, and so is the state from which each direction begins, so
that the state before is always what lies beside. Products with states come in parts, [parts, B, …] (step_device.py),
of the second direction from column `border` on.

    r, z = σ(a_r + b_r), σ(a_z + b_z);   n = tanh(a_n + r b_n);   h' = n + z (h − n)
"""

from __future__ import annotations

import triton
import triton.language as tl

from regard.core.kernels.gpu.tanh import tanh
from regard.models.recurrent.step_device import _sigmoid, _summed, gates_backward


@triton.jit
def _where(t, steps):
    """(place of this program's direction, that of the state before)"""
    way = tl.program_id(2)
    return tl.where(way == 0, t, steps - 1 - t), tl.where(way == 0, t - 1, steps - t)


@triton.jit
def _ends(place, length):
    """Is it where this program's direction ends?"""
    return place == tl.where(tl.program_id(2) == 0, length - 1, 0)


@triton.jit(do_not_specialize=["t", "steps", "batch"])
def encode_forward(
    gates, by_state, state_bias, lengths, states, last, kept, t, steps, batch, hidden, ways, border, row_apart, apart,
    STATE: tl.constexpr, BLOCK: tl.constexpr,
):  # fmt: skip
    """a [S, B, ways, 3H], in STATE parts W_h h → h' into states [S, B, ways, H], where a direction ends into `last`
    [B, ways, H]; r, z, n and b_n are kept, [S, B, ways, 4H]."""
    row, way, i = tl.program_id(1), tl.program_id(2), tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    place, before = _where(t, steps)
    length = tl.minimum(tl.load(lengths + row), steps)
    there, real = i < hidden, place < length
    here = (place.to(tl.int64) * batch + row) * ways + way
    given = gates + here * 3 * hidden + i
    bias = state_bias + way * 3 * hidden + i
    by_reset, by_keep = tl.load(bias, there, 0.0), tl.load(bias + hidden, there, 0.0)
    by_new = tl.load(bias + 2 * hidden, there, 0.0)
    h = tl.zeros((BLOCK,), tl.float32)
    if STATE > 0:
        at = row * row_apart + way * border + i
        by_reset += _summed(by_state, at, there, apart, STATE)
        by_keep += _summed(by_state, at + hidden, there, apart, STATE)
        by_new += _summed(by_state, at + 2 * hidden, there, apart, STATE)
        h = tl.load(states + ((before.to(tl.int64) * batch + row) * ways + way) * hidden + i, there, 0.0)
    reset = _sigmoid(by_reset + tl.load(given, there, 0.0))
    keep = _sigmoid(by_keep + tl.load(given + hidden, there, 0.0))
    fresh = tanh(tl.load(given + 2 * hidden, there, 0.0) + reset * by_new)
    new = tl.where(real, fresh + keep * (h - fresh), 0.0)
    tl.store(states + here * hidden + i, new, there)
    tl.store(last + (row * ways + way) * hidden + i, new, i < tl.where(_ends(place, length), hidden, 0))
    into = kept + here * 4 * hidden + i
    tl.store(into, reset, there)
    tl.store(into + hidden, keep, there)
    tl.store(into + 2 * hidden, fresh, there)
    tl.store(into + 3 * hidden, by_new, there)


@triton.jit(do_not_specialize=["t", "steps", "batch", "behind"])
def encode_backward(
    by_states, by_last, carried, through, kept, states, lengths, by_gates, t, steps, batch, hidden, ways, behind,
    border, row_apart, apart, CARRIED: tl.constexpr, BLOCK: tl.constexpr,
):  # fmt: skip
    """∂h' [S, B, ways, H], ∂last [B, ways, H], and in CARRIED parts what comes back from the step after → ∂a,
    `behind` it ∂b, [S, B, ways, 3H], and in `through` [B, ways, H] ∂h but for what comes by b."""
    row, way, i = tl.program_id(1), tl.program_id(2), tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    place, before = _where(t, steps)
    length = tl.minimum(tl.load(lengths + row), steps)
    there = i < hidden
    here = (place.to(tl.int64) * batch + row) * ways + way
    of_row = (row * ways + way) * hidden + i
    g = tl.load(by_states + here * hidden + i, there, 0.0)
    g += tl.load(by_last + of_row, i < tl.where(_ends(place, length), hidden, 0), 0.0)
    if CARRIED > 0:
        g += _summed(carried, row * row_apart + way * border + i, there, apart, CARRIED)
        g += tl.load(through + of_row, there, 0.0)
    g = tl.where(place < length, g, 0.0)
    begun = i < tl.where(t > 0, hidden, 0)
    h = tl.load(states + ((before.to(tl.int64) * batch + row) * ways + way) * hidden + i, begun, 0.0)
    saved, a = kept + here * 4 * hidden + i, by_gates + here * 3 * hidden + i
    tl.store(through + of_row, gates_backward(g, h, saved, a, behind, hidden, there), there)
