"""The terms of a glossary in translations."""

from __future__ import annotations

from pathlib import Path

import pytest

import regard
from regard.look.trace import MarkedTerm, Trace
from regard.tasks.translation.predictor import Translator
from regard.tasks.translation.search_options import Search
from regard.tasks.translation.terms import begins_word, marked
from regard.text.glossary import Glossary, Term
from regard.text.vocabulary import END, learn_subwords, learn_words
from tests.training import toy

SOURCES = [source for source, _ in toy.PAIRS]


@pytest.fixture(scope="module", params=[("rnn", False), ("transformer", False), ("rnn", True), ("transformer", True)])
def translator(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Translator:
    """Translators without and with `training.glossary`."""
    out = tmp_path_factory.mktemp("terms") / "model"
    recipe, shown = request.param
    settings = toy.RECIPES[recipe] | {"training.glossary": shown, "training.placeholders": 0.1}
    regard.train(toy.PAIRS, out, recipe=recipe, settings=settings, device="cpu", precision="fp32")
    return regard.load(out, "cpu", "fp32")


@pytest.mark.parametrize("term", ["zebra", "Qué tal", "अआ", "漢字", "x-y"])
def test_a_term_stands_in_the_translation_and_is_marked(translator: Translator, term: str) -> None:
    source = SOURCES[0]
    word = source.split()[-1].strip(".?!")
    glossary = Glossary.of([(word, term)])
    (answer,) = translator.answers([source], Search(n_best=3, beam=5), details=True, glossary=glossary)
    for translation in answer.translations:
        (trace,) = translation.traces
        (mark,) = trace.terms
        assert trace.source.text[slice(*mark.source)] == word
        assert trace.target.text[slice(*mark.target)].casefold() == term.casefold()
        assert trace.weights.shape == (len(trace.target.pieces), len(trace.source.pieces))
    assert answer.translations[0].traces[0].steps


def test_texts_without_terms_are_translated_as_ever(translator: Translator) -> None:
    texts = ["", *SOURCES[:9]]
    glossary = Glossary.of([("nowhere", "zebra")])
    assert translator.translate(texts, glossary=glossary) == translator.translate(texts)
    word = SOURCES[3].split()[0]
    own = [None, None, None, None, Glossary.of([(word, "zebra")]), *[None] * 5]
    expected = translator.translate(texts)
    result = translator.translate(texts, glossary=own)
    assert "zebra" in result[4].lower() and expected[:4] + expected[5:] == result[:4] + result[5:]


def test_one_of_several_forms_stands(translator: Translator) -> None:
    word = SOURCES[0].split()[0]
    output = translator.translate(SOURCES[0], glossary=Glossary.of([(word, ["zebra", "zebras"])]))
    assert {"zebra", "zebras"} & set(output.lower().strip(".").split())


def test_a_term_of_the_prefix_is_not_asked_for_again(translator: Translator) -> None:
    word = SOURCES[0].split()[0]
    output = translator.translate(SOURCES[0], prefix="zebra", glossary=Glossary.of([(word, "zebra")]))
    assert output.lower().count("zebra") == 1
    output = translator.translate(SOURCES[0], prefix="so", glossary=Glossary.of([(word, "zebra")]))
    assert output.startswith("so") and "zebra" in output


def test_terms_go_with_everything_else(translator: Translator) -> None:
    """The source of a trace is the user's, whatever the model reads."""
    source = "Rahul sees 25 books. Sita wants 31 mangoes."
    glossary = Glossary.of([("sees", ["zebra", "zebras"]), ("mangoes", "अआ इई"), ("Sita", "=")])
    texts = [source, SOURCES[0], source * 4]
    answers = translator.answers(texts, Search(n_best=2), "so", True, glossary, keep="numbers", confidence=True)
    for text, answer in zip(texts, answers, strict=True):
        assert answer.source == text
        for each in answer.translations:
            assert "so" in each.text and all(number in each.text for number in ("25", "31") if number in text)
            assert len(each.traces) > 1 or text != source * 4
            for trace in each.traces:
                assert all(word in text for word in trace.source.text.split())
                assert len(trace.source.tokens) == len(trace.source.pieces)
                assert trace.weights.shape == (len(trace.target.pieces), len(trace.source.pieces))
                assert trace.weights.sum(1) == pytest.approx(1, abs=1e-3)
                assert Trace.from_dict(trace.as_dict()).source == trace.source
    assert all(form in answers[0].text for form in ("zebra", "अआ इई", "Sita"))
    assert answers[0].translations[0].confidence is not None


def test_an_ensemble_uses_terms(translator: Translator) -> None:
    word = SOURCES[0].split()[-1].strip(".")
    assert "zebra" in translator.ensemble(translator).translate(SOURCES[0], glossary=Glossary.of([(word, "zebra")]))


def test_samples_are_refused(translator: Translator) -> None:
    with pytest.raises(ValueError, match="glossary: expected beam search with it, not samples"):
        translator.translate("a", Search(sample=True), glossary=Glossary.of([("a", "b")]))


def test_what_may_follow_a_term() -> None:
    vocabulary = learn_subwords(["the cat sat, there. 漢字"] * 4, 40)
    allowed = begins_word(vocabulary)
    for name, token in vocabulary.tokens.items():
        if len(name) == 1 or name.startswith("\x1f"):
            assert bool(allowed[token]) == (not name.isalpha() or name in "漢字"), name
    assert bool(allowed[END]) and not bool(allowed[0]) and not bool(allowed[10])  # padding, and a byte
    assert bool(begins_word(learn_words(["a b"])).all())


def test_marks_are_whole_words() -> None:
    term = Term(0, 1, ("cat", "cats"))
    assert marked([term], "category cats cat") == [MarkedTerm((0, 1), (9, 13))]
    assert marked([term], "Cat, here") == [MarkedTerm((0, 1), (0, 3))]
    assert marked([term], "concat category") == []


def test_a_vocabulary_of_words_cannot_spell_other_words(tmp_path: Path) -> None:
    settings = {"vocabulary.kind": "words", "training.epochs": 1}
    translator = regard.train(toy.PAIRS, tmp_path / "words", settings=settings, recipe="rnn", device="cpu")
    assert isinstance(translator, Translator)
    word = SOURCES[0].split()[0]
    with pytest.raises(ValueError, match="glossary: 'zebra' has a word that this model's vocabulary of words does not"):
        translator.translate(SOURCES[0], glossary=Glossary.of([(word, "zebra")]))


def test_a_vocabulary_of_words_shows_no_terms(tmp_path: Path) -> None:
    settings = {"vocabulary.kind": "words", "training.glossary": True}
    with pytest.raises(ValueError, match=r"training.glossary: expected a vocabulary of subwords, got one of words"):
        regard.train(toy.PAIRS, tmp_path / "words", settings=settings, recipe="rnn", device="cpu")
