"""How long an output may be."""

import random

import pytest

from regard.search.hypothesis import Length


@pytest.mark.parametrize(
    ("length", "source", "cap"),
    [
        (Length(1.5, 3), 10, 18),
        (Length(1.5, 3.4), 10, 18),
        (Length(0, 0), 10, 1),
        (Length(0, 2, least=5), 10, 5),
        (Length(2, 0, most=7), 10, 7),
        (Length(1000, 0), 10, 1000),
    ],
)
def test_cap(length: Length, source: int, cap: int) -> None:
    assert length.cap(source) == cap


@pytest.mark.parametrize("ratio", [0.3, 1.0, 2.5])
def test_the_learned_cap_lies_above_nearly_all_pairs_and_not_far(ratio: float) -> None:
    drawn = random.Random(1)
    pairs = []
    for _ in range(2000):
        source = drawn.randint(1, 40)
        pairs.append((source, max(1, round(source * ratio + drawn.gauss(0, 2)))))
    length = Length.learned(pairs)
    assert sum(target < length.cap(source) for source, target in pairs) >= 0.998 * len(pairs)
    for source in (10, 40):
        assert length.cap(source) < 2 * ratio * source + 25


def test_one_pair_is_enough() -> None:
    assert Length.learned([(4, 6)]).cap(4) > 6
    assert Length.learned([(0, 1)]).cap(0) >= 1
