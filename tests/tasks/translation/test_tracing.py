"""Traces of answers: what a translator says of each step, and of what it must say."""

from pathlib import Path

import numpy as np
import pytest

import regard
from regard.look.trace import Trace
from regard.tasks.translation.search_options import Search
from regard.tasks.translation.tracing import spans
from regard.text.vocabulary import learn_subwords
from tests.training.toy import PAIRS, RECIPES

SOURCES = [source for source, _ in PAIRS[:6]]


@pytest.fixture(scope="module", params=RECIPES)
def translator(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> regard.Translator:
    out: Path = tmp_path_factory.mktemp("tracing") / "model"
    settings, languages = RECIPES[request.param], ("en", "mr")
    return regard.train(
        PAIRS, out, recipe=request.param, dev=PAIRS[:16], settings=settings, precision="fp32", device="cpu",
        languages=languages,
    )  # fmt: skip


def test_details_tell_of_every_step_and_of_the_beam(translator: regard.Translator) -> None:
    plain = translator.answers(SOURCES, Search(5))
    detailed = translator.answers(SOURCES, Search(5), details=True)
    for one, other in zip(plain, detailed, strict=True):
        assert one.text == other.text and len(other.translations) == 1
        (before,), (after,) = one.translations[0].traces, other.translations[0].traces
        np.testing.assert_array_equal(before.weights, after.weights)
        assert not before.steps and len(after.steps) == len(after.target.pieces)
        logs = np.log([step.probability for step in after.steps])
        assert logs.sum() == pytest.approx(other.translations[0].log_probability, abs=1e-4)
        assert after.candidates[0].text == one.text and len(after.candidates) == 5
        assert [each.score for each in after.candidates] == sorted((x.score for x in after.candidates), reverse=True)


def test_runners_up_are_the_likeliest_others(translator: regard.Translator) -> None:
    (trace,) = translator.answers(SOURCES[:1], details=True)[0].translations[0].traces
    for step in trace.steps:
        probabilities = [chance for _, chance in step.others]
        assert 4 <= len(probabilities) <= 5 and probabilities == sorted(probabilities, reverse=True)
        assert step.probability + sum(probabilities) <= 1 + 1e-5


def test_a_trace_knows_its_model_and_languages(translator: regard.Translator) -> None:
    (trace,) = translator.answers(SOURCES[:1])[0].translations[0].traces
    assert (trace.source.language, trace.target.language) == ("en", "mr")
    assert trace.model["parameters"] == translator.card["parameters"]
    assert Trace.from_dict(trace.as_dict()).as_dict() == trace.as_dict()


def test_forced_targets_keep_their_order_and_places(translator: regard.Translator) -> None:
    sources, targets = zip(*reversed(PAIRS[:70]), strict=True)
    traces = translator.force_decode(sources, targets)
    assert [(trace.source.text, trace.target.text) for trace in traces] == list(zip(sources, targets, strict=True))
    for trace in traces[:5]:
        assert all(trace.target.text[piece.start : piece.end] == piece.text for piece in trace.target.pieces)
        assert len(trace.steps) == len(trace.target.pieces) == len(trace.weights)
        np.testing.assert_allclose(trace.weights.sum(1), 1, rtol=1e-4)


def test_forcing_what_was_found_gives_the_same_weights(translator: regard.Translator) -> None:
    answers = translator.answers(SOURCES)
    traces = translator.force_decode(SOURCES, [answer.text for answer in answers])
    for answer, trace in zip(answers, traces, strict=True):
        (result,) = answer.translations[0].traces
        if result.target.tokens == trace.target.tokens:
            np.testing.assert_allclose(result.weights, trace.weights, atol=1e-5)


def test_one_target_for_each_source(translator: regard.Translator) -> None:
    with pytest.raises(ValueError, match="expected one for each of 2 sources, got 1"):
        translator.force_decode(["a", "b"], ["c"])


def test_a_transformer_shows_all_its_heads(translator: regard.Translator) -> None:
    (trace,) = translator.answers(SOURCES[:1], details=True)[0].translations[0].traces
    sizes = {each.name: each.weights.shape for each in trace.attentions}
    rows, columns = len(trace.target.pieces), len(trace.source.pieces)
    if translator.recipe.model.kind == "rnn":
        assert sizes == {"cross": (1, 1, rows, columns)}
        return
    assert sizes == {
        "cross": (2, 2, rows, columns),
        "encoder": (2, 2, columns, columns),
        "decoder": (2, 2, rows, rows),
    }
    for each in trace.attentions:
        np.testing.assert_allclose(each.weights.sum(-1), 1, atol=1e-5)
    decoder = next(each.weights for each in trace.attentions if each.name == "decoder")
    assert np.allclose(np.triu(decoder, 1), 0), "nothing looks ahead"


def test_a_source_in_capitals_keeps_its_text_and_places(translator: regard.Translator) -> None:
    """Its tokens are those of the same words in their usual case."""
    for source, target in PAIRS[:6]:
        for text in (source.upper(), source.lower()):
            (trace,) = translator.force_decode([text], [target])
            (plain,) = translator.force_decode([source], [target])
            assert trace.source.text == text and trace.source.tokens == plain.source.tokens
            assert all(text[piece.start : piece.end] == piece.text for piece in trace.source.pieces)
            assert "".join(piece.text for piece in trace.source.pieces) == text.replace(" ", "")
            np.testing.assert_array_equal(trace.weights, plain.weights)
            assert translator.source_tokens(text) == list(plain.source.tokens)


def test_pieces_of_characters_spelled_in_bytes_are_in_the_order_of_the_text() -> None:
    vocabulary = learn_subwords(["so it is, \u00fcber"] * 5, 30)
    for text in ("so \u0905\u0906 \u0907.", "\u6f22\u5b57 it", "\u0905"):
        pieces = spans(vocabulary, vocabulary.encode(text), text)
        assert [piece.start for piece in pieces] == sorted(piece.start for piece in pieces)
        assert "".join(piece.text for piece in pieces) == text.replace(" ", "")
