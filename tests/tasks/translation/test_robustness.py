"""A translator trained on sentences understands what people type: capitals, lower case, no punctuation, a word."""

from __future__ import annotations

from pathlib import Path

import pytest

import regard
from tests.training import toy

SETTINGS = toy.LEARNS | {
    "training.epochs": 60,
    "training.word_pairs": 0.25,
    "training.lower_case": 0.1,
    "training.no_punctuation": 0.2,
}


@pytest.fixture(scope="module")
def translator(tmp_path_factory: pytest.TempPathFactory) -> regard.Translator:
    out: Path = tmp_path_factory.mktemp("robust") / "model"
    return regard.train(
        toy.PAIRS, out, dev=toy.PAIRS[:16], settings=SETTINGS, device="cpu", precision="fp32", threads=1
    )


def right(translator: regard.Translator, sources: list[str], stop: str = "") -> float:
    """The fraction of translations that are right; without a full stop, they may have none."""
    expected = [target.rstrip(".") + stop for _, target in toy.PAIRS]
    answers = translator.translate(sources)
    return sum(one == two for one, two in zip(answers, expected, strict=True)) / len(expected)


def test_case_and_blanks_do_not_matter(translator: regard.Translator) -> None:
    sources = [source for source, _ in toy.PAIRS]
    plain = translator.translate(sources)
    assert right(translator, sources, ".") > 0.8
    assert translator.translate([source.upper() for source in sources]) == plain
    assert translator.translate([source.lower() for source in sources]) == plain
    assert translator.translate([source.replace(" ", "  ") for source in sources]) == plain


def test_punctuation_does_not_matter(translator: regard.Translator) -> None:
    assert right(translator, [source.rstrip(".") for source, _ in toy.PAIRS]) > 0.8
    assert right(translator, [source.rstrip(".").upper() for source, _ in toy.PAIRS]) > 0.8


def test_a_word_is_a_word(translator: regard.Translator) -> None:
    words = {"Rahul": "राहुल", "Sita": "सीता", "book": "पुस्तक", "mango": "आंबा", "wants": "मागतो"}
    assert translator.card["word_pairs"] > 5
    assert translator.translate(list(words)) == list(words.values())
    assert translator.translate([word.upper() for word in words]) == list(words.values())
