"""How long an output may be."""

import random

import pytest

from regard.search.hypothesis import LengthLimit


@pytest.mark.parametrize(
    ("length", "source", "cap"),
    [
        (LengthLimit(1.5, 3), 10, 18),
        (LengthLimit(1.5, 3.4), 10, 18),
        (LengthLimit(0, 0), 10, 1),
        (LengthLimit(0, 2, shortest=5), 10, 5),
        (LengthLimit(2, 0, longest=7), 10, 7),
        (LengthLimit(1000, 0), 10, 1000),
    ],
)
def test_cap(length: LengthLimit, source: int, cap: int) -> None:
    assert length.max_length(source) == cap


@pytest.mark.parametrize("ratio", [0.3, 1.0, 2.5])
def test_the_learned_cap_lies_above_nearly_all_pairs_and_not_far(ratio: float) -> None:
    drawn = random.Random(1)
    pairs = []
    for _ in range(2000):
        source = drawn.randint(1, 40)
        pairs.append((source, max(1, round(source * ratio + drawn.gauss(0, 2)))))
    length = LengthLimit.learned(pairs)
    assert sum(target < length.max_length(source) for source, target in pairs) >= 0.998 * len(pairs)
    for source in (10, 40):
        assert length.max_length(source) < 2 * ratio * source + 25


def test_one_pair_is_enough() -> None:
    assert LengthLimit.learned([(4, 6)]).max_length(4) > 6
    assert LengthLimit.learned([(0, 1)]).max_length(0) >= 1


def test_a_limit_that_covers_two_allows_what_either_does() -> None:
    steep, flat = LengthLimit(2.0, 1.0), LengthLimit(1.0, 9.0)
    both = steep.covering(flat)
    for length in (1, 5, 40):
        assert both.max_length(length) >= max(steep.max_length(length), flat.max_length(length))
