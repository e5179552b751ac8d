"""The words with which a translation can go on."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

import regard
from regard.tasks.translation.next_words import MIN_PROBABILITY, next_words

SOURCE = "The boy sees a mango."


@pytest.fixture(scope="module")
def translator(model: Path) -> regard.Translator:
    return regard.load(model, "cpu")  # type: ignore[return-value]


def test_words_after_a_prefix(translator: regard.Translator) -> None:
    words = next_words(translator, SOURCE, "मुलगा", 6)
    assert 1 <= len(words) <= 6
    probabilities = [each.probability for each in words]
    assert probabilities == sorted(probabilities, reverse=True) and sum(probabilities) <= 1 + 1e-5
    assert min(probabilities) >= MIN_PROBABILITY
    assert len({each.word for each in words}) == len(words)
    for each in words:
        assert each.text.startswith("मुलगा")
        assert each.text[len("मुलगा") :].strip().startswith(each.word) or each.word.startswith("मुलगा")


def test_the_word_of_a_known_translation_is_among_them(translator: regard.Translator) -> None:
    known = "मुलगा पुस्तक पाहतो."
    words = {each.word: each for each in next_words(translator, SOURCE, "मुलगा", 1, known)}
    (trace,) = translator.force_decode([SOURCE], [known])
    own = [step.probability for step, group in zip(trace.steps, trace.target.groups, strict=True) if group == 1]
    assert words["पुस्तक"].probability == pytest.approx(float(np.prod(own)), rel=1e-3)


def test_without_a_prefix(translator: regard.Translator) -> None:
    assert next_words(translator, SOURCE)[0].word
