"""From pairs and translators to links."""

from typing import Any

import pytest

from regard.alignment.aligner import BATCH_SIZE, AlignmentOptions, align_by_attention, weights
from regard.alignment.head_selection import HeadSelection
from regard.alignment.links import parse_links
from regard.alignment.rows import MAX_CHARACTERS
from tests.alignment.hand_made import Told, same_word

PAIRS = [
    ("a b c", "B c d"),
    ("", "x"),
    ("x", "  "),
    ("", ""),
    ("x x", "x"),
    ("q", "r"),
]


def test_each_pair_in_its_place_and_empty_sides_without_links() -> None:
    translator = Told(same_word)
    result = list(align_by_attention(PAIRS, translator))
    assert result == [parse_links("1-0 2-1"), *[frozenset()] * 3, parse_links("0-0"), frozenset()]
    assert translator.asked == [PAIRS[0], PAIRS[4], PAIRS[5]], "a model is not asked about nothing"


def test_more_pairs_than_are_aligned_together() -> None:
    pairs = [("a b", "b")] * BATCH_SIZE + [("", "")] + [("a", "a")] * BATCH_SIZE
    result = list(align_by_attention(pairs, Told(same_word)))
    assert result == [{(1, 0)}] * BATCH_SIZE + [frozenset()] + [{(0, 0)}] * BATCH_SIZE


def test_two_directions_are_put_together_source_first() -> None:
    """Forward links d to c; backward, which looks from source to target, links a to b."""

    def forward(one: str, other: str) -> float:
        return 0.9 * ((one, other) in {("b", "B"), ("c", "c"), ("c", "d")})

    def backward(one: str, other: str) -> float:
        return 0.9 * ((one, other) in {("B", "b"), ("c", "c"), ("B", "a")})

    def links(how: str, pairs: list[tuple[str, str]] = PAIRS[:1]) -> list[frozenset[tuple[int, int]]]:
        return list(align_by_attention(pairs, Told(forward), Told(backward), AlignmentOptions(symmetrization=how)))  # type: ignore[arg-type]

    assert links("intersection") == [parse_links("1-0 2-1")]
    assert links("union") == [parse_links("0-0 1-0 2-1 2-2")]
    assert links("grow-diag-final-and") == [parse_links("0-0 1-0 2-1 2-2")]
    assert links("soft") == [parse_links("1-0 2-1")]
    assert links("union", PAIRS)[1:4] == [frozenset()] * 3


def test_the_way_reaches_the_links() -> None:
    pairs = [("a b", "a b")]
    assert list(
        align_by_attention(pairs, Told(same_word), options=AlignmentOptions(selection=HeadSelection(next_step=True)))
    ) == [parse_links("1-0")], "the row of b, then of the end"
    assert list(align_by_attention(pairs, Told(same_word), options=AlignmentOptions(min_weight=0.7))) == [frozenset()]
    weak = Told(lambda one, other: 0.1 * (one == other))
    assert list(align_by_attention(pairs, weak)) == [frozenset()], "both look at the end token"
    assert list(align_by_attention(pairs, weak, options=AlignmentOptions(end=False))) == [parse_links("0-0 1-1")]
    assert list(align_by_attention(pairs, weak, weak, options=AlignmentOptions(end=False))) == [parse_links("0-0 1-1")]
    both = Told(lambda one, other: 0.45)
    assert list(align_by_attention(pairs, both, options=AlignmentOptions("threshold"))) == [
        parse_links("0-0 0-1 1-0 1-1")
    ]
    assert list(align_by_attention(pairs, both, both, AlignmentOptions("mutual", "soft"))) == [parse_links("0-0")]


def test_a_trace_of_another_text_is_told_with_its_line() -> None:
    class Deaf(Told):
        def force_decode(self, sources, targets):  # type: ignore[no-untyped-def]
            return super().force_decode(sources, ["other"] * len(targets))

    with pytest.raises(ValueError, match=r"^line 2: target: expected a trace of 'b'"):
        list(align_by_attention([("a", ""), ("a", "b")], Deaf(same_word)))


def test_unknown_ways_are_refused() -> None:
    with pytest.raises(ValueError, match=r"symmetrization: expected one of .*, soft, got 'best'"):
        AlignmentOptions(symmetrization="best")  # type: ignore[arg-type]
    with pytest.raises(ValueError, match="method: expected one of argmax, threshold, mutual, got 'best'"):
        AlignmentOptions("best")  # type: ignore[arg-type]


def test_a_pair_that_is_too_long_has_no_links_and_is_told() -> None:
    """The model is not asked, nor are its tokens counted: of 5 MB on both sides there is no table that fits."""
    long = "a " * (MAX_CHARACTERS // 2 + 1)
    pairs = [("a b", "b"), (long, "a"), ("a", "x " * 1_000_000), ("a", "a")]
    translator, report = Told(same_word), list[str]()
    result = list(align_by_attention(pairs, translator, notify=report.append))
    assert result == [{(1, 0)}, frozenset(), frozenset(), {(0, 0)}]
    assert translator.asked == [pairs[0], pairs[3]]
    assert report == ["2 lines skipped, longer than 2,000 characters, no links there: 2, 3"]
    assert list(align_by_attention(pairs, Told(same_word), Told(same_word)))[1] == frozenset()


def test_long_pairs_are_decoded_a_few_at_a_time() -> None:
    """Weights grow with the square of the length: 256 long pairs at once would fill the memory."""
    batches: list[int] = []

    class Counts:
        def force_decode(self, sources: list[str], targets: list[str]) -> list[Any]:
            batches.append(len(sources))
            raise InterruptedError

    for length, expected in ((10, 256), (1000, 9), (2000, 3)):
        with pytest.raises(InterruptedError):
            next(weights([("x" * length, "y" * length)] * 300, Counts()))
        assert batches.pop() == expected
