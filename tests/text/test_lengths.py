"""Over-long lines are left out and counted; ordinary ones never."""

from __future__ import annotations

import pytest

from regard.text.lengths import MIN_CHARACTER_LIMIT, TokenLimit, character_limit, limit_from, within_characters
from regard.text.pairs import Corpus, Pair


def corpus(*lengths: int) -> Corpus:
    pairs = [Pair("x" * length, "y", line) for line, length in enumerate(lengths, 1)]
    return Corpus(pairs, len(pairs), {"empty line": [99]}, "pairs.tsv")


@pytest.mark.parametrize("count", [2, 3, 5, 20, 21, 100, 1500])
@pytest.mark.parametrize("long", [20_000, 5_000_000])
def test_one_long_line_never_raises_the_limit(count: int, long: int) -> None:
    lengths = [*range(30, 30 + count - 1), long]
    assert limit_from(lengths, 100) == limit_from([*lengths[:-1], 30 + count], 100) < long


@pytest.mark.parametrize(
    "lengths", [[26] * 950 + [194] * 50, [10] * 500 + [1500] * 500, [3081] * 900 + [5996] * 90 + [13704] * 10, [900, 3]]
)
def test_ordinary_corpora_lose_nothing(lengths: list[int]) -> None:
    given = corpus(*lengths)
    assert within_characters(given, character_limit(given.pairs)) is given


def test_a_long_line_is_counted_with_the_limit_and_its_key() -> None:
    result = within_characters(corpus(30, 5000, 20), 1000)
    assert [pair.line for pair in result.pairs] == [1, 3] and result.lines == 3
    assert result.report()[1] == "1 line skipped, longer than 1,000 characters (training.max_characters): 2"


def test_the_target_counts_too() -> None:
    given = Corpus([Pair("a", "b" * 2000, 1), Pair("a", "b", 2)], 2, {}, "x")
    assert [pair.line for pair in within_characters(given, MIN_CHARACTER_LIMIT).pairs] == [2]


def test_a_limit_that_leaves_nothing_is_an_error() -> None:
    with pytest.raises(ValueError, match=r"pairs\.tsv: no pair left.*5 characters \(training\.max_characters\)"):
        within_characters(corpus(30, 50), 5)
    pair = Pair("a", "b", 1)
    with pytest.raises(ValueError, match=r"no pair left.*2 tokens \(training\.max_tokens\)"):
        TokenLimit.of([(pair, 9)], [(pair, 1)], 2)


def test_tokens_are_limited_in_training_and_dev() -> None:
    pairs = [Pair("a", "b", line) for line in range(1, 31)]
    counts = [20] * 29 + [3000]
    result = TokenLimit.of(list(zip(pairs, counts, strict=True)), list(zip(pairs, counts[::-1], strict=True)), None)
    assert (result.limit, result.train, result.dev) == (400, list(range(29)), list(range(1, 30)))
    reason = "1 line skipped, longer than 400 tokens (training.max_tokens)"
    assert result.skipped == [f"{reason}: 30", f"dev: {reason}: 1"]


def test_dev_may_be_longer_than_training() -> None:
    pair = Pair("a", "b", 1)
    assert TokenLimit.of([(pair, 10)], [(pair, 900)] * 3, 50).dev == [0, 1, 2]
