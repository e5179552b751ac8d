"""Rotary position embeddings (Su et al. 2021): queries and keys are rotated by angles that grow with their position.

    (x_a, x_b) → (x_a cos iθ_a − x_b sin iθ_a,  x_b cos iθ_a + x_a sin iθ_a),      b = a + d/2,  θ_a = 10000^(−2a/d)

The dot product of a query at i and a key at j then depends on their contents and on i − j alone.
"""

from __future__ import annotations

import torch
from torch import Tensor

from regard.core.scores import at_least_float32
from regard.runtime.device_cache import device_cache

BASE = 10000.0


def rotate(states: Tensor, position: int = 0) -> Tensor:
    """Rotate states [..., N, d], the first of them at `position`; d is even."""
    if states.shape[-1] % 2:
        raise ValueError(f"rotary: expected an even number of features a head, got {states.shape[-1]}")
    end = position + states.shape[-2]
    count = 1 << max(0, end - 1).bit_length()
    cosines, sines = (table[position:end] for table in sinusoid_tables(count, states.shape[-1], states.device))
    first, second = at_least_float32(states).chunk(2, -1)
    rotated = torch.cat([first * cosines - second * sines, second * cosines + first * sines], -1)
    return rotated.to(states.dtype)


@device_cache(maxsize=64, reason="every layer and decoder step reads such a table, which takes up to milliseconds")
def sinusoid_tables(count: int, features: int, device: torch.device, interleaved: bool = False) -> tuple[Tensor, ...]:
    """Return (cos iθ_a, sin iθ_a) [count, ⌈d/2⌉] of positions i = 0 … count − 1; `interleaved` one table [count, d],
    sines at even and cosines at odd places. Callers round `count` up, so that few tables are cached."""
    frequencies = BASE ** (-torch.arange(0, features, 2, dtype=torch.float64, device="cpu") / features)
    angles = torch.arange(count, dtype=torch.float64, device="cpu")[:, None] * frequencies
    if interleaved:
        return (torch.stack([angles.sin(), angles.cos()], -1).flatten(1)[:, :features].float().to(device),)
    return angles.cos().float().to(device), angles.sin().float().to(device)
