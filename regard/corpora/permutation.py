"""Random permutations that are computed element by element, so that none has to be stored.

A Feistel network on the bits of a number permutes the numbers below a power of 4, whatever its round function is; a
number that lands outside of the range is permuted again until it lands inside (cycle walking, Black and Rogaway 2002).
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from regard.corpora.arrays import Ints

ROUNDS = 4
_Words = NDArray[np.uint64]


def permuted(numbers: Ints, sizes: Ints, keys: Ints) -> Ints:
    """Return where each number goes in the permutation of range(its size) that its key gives."""
    values, half, salt = numbers.astype(np.uint64), _half_bits(sizes), mixed(keys.astype(np.uint64))
    todo: Ints = np.arange(len(numbers))
    while len(todo):
        values[todo] = _network(values[todo], half[todo], salt[todo])
        todo = todo[values[todo] >= sizes[todo].astype(np.uint64)]
    return values.astype(np.int64)


def _network(values: _Words, half: _Words, salt: _Words) -> _Words:
    """Permute the numbers of 2 · half bits."""
    mask = (np.uint64(1) << half) - np.uint64(1)
    left, right = values >> half, values & mask
    for number in range(ROUNDS):
        left, right = right, left ^ (mixed(right + salt + np.uint64(number << 56)) & mask)
    return (left << half) | right


def _half_bits(sizes: Ints) -> _Words:
    """Return half of the bits, rounded up, that the numbers below each size have."""
    bits = np.frexp((sizes - 1).astype(np.float64))[1]
    return ((np.maximum(bits, 0) + 1) // 2).astype(np.uint64)


def mixed(values: _Words) -> _Words:
    """Return a hash of each number (the finalizer of SplitMix64, Steele et al. 2014)."""
    values = values + np.uint64(0x9E3779B97F4A7C15)
    values = (values ^ (values >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    values = (values ^ (values >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return values ^ (values >> np.uint64(31))
