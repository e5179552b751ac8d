"""The view Translate: from answers to JSON, and its routes."""

from __future__ import annotations

from pathlib import Path

import pytest
from fastapi.testclient import TestClient

import regard
from regard.look.diagnostics import diagnose
from regard.serving.app import create_app
from regard.serving.settings import Limits, ServerSettings
from regard.serving.studio.requests import InteractiveOptions
from regard.serving.studio.translate import (
    Segment,
    ShareRequest,
    TextRequest,
    coverage,
    described,
    plain,
    segment_traces,
    shared_page,
    translated_segment,
)
from tests.look.traces import marathi


@pytest.fixture(scope="module")
def translator(translator_folder: Path) -> regard.Translator:
    return regard.load(translator_folder, "cpu")  # type: ignore[return-value]


def test_lines_and_their_sentences(translator: regard.Translator) -> None:
    answers = translator.answers(["The boy sees a mango.", "", "Sita likes the book."], details=True)
    assert [line["text"] for line in plain(answers)["lines"]] == [answer.text for answer in answers]
    result = described(answers)
    assert [line["segments"] for line in result["lines"]] == [1, 0, 1]
    (traces,) = result["content"]["traces"]
    assert len(traces) == len(result["coverage"]) == 2
    assert traces[1]["source"]["words"] == ["Sita", "likes", "the", "book", ".", ""]
    assert [each["name"] for each in traces[0]["attentions"]] == ["cross"]
    assert len(traces[0]["candidates"]) > 1 and traces[0]["steps"]


def test_coverage_names_the_places_of_words() -> None:
    trace = marathi()
    result = coverage(trace)
    words = [word.text for word in trace.source.words]
    assert [words[place] for place in result["missed"]] == diagnose(trace).missed != []
    assert [words[place] for place in result["repeated"]] == diagnose(trace).repeated


def test_a_segment_begins_with_its_prefix_or_is_given(translator: regard.Translator) -> None:
    options = InteractiveOptions()
    result = translated_segment(translator, Segment(source="The boy sees a mango.", prefix="राहुल"), options)
    assert result["text"].startswith("राहुल")
    assert "".join(map("".join, result["content"]["traces"][0][0]["target"]["units"])) == result["text"]
    text, (trace,) = segment_traces(translator, Segment(source="The boy.", target="मुलगा पाणी"), options)
    assert text == trace.target.text == "मुलगा पाणी" and trace.steps


def test_glossary_and_keep() -> None:
    options = InteractiveOptions(glossary=[("boy", "मुलगा | मुलगी"), ("mango", "=")], keep=["numbers", "names"])
    assert options.terms is not None and options.kept is not None
    assert [entry.forms for entry in options.terms.entries] == [("मुलगा", "मुलगी"), ("=",)]
    assert options.kept.kinds == ("numbers", "names")
    empty = InteractiveOptions()
    assert empty.terms is None and empty.kept is None
    assert TextRequest(text="a 12 b", keep=["numbers"]).parts[0][1].text == "12"  # type: ignore[union-attr]


def test_the_shared_page(translator: regard.Translator) -> None:
    segments = [Segment(source="The boy sees a mango."), Segment(source="Sita.", target="</script>सीता")]
    text = shared_page(translator, ShareRequest(segments=segments))
    assert text.startswith("<!doctype html>") and "\\u003c/script\\u003eसीता" in text
    with pytest.raises(ValueError, match="expected text to translate"):
        shared_page(translator, ShareRequest(segments=[Segment(source=" ")]))


@pytest.fixture(scope="module")
def client(translator_folder: Path) -> TestClient:
    limits = Limits(characters=200)
    settings = ServerSettings([translator_folder], studio=True, limits=limits)
    return TestClient(create_app(settings), base_url="http://127.0.0.1:8080")


def test_the_routes(client: TestClient) -> None:
    with client:
        text = "The boy sees a mango.\nSita likes 12 books."
        asked = {"text": text, "details": True, "keep": ["numbers"], "glossary": [["boy", "मुलगा"]]}
        result = client.post("/api/studio/translate", json=asked).json()
        assert [line["segments"] for line in result["lines"]] == [1, 1]
        assert "मुलगा" in result["lines"][0]["text"] and "12" in result["lines"][1]["text"]
        request = {"source": "The boy sees a mango.", "prefix": "मुलगा", "known": "मुलगा आंबा पाहतो.", "count": 4}
        words = client.post("/api/studio/next-words", json=request).json()
        assert "आंबा" in [each["word"] for each in words]
        page = client.post("/api/studio/share", json={"segments": [{"source": "The boy."}]})
        assert page.headers["content-disposition"] == 'attachment; filename="translation.html"'
        assert page.text.startswith("<!doctype html>")


@pytest.mark.parametrize(
    ("path", "body", "status", "message"),
    [
        ("translate", {"text": "x" * 201}, 413, "text: expected at most 200 characters, got 201"),
        ("translate", {"text": "x", "model": "other"}, 404, "model: expected one of toy, got 'other'"),
        ("translate", {"text": "x", "glossary": [["a", ""]]}, 422, "glossary.0.1: "),
        ("translate", {"text": "x", "keep": ["everything"]}, 422, "keep.0: "),
        ("translate", {}, 422, "text: Field required"),
        ("segment", {"source": "x", "target": "x" * 201}, 413, "target: expected at most 200"),
        ("next-words", {"source": "x", "count": 100}, 422, "count: "),
        ("share", {"segments": []}, 422, "segments: "),
        ("share", {"segments": [{"source": "x" * 150}] * 2}, 413, "segments: expected at most 200"),
    ],
)
def test_bad_requests(client: TestClient, path: str, body: object, status: int, message: str) -> None:
    response = client.post(f"/api/studio/{path}", json=body)
    assert response.status_code == status and response.json()["error"].startswith(message)
