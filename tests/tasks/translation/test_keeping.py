"""Texts of which parts are not translated, by trained models with placeholders and without."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

import regard
from regard.look.trace import AttentionWeights, Side, Trace
from regard.look.words import Span
from regard.tasks.translation import predictor
from regard.tasks.translation.keeping import rewritten_side
from regard.tasks.translation.predictor import Translator
from regard.tasks.translation.search_options import Search
from regard.text.vocabulary import PLACEHOLDERS
from tests.tasks.small import small
from tests.training import toy

TEXTS = [
    "Rahul sees <b>the book</b>.",
    "The girl wants 573 mangos, not 12.",
    "Sita likes {name} and https://example.org/x?y.",
    "<p>My friend <i>buys <b>a</b> house</i><br/> for 5.</p>",
    "",
    "573",
]
THINGS = ["<b> </b>", "573 12", "{name} https://example.org/x?y", "<p> <i> <b> </b> </i> <br/> 5 </p>", "", "573"]
KEEP = "numbers,addresses,markup"


@pytest.fixture(scope="module")
def with_placeholders(tmp_path_factory: pytest.TempPathFactory) -> Translator:
    settings = toy.LEARNS | {"training.placeholders": 0.3}
    return small(tmp_path_factory.mktemp("keep") / "model", settings=settings)


@pytest.fixture(scope="module")
def without(model: Path) -> Translator:
    """Of a folder that was trained without placeholders."""
    out = model.parent / "without"
    return small(out, settings={"training.placeholders": 0.0})


@pytest.mark.parametrize("which", ["with_placeholders", "without"])
@pytest.mark.parametrize("search", [None, Search(beam=3, n_best=3), Search(beam=1), Search(sample=True), Search(mbr=2)])
def test_everything_comes_back_once(which: str, search: Search | None, request: pytest.FixtureRequest) -> None:
    translator: Translator = request.getfixturevalue(which)
    assert translator.vocabularies.source.has_placeholders == (which == "with_placeholders")
    for text, things, answer in zip(TEXTS, THINGS, translator.answers(TEXTS, search, keep=KEEP), strict=True):
        assert answer.source == text
        for translation in answer.translations:
            for thing in things.split():
                assert translation.text.count(thing) == 1, (thing, translation.text)
            assert not any(letter in translation.text for letter in PLACEHOLDERS)


def test_tags_change_nothing_else(with_placeholders: Translator) -> None:
    plain = with_placeholders.translate("Rahul sees the book.")
    marked = with_placeholders.translate("Rahul sees <b>the book</b>.", keep="markup")
    assert marked != plain and marked.replace("<b>", "").replace("</b>", "") == plain


def test_traces_show_the_things(with_placeholders: Translator, monkeypatch: pytest.MonkeyPatch) -> None:
    """Those that the model read, here whether it is sure of them or not; tags are none of them."""
    monkeypatch.setattr(predictor, "COPY_MARGIN", -30.0)
    (answer,) = with_placeholders.answers(["So <i>Zoe</i> sees a mango."], details=True, keep="names,markup")
    (trace,) = answer.translations[0].traces
    assert trace.source.text == "So Zoe sees a mango." and "Zoe" in [word.text for word in trace.source.words]
    assert "<i>Zoe</i>" in answer.text and "Zoe" in [word.text for word in trace.target.words]
    assert any("Zoe" in candidate.text for candidate in trace.candidates)
    assert not any(letter in str(trace.as_dict()) for letter in PLACEHOLDERS)
    assert Trace.from_dict(trace.as_dict()).source.text == trace.source.text


def test_long_texts_are_translated_in_parts(with_placeholders: Translator) -> None:
    text = "<p>" + " ".join(f"Rahul <b>sees</b> {number} books." for number in range(100, 112)) + "</p>"
    (answer,) = with_placeholders.answers([text], keep=KEEP)
    assert "parts" in answer.notices[0]
    assert all(answer.text.count(str(number)) == 1 for number in range(100, 112))
    assert answer.text.count("<b>") == answer.text.count("</b>") == 12
    assert answer.text.startswith("<p>") and answer.text.endswith("</p>")


def test_a_prefix_has_the_things_too(with_placeholders: Translator) -> None:
    text = with_placeholders.translate("The girl wants 573 mangos.", prefix="573 आंबा", keep="numbers")
    assert text.startswith("573 आंबा") and text.count("573") == 1


def test_keep_is_checked(with_placeholders: Translator) -> None:
    with pytest.raises(ValueError, match="keep: expected some of"):
        with_placeholders.translate("x", keep="numbers,all")
    assert with_placeholders.translate([], keep="numbers") == []


def test_a_folder_without_placeholders_loads_as_before(without: Translator, model: Path) -> None:
    assert not regard.load(model.parent / "without", "cpu").vocabularies.target.has_placeholders  # type: ignore[attr-defined]


def test_pieces_stand_for_the_new_text() -> None:
    side = Side("a X b", [Span("a", 0, 1), Span("", 2, 2), Span("X", 2, 3), Span("b", 4, 5), Span("", 5, 5)])
    new = rewritten_side(side, [(0, 0, "see "), (2, 3, "me@x.org")])
    assert new.text == "see a me@x.org b"
    assert [piece.text for piece in new.pieces] == ["a", "", "me@x.org", "b", ""]
    assert new.ended and [word.text for word in new.words] == ["a", "me@x.org", "b", ""]
    weights = np.eye(5, dtype=np.float32)[None, None]
    Trace(new, new, [AttentionWeights("cross", weights)])._check_shapes()
