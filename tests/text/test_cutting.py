"""Parts of a long text: short enough, and nothing lost."""

from __future__ import annotations

import random

import pytest

from regard.text.lengths import cut
from regard.text.normal import tidy
from regard.text.vocabulary import learn_subwords
from tests.training import toy

VOCABULARY = learn_subwords([text for pair in toy.PAIRS for text in pair], 200)


@pytest.mark.parametrize("seed", range(40))
def test_parts_have_few_tokens_and_join_up_to_the_text(seed: int) -> None:
    drawn = random.Random(seed)
    words = ["mango", "boy", "漢字" * drawn.randint(1, 40), "😀", "x" * drawn.randint(1, 300), "माझा", "a.b", "1,000"]
    text = tidy(" ".join(drawn.choices(words, k=drawn.randint(1, 60))))
    most = drawn.randint(4, 40)
    parts = cut(text, VOCABULARY.pieces(text), most)
    assert "".join(parts).replace(" ", "") == text.replace(" ", "")
    # Cut within a word, it may have a mark more; and what is spelled in bytes is not cut within a character.
    assert all(len(VOCABULARY.encode(part)) <= most + 4 for part in parts)


def test_cuts_are_at_blanks_where_there_are_any() -> None:
    text = " ".join(["mango"] * 50)
    parts = cut(text, VOCABULARY.pieces(text), 7)
    assert {word for part in parts for word in part.split()} == {"mango"} and len(parts) > 5
    assert " ".join(parts) == text


@pytest.mark.parametrize("text", ["", "mango"])
def test_what_is_short_stays_whole(text: str) -> None:
    assert cut(text, VOCABULARY.pieces(text), 50) == [text][: len(text)]
