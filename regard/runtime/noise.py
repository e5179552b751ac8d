"""Counter-based noise: a random number is a function of (seed, row, i, j), not of the order in which it is asked for.

So every kernel drops the same weights and draws the same samples, the backward pass draws them again instead of
keeping them, and a pattern of random blocks needs no table.
"""

import torch
from torch import Tensor

_GOLDEN = 0x9E3779B9 - (1 << 32)  # 2³² / golden ratio, as a signed 32-bit number
_FIRST = 0x7FEB352D
_SECOND = 0x846CA68B - (1 << 32)


def mix(x: Tensor) -> Tensor:
    """A bijection of 32-bit integers in which every input bit moves every output bit (xor-shift, multiply, twice).

    Works in place on int32, whose products wrap. `>>` of a signed number copies the sign: the masks take it off.
    """
    x.bitwise_xor_((x >> 16).bitwise_and_(0xFFFF)).mul_(_FIRST)
    x.bitwise_xor_((x >> 15).bitwise_and_(0x1FFFF)).mul_(_SECOND)
    return x.bitwise_xor_((x >> 16).bitwise_and_(0xFFFF))


def bits(seed: int | Tensor, *counters: Tensor) -> Tensor:
    """31 random bits (int32 ≥ 0) for each combination of the counters, which broadcast against each other."""
    return mixed_in(seed, *counters).bitwise_and_(0x7FFFFFFF)


def mixed_in(seed: int | Tensor, *counters: Tensor) -> Tensor:
    """int32: the seed, a whole number or int64 [], and these counters; others may follow."""
    if isinstance(seed, Tensor):
        state = (seed ^ (seed >> 32)).to(counters[0].device, torch.int32)  # whose high bits fall away
    else:
        state = torch.full((), _wrapped(seed), dtype=torch.int32, device=counters[0].device)
    state = mix(state)
    for counter in counters:
        # Each counter is mixed in after the last one was scrambled: (1, 2) and (2, 1) do not meet.
        state = mix(state + counter.to(torch.int32) * _GOLDEN)
    return state


def uniform(seed: int | Tensor, *counters: Tensor, dtype: torch.dtype = torch.float32) -> Tensor:
    """Uniform numbers in the open interval (0, 1): 23 bits and a half, which float32 holds exactly."""
    return bits(seed, *counters).bitwise_right_shift_(8).to(dtype).add_(0.5).mul_(2.0**-23)


def gumbel(seed: int | Tensor, *counters: Tensor, dtype: torch.dtype = torch.float32) -> Tensor:
    """Gumbel noise −log(−log u): argmax(energies + noise) is a sample from softmax(energies)."""
    return uniform(seed, *counters, dtype=dtype).log_().neg_().log_().neg_()


def _wrapped(seed: int) -> int:
    """The low 32 bits of a seed as a signed 32-bit number, the high ones folded in."""
    low = (seed ^ (seed >> 32)) & 0xFFFFFFFF
    return low - (1 << 32) if low >= 1 << 31 else low
