"""Counter-based noise: a random number is a function of (seed, row, i, j), not of the order in which it is drawn.

So every kernel drops the same weights and draws the same samples, the backward pass draws them again instead of
saving them, and a pattern of random blocks needs no table.
"""

import torch
from torch import Tensor

_GOLDEN = 0x9E3779B9 - (1 << 32)  # 2³² / golden ratio, as a signed 32-bit number
_FIRST = 0x7FEB352D
_SECOND = 0x846CA68B - (1 << 32)


def mix(x: Tensor) -> Tensor:
    """Apply a bijection of 32-bit integers in which each input bit affects each output bit (twice xor-shift, multiply).

    Works in place on int32, whose products wrap. `>>` of a signed number copies the sign bit; the masks remove it.
    """
    x.bitwise_xor_((x >> 16).bitwise_and_(0xFFFF)).mul_(_FIRST)
    x.bitwise_xor_((x >> 15).bitwise_and_(0x1FFFF)).mul_(_SECOND)
    return x.bitwise_xor_((x >> 16).bitwise_and_(0xFFFF))


def bits(seed: int | Tensor, *counters: Tensor) -> Tensor:
    """Return 31 random bits (int32 ≥ 0) for each combination of the counters, which broadcast against each other."""
    return mixed_in(seed, *counters).bitwise_and_(0x7FFFFFFF)


def mixed_in(seed: int | Tensor, *counters: Tensor) -> Tensor:
    """Return an int32 hash of the seed, an int or int64 [], and of these counters; more can be mixed in later."""
    if isinstance(seed, Tensor):
        state = (seed ^ (seed >> 32)).to(counters[0].device, torch.int32)  # drops the high bits
    else:
        state = torch.full((), _wrapped(seed), dtype=torch.int32, device=counters[0].device)
    state = mix(state)
    for counter in counters:
        # Each counter is mixed in after the previous one was scrambled, so that (1, 2) and (2, 1) differ.
        state = mix(state + counter.to(torch.int32) * _GOLDEN)
    return state


def uniform(seed: int | Tensor, *counters: Tensor, dtype: torch.dtype = torch.float32) -> Tensor:
    """Return uniform numbers in the open interval (0, 1): 23 bits plus a half, which float32 represents exactly."""
    return bits(seed, *counters).bitwise_right_shift_(8).to(dtype).add_(0.5).mul_(2.0**-23)


def gumbel(seed: int | Tensor, *counters: Tensor, dtype: torch.dtype = torch.float32) -> Tensor:
    """Return Gumbel noise −log(−log u): argmax(energies + noise) is a sample from softmax(energies)."""
    return uniform(seed, *counters, dtype=dtype).log_().neg_().log_().neg_()


def _wrapped(seed: int) -> int:
    """Return a seed as a signed 32-bit number: its low 32 bits, with the next 32 folded in."""
    low = (seed ^ (seed >> 32)) & 0xFFFFFFFF
    return low - (1 << 32) if low >= 1 << 31 else low
