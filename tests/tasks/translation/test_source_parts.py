"""Texts of several sentences, and texts longer than anything in training."""

from __future__ import annotations

from dataclasses import replace

import pytest

from regard.tasks.translation.predictor import Translator
from regard.tasks.translation.search_options import Search
from tests.training import toy

SOURCES = [source for source, _ in toy.PAIRS]


def test_a_long_text_is_cut_at_its_sentence_ends(translator: Translator) -> None:
    text = " ".join(SOURCES[:6])
    (answer,) = translator.answers([text])
    assert answer.text == " ".join(translator.translate(SOURCES[:6]))
    (notice,) = answer.notices
    assert "longer than anything in training" in notice and "in 6 parts" in notice
    best = answer.translations[0]
    assert [trace.source.text for trace in best.traces] == SOURCES[:6]
    assert [trace.target.text for trace in best.traces] == translator.translate(SOURCES[:6])
    singles = [each.translations[0] for each in translator.answers(SOURCES[:6])]
    assert best.log_probability == pytest.approx(sum(each.log_probability for each in singles), rel=1e-4)


@pytest.mark.parametrize("end", [".", "?", "!", "।", "。"])
def test_every_sentence_end_counts(end: str, translator: Translator) -> None:
    text = " ".join(source.replace(".", end) for source in SOURCES[:4])
    (answer,) = translator.answers([text])
    assert len(answer.translations[0].traces) == 4
    (joined,) = translator.answers([text.replace(f"{end} ", end)])
    assert len(joined.translations[0].traces) == (4 if end in "।。" else 1), "the others also stand inside of words"


def test_numbers_and_runs_of_marks_are_not_cut_apart(translator: Translator) -> None:
    text = "The boy sees 3.14 mangoes?! " + " ".join(SOURCES[:3]) + ".."
    (answer,) = translator.answers([text])
    parts = [trace.source.text for trace in answer.translations[0].traces]
    assert parts == ["The boy sees 3.14 mangoes?!", *SOURCES[:2], SOURCES[2] + ".."]


def test_a_long_text_without_sentence_ends_is_answered_with_a_notice(translator: Translator) -> None:
    text = " ".join(source.rstrip(".") for source in SOURCES[:8])
    (answer,) = translator.answers([text])
    assert answer.text and len(answer.translations[0].traces) == 1
    (notice,) = answer.notices
    assert "longer than anything in training" in notice and "no sentence ends" in notice


@pytest.mark.parametrize("text", [" ".join(SOURCES * 8).replace(".", ""), "x" * 20_000, "漢字" * 1000])
def test_a_text_of_any_length_is_translated_in_parts_that_training_could_have_seen(
    text: str, translator: Translator
) -> None:
    """Nothing is dropped, and memory stays what short texts take."""
    (answer,) = translator.answers([text], Search(beam=1))
    traces = answer.translations[0].traces
    assert "".join(trace.source.text for trace in traces).replace(" ", "") == text.replace(" ", "")
    longest = translator.card["longest_source"]
    assert max(len(trace.source.tokens or []) for trace in traces) <= longest + 5
    (notice,) = answer.notices
    assert f"longer than anything in training ({longest} tokens): translated in {len(traces)} parts" == notice


def test_a_very_long_word_is_answered(translator: Translator) -> None:
    (answer,) = translator.answers(["x" * 3000], Search(beam=1))
    assert isinstance(answer.text, str) and answer.notices


def test_sentences_are_translated_one_by_one_unless_training_had_several(translator: Translator) -> None:
    pair = list(SOURCES[:2])
    assert translator.card["several_sentences"] == 0.0
    roomy = replace(translator, card=translator.card | {"longest_source": 100})
    (answer,) = roomy.answers([" ".join(pair)])
    assert [trace.source.text for trace in answer.translations[0].traces] == pair and not answer.notices
    assert answer.text == " ".join(translator.translate(pair))
    trusted = replace(roomy, card=roomy.card | {"several_sentences": 0.02})
    assert [len(model.parts(" ".join(pair))) for model in (roomy, trusted)] == [2, 1]


def test_a_prefix_begins_the_translation_of_all_sentences(translator: Translator) -> None:
    text = " ".join(SOURCES[:2])
    roomy = replace(translator, card=translator.card | {"longest_source": 100})
    (answer,) = roomy.answers([text], prefix="मुलगा")
    assert answer.text.startswith("मुलगा") and len(answer.translations[0].traces) == 1
    (answer,) = translator.answers([text], prefix="मुलगा")
    first, second = answer.translations[0].traces
    assert first.target.text.startswith("मुलगा")
    assert second.target.text == translator.answers([text])[0].translations[0].traces[1].target.text


def test_a_text_as_long_as_training_is_left_whole(translator: Translator) -> None:
    longest = max(SOURCES, key=lambda text: len(translator.vocabularies.source.encode(text)))
    (answer,) = translator.answers([longest.replace(" ", ". ", 1)[: len(longest)]])
    assert len(answer.translations[0].traces) == 1 and answer.notices == []
