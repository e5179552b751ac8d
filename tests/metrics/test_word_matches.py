"""Which words the edit distance matches, against all alignments there are."""

from collections.abc import Iterator

import pytest
from hypothesis import given
from hypothesis import strategies as st

from regard.metrics.word_matches import EDIT, aligned_words, matched_words

WORDS = st.lists(st.sampled_from("abc"), max_size=5)


def alignments(words: list[str], reference: list[str]) -> Iterator[tuple[int, int]]:
    """Yield (edits, matches) of every alignment."""
    if not words or not reference:
        yield len(words) + len(reference), 0
        return
    equal = words[0] == reference[0]
    for edits, matches in alignments(words[1:], reference[1:]):
        yield edits + (not equal), matches + equal
    for edits, matches in alignments(words[1:], reference):
        yield edits + 1, matches
    for edits, matches in alignments(words, reference[1:]):
        yield edits + 1, matches


@given(WORDS, WORDS)
def test_the_fewest_edits_then_the_most_matches_of_all_alignments(words: list[str], reference: list[str]) -> None:
    edits, missed = min((edits, -matches) for edits, matches in alignments(words, reference))
    cost, matched = aligned_words(words, reference)
    assert cost == EDIT * edits + missed
    assert sum(matched) == -missed and len(matched) == len(words)


@given(WORDS, WORDS)
def test_matched_words_are_a_common_subsequence(words: list[str], reference: list[str]) -> None:
    rest = iter(reference)
    matched = aligned_words(words, reference)[1]
    assert all(word in rest for word, is_matched in zip(words, matched, strict=True) if is_matched)


@pytest.mark.parametrize(
    ("words", "references", "expected"),
    [
        ("a b c", ["a b c"], "111"),
        ("a x c", ["a b c"], "101"),
        ("a a b", ["a b"], "101"),
        ("b a", ["a b"], "10"),  # two edits either way: more matches decide
        ("a b c d", ["x y z w", "a b q d"], "1101"),
        ("a b", ["a b c d e f", "a x"], "10"),  # the closest reference decides
        ("", ["a"], ""),
        ("a", [""], "0"),
    ],
)
def test_by_the_closest_reference(words: str, references: list[str], expected: str) -> None:
    matched = matched_words(words.split(), [each.split() for each in references])
    assert "".join("01"[each] for each in matched) == expected


def test_no_reference() -> None:
    with pytest.raises(ValueError, match="references: expected at least one"):
        matched_words(["a"], [])
