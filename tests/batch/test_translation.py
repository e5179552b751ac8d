"""The translation of one shard."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import pytest

from regard.batch.translation import load_translator, translate_lines
from regard.tasks.translation.predictor import Translator
from regard.tasks.translation.search_options import Search
from regard.text.glossary import Entry
from tests.batch.lines import LINES, OPTIONS, SOURCES


@pytest.fixture(scope="module")
def translator(model: Path) -> Translator:
    return load_translator([model], "cpu", OPTIONS)


def test_each_line_gets_what_the_translator_gives(translator: Translator) -> None:
    shard = translate_lines(translator, LINES, OPTIONS, 0)
    plain = [answer.text for answer in translator.answers(LINES, OPTIONS.search)]
    assert len(shard.lines) == len(LINES)
    assert sum(one == two for one, two in zip(shard.lines, plain, strict=True)) >= 0.99 * len(LINES)
    assert shard.lines[80] == shard.lines[81] == ""
    (first, notice), (second, _) = shard.notices
    assert (first, second) == (82, 83) and LINES[first] == " ".join(SOURCES[:5]) and "translated in 5 parts" in notice


def test_identical_lines_are_translated_once(translator: Translator, monkeypatch: pytest.MonkeyPatch) -> None:
    given: list[str] = []
    answers = Translator.answers

    def counted(self: Translator, texts: list[str], *rest: object, **more: object) -> object:
        given.extend(texts)
        return answers(self, texts, *rest, **more)  # type: ignore[arg-type]

    monkeypatch.setattr(Translator, "answers", counted)
    monkeypatch.setattr("regard.batch.translation.SLICE", 16)
    shard = translate_lines(translator, LINES, OPTIONS, 0)
    assert len(given) == len(set(LINES)) and sorted(map(len, given)) == [len(line) for line in given]
    assert shard.lines[:80] == shard.lines[84:164][::-1] != []


def test_the_order_of_lines_changes_nothing(translator: Translator) -> None:
    one, two = (translate_lines(translator, lines, OPTIONS, 0).lines for lines in (LINES, LINES[::-1]))
    assert one == two[::-1]


def test_formats(translator: Translator) -> None:
    ranked = replace(OPTIONS, search=replace(OPTIONS.search, n_best=2))
    rows = translate_lines(translator, SOURCES[:2], ranked, 0).lines[0].split("\n")
    assert [row.split("\t")[0] for row in rows] == ["1", "2"]
    (line,) = translate_lines(translator, SOURCES[:1], replace(ranked, as_json=True), 0).lines
    assert len(json.loads(line)["translations"]) == 2
    terms = replace(OPTIONS, glossary=(Entry("mango", ("पेरू",)),))
    assert "पेरू" in translate_lines(translator, SOURCES[:1], terms, 0).lines[0]
    begun = translate_lines(translator, SOURCES[:1], replace(OPTIONS, prefix="राहुल"), 0)
    assert begun.lines[0].startswith("राहुल")


def test_samples_depend_on_seed_and_shard_alone(translator: Translator) -> None:
    options = replace(OPTIONS, search=Search(sample=True, temperature=5.0, seed=3))
    first = translate_lines(translator, SOURCES, options, 4).lines
    assert translate_lines(translator, SOURCES, options, 5).lines != first
    assert translate_lines(translator, SOURCES, options, 4).lines == first
    other = replace(options, search=replace(options.search, seed=4))
    assert translate_lines(translator, SOURCES, other, 4).lines != first
