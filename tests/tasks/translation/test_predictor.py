"""A trained model in use."""

from __future__ import annotations

import math
import os
import shutil
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

import regard
from regard.metrics.translation import score
from regard.tasks.translation.answer import Translation, joined
from regard.tasks.translation.predictor import Translator
from regard.tasks.translation.search_options import Search
from regard.text.pairs import Pair
from regard.text.vocabulary import PLACEHOLDERS
from tests.training import toy

SOURCES = [source for source, _ in toy.PAIRS]


# What comes out for what goes in


def test_a_text_in_a_text_out_a_list_in_a_list_out(translator: Translator) -> None:
    one = translator.translate(SOURCES[0])
    assert isinstance(one, str) and one
    assert translator.translate([SOURCES[0]]) == [one]
    assert translator.translate((SOURCES[0],)) == [one]
    assert translator.translate([]) == []


def test_the_order_is_kept_and_neighbours_do_not_matter(translator: Translator) -> None:
    """More than one batch, of mixed lengths, with empty texts between."""
    mixed = [text for source in SOURCES for text in (source, "", source.split()[0])]
    result = translator.translate(mixed, Search(beam=1))
    assert len(result) == len(mixed) == 240
    alone = [translator.translate(text, Search(beam=1)) for text in mixed[:30]]
    assert result[:30] == alone


@pytest.mark.parametrize("text", ["", "   ", "\n", "\u2028\u00a0"])
def test_nothing_in_nothing_out(text: str, translator: Translator) -> None:
    assert translator.translate(text) == "" and translator.translate([text, text]) == ["", ""]
    (answer,) = translator.answers([text], Search(n_best=3))
    assert answer.text == "" and answer.translations[0].traces == [] and answer.notices == []


@pytest.mark.parametrize("text", ["漢字 😀", "\x00", "ＡＢ\u0301ｃ", "\ufeff", "👨‍👩‍👧", "مرحبا", "<pad> </s> <0x41>"])
def test_characters_that_training_never_saw_are_answered(text: str, translator: Translator) -> None:
    (answer,) = translator.answers([text])
    assert isinstance(answer.text, str) and math.isfinite(answer.translations[0].score)


def test_white_space_and_composition_do_not_matter(translator: Translator) -> None:
    assert translator.translate("  The boy\u00a0sees\ta\u2028mango. ") == translator.translate("The boy sees a mango.")


def test_a_translation_is_one_line(translator: Translator) -> None:
    """Bytes that make a line end or a TAB are no text: one line in, one line out."""
    torch.manual_seed(3)
    result = translator.answers(SOURCES[:40], Search(sample=True, temperature=50.0, n_best=3))
    texts = [each.text for answer in result for each in answer.translations]
    assert not [text for text in texts if any(mark in text for mark in "\n\r\t\v\f\x1c\x1d\x1e\x1f\x85\u2028\u2029")]


# Traces


def test_traces_stand_on_the_text(translator: Translator) -> None:
    for answer in translator.answers([*SOURCES[:20], "漢 😀 é x"], Search(beam=3, n_best=3)):
        for each in answer.translations:
            (trace,) = each.traces
            assert trace.source.text == answer.source and trace.target.text == each.text
            assert trace.weights.shape == (len(trace.target.pieces), len(trace.source.pieces))
            np.testing.assert_allclose(trace.weights.sum(1), 1, atol=1e-4)
            for side in (trace.source, trace.target):
                assert all(side.text[piece.start : piece.end] == piece.text for piece in side.pieces)
                assert len(side.tokens) == len(side.pieces)
            covered = "".join(piece.text for piece in trace.source.pieces)
            if answer.source.isascii():
                assert covered == answer.source.replace(" ", "")


# How it is searched


def test_n_best_gives_so_many_the_best_first(translator: Translator) -> None:
    for answer in translator.answers(SOURCES[:10], Search(beam=5, n_best=4)):
        scores = [each.score for each in answer.translations]
        assert len(scores) == 4 and scores == sorted(scores, reverse=True)
        assert all(each.log_probability <= 0 for each in answer.translations)
        assert answer.text == answer.translations[0].text


def test_n_best_of_a_long_text_joins_rank_by_rank(translator: Translator) -> None:
    (answer,) = translator.answers([" ".join(SOURCES[:6])], Search(beam=3, n_best=3))
    assert len(answer.translations) == 3 and all(len(each.traces) == 6 for each in answer.translations)
    assert answer.translations[0].score >= answer.translations[1].score >= answer.translations[2].score


@pytest.fixture(scope="module")
def splitting(tmp_path_factory: pytest.TempPathFactory) -> Translator:
    """A model that has learned to spell words in several ways, as models do before the end of training."""
    out = tmp_path_factory.mktemp("splitting") / "model"
    settings = toy.LEARNS | {"training.segmentation_dropout": 0.6, "training.canonical_segmentation": 0.0}
    return regard.train(toy.PAIRS, out, settings=settings, device="cpu", precision="fp32")


def test_n_best_are_different_texts(splitting: Translator) -> None:
    plain, result = splitting.answers(SOURCES[:20]), splitting.answers(SOURCES[:20], Search(beam=5, n_best=5))
    for one, answer in zip(plain, result, strict=True):
        texts = [each.text for each in answer.translations]
        assert len(texts) == len(set(texts)) == 5 and answer.notices == []
        best = answer.translations[0]
        assert (best.text, best.score) == (one.text, one.translations[0].score)
        for each in answer.translations:
            (trace,) = each.traces
            assert trace.target.text == each.text


def test_what_the_page_lists_are_different_texts(splitting: Translator) -> None:
    for answer in splitting.answers(SOURCES[:20], Search(beam=5), details=True):
        (trace,) = answer.translations[0].traces
        assert len({each.text for each in trace.candidates}) == len(trace.candidates) == 5
        assert trace.candidates[0].text == answer.text


def test_n_best_of_a_long_text_are_different(splitting: Translator) -> None:
    (answer,) = splitting.answers([" ".join(SOURCES[:6])], Search(beam=5, n_best=5))
    assert len({each.text for each in answer.translations}) == len(answer.translations) == 5


def test_samples_are_different_texts(splitting: Translator) -> None:
    torch.manual_seed(1)
    for answer in splitting.answers(SOURCES[:10], Search(sample=True, n_best=5, temperature=0.5)):
        texts = [each.text for each in answer.translations]
        assert len(texts) == len(set(texts)) and (len(texts) == 5) == (answer.notices == [])


def test_fewer_than_asked_for_are_given_with_a_notice(translator: Translator) -> None:
    (answer,) = translator.answers(SOURCES[:1], Search(sample=True, top_k=1, n_best=3))
    assert len(answer.translations) == 1
    assert answer.notices == ["different translations found: 1, of 3 asked for"]


def test_a_part_with_fewer_translations_repeats_its_last_one() -> None:
    def some(*texts: str) -> list[Translation]:
        return [Translation(text, -float(rank), -2.0 * rank, [None]) for rank, text in enumerate(texts)]  # type: ignore[list-item]

    result = joined([some("a", "b", "c"), some("x")])
    assert [(each.text, each.log_probability) for each in result] == [("a x", 0.0), ("b x", -2.0), ("c x", -4.0)]
    assert [each.text for each in joined([some("a", "a b"), some("b c", "c")])] == ["a b c"]


@pytest.mark.parametrize("search", [Search(beam=1), Search(beam=5), Search(sample=True)])
@pytest.mark.parametrize("prefix", ["सीता", "माझा मित्र", "राहु", "x", "漢"])
def test_a_prefix_is_kept(search: Search, prefix: str, translator: Translator) -> None:
    for text in translator.translate(SOURCES[:8], search, prefix):
        assert text.startswith(prefix)


def test_a_prefix_longer_than_any_translation_is_kept(translator: Translator) -> None:
    prefix = " ".join(target for _, target in toy.PAIRS[:10])
    assert translator.translate(SOURCES[0], prefix=prefix).startswith(prefix)


def test_sampling_follows_its_seed(translator: Translator) -> None:
    search = Search(sample=True, temperature=2.0)
    drawn = []
    for seed in (1, 1, 2):
        torch.manual_seed(seed)
        drawn.append(translator.translate(SOURCES[:20], search))
    assert drawn[0] == drawn[1] != drawn[2]


def test_sampling_among_one_is_greedy(translator: Translator) -> None:
    greedy = translator.translate(SOURCES[:20], Search(beam=1))
    assert translator.translate(SOURCES[:20], Search(sample=True, top_k=1)) == greedy


def test_sampling_of_several_gives_the_best_first(translator: Translator) -> None:
    for answer in translator.answers(SOURCES[:5], Search(sample=True, n_best=7, temperature=2.0)):
        scores = [each.score for each in answer.translations]
        assert len(scores) == 7 and scores == sorted(scores, reverse=True)


@pytest.mark.parametrize("temperature", [1e-6, 1e-40, 1e6])
def test_extreme_temperatures_are_answered(temperature: float, translator: Translator) -> None:
    assert len(translator.translate(SOURCES[:3], Search(sample=True, temperature=temperature))) == 3


@pytest.mark.parametrize(
    ("given", "named"),
    [
        ({"beam": 0}, "beam"),
        ({"beam": 1.5}, "beam"),
        ({"beam": "5"}, "beam"),
        ({"n_best": 0}, "n_best"),
        ({"beam": 2, "n_best": 3}, "n_best"),
        ({"temperature": 0}, "temperature"),
        ({"temperature": -1.0}, "temperature"),
        ({"temperature": math.nan}, "temperature"),
        ({"temperature": math.inf}, "temperature"),
        ({"top_k": 0}, "top_k"),
        ({"top_k": -2}, "top_k"),
        ({"top_p": 0.0}, "top_p"),
        ({"top_p": 1.5}, "top_p"),
        ({"length_penalty": math.nan}, "length_penalty"),
        ({"mbr": -1}, "mbr"),
        ({"mbr": 2.5}, "mbr"),
        ({"mbr": 4, "sample": True}, "mbr"),
        ({"mbr": 8, "n_best": 9}, "n_best"),
        ({"seed": -1}, "seed"),
        ({"length_penalty": -1.0}, "length_penalty"),
    ],
)
def test_a_search_that_cannot_be_is_refused(given: dict[str, Any], named: str) -> None:
    with pytest.raises(ValueError, match=f"^{named}: expected") as error:
        Search(**given)
    assert "\n" not in str(error.value)


@pytest.mark.parametrize("beam", [50, 400])
def test_a_beam_wider_than_the_vocabulary_is_answered(beam: int, tmp_path: Path) -> None:
    settings = {"model.embedding": 8, "model.encoder": 4, "model.decoder": 8, "model.attention": 8}
    result = regard.train(
        toy.PAIRS, tmp_path / "m", recipe="article", settings=settings | {"training.epochs": 1}, device="cpu"
    )
    assert len(result.vocabularies.target) < 50
    assert len(result.translate(SOURCES[:2], Search(beam=beam))) == 2


@pytest.mark.parametrize("wrong", [3, None, [3], [None]])
def test_what_is_no_text_is_refused_by_name(wrong: Any, translator: Translator) -> None:
    with pytest.raises((TypeError, ValueError), match="text"):
        translator.translate(wrong)


# Scores


def test_evaluate_groups_references_and_translates_a_source_once(translator: Translator) -> None:
    pairs = [Pair(source, target, line) for line, (source, target) in enumerate(toy.PAIRS[:12], 1)]
    pairs += [Pair(pairs[0].source, "something else", 13), Pair(pairs[3].source, "another", 14)]
    result = translator.evaluate(pairs)
    references = [[target] for _, target in toy.PAIRS[:12]]
    references[0].append("something else")
    references[3].append("another")
    right = score(translator.translate(SOURCES[:12]), references)
    assert result == right and (result.sources, result.references) == (12, 14)


def test_evaluate_takes_any_of_the_references(translator: Translator) -> None:
    message = translator.translate(SOURCES[:3])
    pairs = [Pair(source, "no", 1) for source in SOURCES[:3]] + [
        Pair(source, text, 2) for source, text in zip(SOURCES[:3], message, strict=True)
    ]
    assert translator.evaluate(pairs).exact == 100


def test_evaluate_takes_empty_sides(translator: Translator) -> None:
    result = translator.evaluate([Pair("", "x", 1), Pair(SOURCES[0], "", 2), Pair("", "", 3)])
    assert (result.sources, result.references) == (2, 3) and result.exact >= 50


# Loading


def test_it_loads_read_only_from_anywhere(folder: Path, translator: Translator, tmp_path: Path) -> None:
    """Root may write anywhere: so it is also looked at that nothing was written."""
    copy = Path(shutil.copytree(folder, tmp_path / "copy"))
    shutil.rmtree(copy / "training")
    (copy / "log.jsonl").unlink()
    files = [copy, *copy.rglob("*")]
    for file in files:
        file.chmod(0o555 if file.is_dir() else 0o444)
    before = {str(file): os.stat(file).st_mtime_ns for file in files}
    try:
        result = regard.load(copy, "cpu", "fp32").translate(SOURCES[:5])
    finally:
        copy.chmod(0o755)
    assert result == translator.translate(SOURCES[:5])
    assert before == {str(file): os.stat(file).st_mtime_ns for file in [copy, *copy.rglob("*")]}


def test_what_train_returns_is_what_load_gives(folder: Path, tmp_path: Path) -> None:
    settings = toy.TINY | {"training.epochs": 1}
    returned = regard.train(toy.PAIRS, tmp_path / "m", settings=settings, device="cpu", precision="fp32")
    loaded = regard.load(str(tmp_path / "m"), "cpu", "fp32")
    assert returned.translate(SOURCES[:5]) == loaded.translate(SOURCES[:5])
    assert returned.recipe == loaded.recipe and returned.search == loaded.search


@pytest.mark.parametrize(("option", "value"), [("device", "foo"), ("device", "cuda:99"), ("precision", "fp8")])
def test_a_machine_that_is_not_there_is_refused_by_name(option: str, value: str, folder: Path) -> None:
    with pytest.raises(ValueError, match=option):
        regard.load(folder, **{option: value}).translate(SOURCES[0])


def test_bfloat16_says_nearly_the_same(folder: Path, translator: Translator) -> None:
    narrow = regard.load(folder, "cpu", "bf16").translate(SOURCES, Search(beam=1))
    same = sum(a == b for a, b in zip(narrow, translator.translate(SOURCES, Search(beam=1)), strict=True))
    assert same > 60


# A damaged model


@pytest.fixture
def overflowing(folder: Path) -> Translator:
    """A translator whose weights are finite, and so large that their products are not."""
    model: Translator = regard.load(folder, "cpu", "fp32")
    with torch.no_grad():
        for parameter in model.model.parameters():
            parameter.fill_(-3e38)
    return model


@pytest.mark.parametrize("search", [Search(), Search(beam=1), Search(sample=True)], ids=["beam", "greedy", "sample"])
def test_output_that_is_not_finite_is_an_error(overflowing: Translator, search: Search) -> None:
    with pytest.raises(ValueError, match="computes NaN or infinite values"):
        overflowing.translate(SOURCES[:2], search)


def test_forced_decoding_that_is_not_finite_is_an_error(overflowing: Translator) -> None:
    with pytest.raises(ValueError, match="computes NaN or infinite values"):
        overflowing.force_decode(SOURCES[:1], [toy.PAIRS[0][1]])


# Placeholders


def test_no_placeholder_is_written_for_a_source_without_one(tmp_path: Path) -> None:
    settings = toy.TINY | {"training.epochs": 1, "training.placeholders": 0.2}
    translator = regard.train(toy.PAIRS, tmp_path / "m", settings=settings, device="cpu", precision="fp32")
    assert isinstance(translator, Translator)
    ids = [translator.vocabularies.target.tokens[name] for name in PLACEHOLDERS]
    with torch.no_grad():
        translator.model.output.bias[ids] += 100  # it would write nothing else
    for search in (Search(), Search(beam=1), Search(sample=True), Search(n_best=5), Search(mbr=4)):
        for answer in translator.answers(SOURCES[:3], search):
            assert not any(letter in each.text for each in answer.translations for letter in PLACEHOLDERS)
