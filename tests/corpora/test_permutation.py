"""Permutations: of every size, different for different keys, and without visible structure."""

import numpy as np
import pytest

from regard.corpora.permutation import permuted


@pytest.mark.parametrize("size", [1, 2, 3, 4, 5, 7, 16, 17, 100, 1000, 4097])
def test_every_number_once(size: int) -> None:
    for key in range(5):
        result = permuted(np.arange(size), np.full(size, size), np.full(size, key))
        assert sorted(result.tolist()) == list(range(size))


def test_sizes_and_keys_may_differ_from_number_to_number() -> None:
    sizes = np.array([3] * 3 + [50] * 50)
    keys = np.array([7] * 3 + [8] * 50)
    together = permuted(np.concatenate([np.arange(3), np.arange(50)]), sizes, keys)
    assert together[:3].tolist() == permuted(np.arange(3), sizes[:3], keys[:3]).tolist()
    assert together[3:].tolist() == permuted(np.arange(50), sizes[3:], keys[3:]).tolist()


def test_it_shuffles() -> None:
    size, keys = 30, 3000
    numbers = np.tile(np.arange(size), keys)
    result = permuted(numbers, np.full(len(numbers), size), np.repeat(np.arange(keys), size)).reshape(keys, size)
    counts = np.stack([np.bincount(column, minlength=size) for column in result.T])  # [number, where it goes]
    expected = keys / size
    chi_squared = float(((counts - expected) ** 2 / expected).sum())
    assert chi_squared < 1.25 * (size - 1) ** 2  # uniform: (size − 1)² on average, a standard deviation of 5 %
    neighbours = np.mean(np.abs(np.diff(result, axis=1)) == 1)
    assert neighbours == pytest.approx(2 / size, rel=0.15)
