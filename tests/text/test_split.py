"""The dev part: its size, what it keeps together, and what moves it."""

import random

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from regard.text.normal import match_key
from regard.text.pairs import Pair
from regard.text.split import leaked_sources, shared_targets, split


def numbered(count: int) -> list[Pair]:
    return [Pair(f"source {k}", f"target {k}", k + 1) for k in range(count)]


def keys(pairs: list[Pair]) -> set[str]:
    return {match_key(pair.source) for pair in pairs}


@pytest.mark.parametrize(
    ("sources", "dev"),
    [(5, 1), (9, 1), (100, 20), (250, 50), (1_000, 50), (2_000, 100), (20_000, 1_000), (21_000, 1_000)],
)
def test_size_is_a_twentieth_within_bounds(sources: int, dev: int) -> None:
    train_part, dev_part = split(numbered(sources))
    assert len(dev_part) == dev
    assert len(train_part) == sources - dev


@pytest.mark.parametrize("sources", [0, 1, 4])
def test_too_few_sources_are_an_error_that_names_the_way_out(sources: int) -> None:
    with pytest.raises(ValueError, match=f"5 distinct sources, {sources} came.*--dev"):
        split(numbered(sources) * 3)


words = st.text(st.sampled_from("ab'A !?é"), max_size=4)
drawn = st.lists(st.builds(Pair, words, words, st.just(1)), min_size=30, max_size=120)


@given(drawn)
@settings(max_examples=60)
def test_every_line_once_in_order_and_sources_kept_together(pairs: list[Pair]) -> None:
    if len(keys(pairs)) < 5:
        return
    pairs = [Pair(pair.source, pair.target, line) for line, pair in enumerate(pairs, start=1)]
    train, dev = split(pairs)
    assert sorted([*train, *dev], key=lambda pair: pair.line) == pairs
    assert [pair.line for pair in train] == sorted(pair.line for pair in train)
    assert [pair.line for pair in dev] == sorted(pair.line for pair in dev)
    assert not keys(train) & keys(dev)
    assert leaked_sources(train, dev) == 0


def test_order_moves_nothing() -> None:
    pairs = numbered(500)
    shuffled = random.Random(0).sample(pairs, len(pairs))
    assert keys(split(pairs)[1]) == keys(split(shuffled)[1])


def test_other_references_and_spellings_move_nothing() -> None:
    pairs = numbered(500)
    more = [*pairs, *(Pair(pair.source.upper() + "!", "other", 0) for pair in pairs[::3])]
    assert keys(split(pairs)[1]) == keys(split(more)[1])


def test_growth_keeps_what_was_dev_but_for_sources_outranked() -> None:
    before, after = keys(split(numbered(2_000))[1]), keys(split(numbered(4_000))[1])
    old = keys(numbered(2_000))
    assert len(before) == 100 and len(after) == 200
    assert (after & old) <= before or before <= (after & old)
    assert len(before & after) > 70


def test_choice_is_the_same_everywhere() -> None:
    """Not by Python's own hash, which changes from run to run."""
    assert sorted(pair.line for pair in split(numbered(20))[1]) == [1, 2, 9, 13]


def test_overlaps_are_counted_once_for_each_text() -> None:
    train = [Pair("Go.", "जा.", 1), Pair("Run!", "पळ!", 2)]
    dev = [Pair("go", "जा", 1), Pair("GO!", "निघ", 2), Pair("Leave.", "जा!", 3)]
    assert leaked_sources(train, dev) == 1
    assert shared_targets(train, dev) == 1
    assert leaked_sources(train, []) == shared_targets([], dev) == 0
