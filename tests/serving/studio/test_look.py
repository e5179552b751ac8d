"""The view Look: heads, evidence and forced attention as JSON."""

from __future__ import annotations

from pathlib import Path

import pytest
from fastapi.testclient import TestClient

import regard
from regard.serving.app import create_app
from regard.serving.settings import ServerSettings
from regard.serving.studio.look import (
    ForceRequest,
    LookRequest,
    attention_of_text,
    forced_answer,
    gold_examples,
)

SOURCE, TARGET = "The boy sees a mango.", "मुलगा आंबा पाहतो."


@pytest.fixture(scope="module")
def translator(translator_folder: Path) -> regard.Translator:
    return regard.load(translator_folder, "cpu")  # type: ignore[return-value]


def test_the_attention_of_a_text(translator: regard.Translator) -> None:
    result = attention_of_text(translator, LookRequest(text=f"{SOURCE}\n\nSita likes the book."))
    assert len(result["content"]["traces"][0]) == len(result["heads"]) == 2
    assert result["heads"][0][0]["attention"] == "cross" and result["heads"][0][0]["aer"] is None
    assert attention_of_text(translator, LookRequest(text=" \n")) == {"content": None, "heads": [], "notices": []}


def test_a_translation_of_ones_own_with_gold_links(translator: regard.Translator) -> None:
    asked = LookRequest(text=SOURCE, target=TARGET, gold="1-0 2-2 4-1 5-3")
    result = attention_of_text(translator, asked)
    assert result["content"]["traces"][0][0]["target"]["words"] == ["मुलगा", "आंबा", "पाहतो", ".", ""]
    assert 0 <= result["heads"][0][0]["aer"] <= 1
    with pytest.raises(ValueError, match="link"):
        attention_of_text(translator, LookRequest(text=SOURCE, target=TARGET, gold="one-two"))


def test_forced_attention(translator: regard.Translator) -> None:
    request = ForceRequest(source=SOURCE, target=TARGET, source_word=4, target_word=1)
    result = forced_answer(translator, request)
    assert result["before"] < 0 and result["log_probability"] < 0
    assert result["text"].startswith("मुलगा")


def test_examples_are_as_the_view_takes_them(translator: regard.Translator) -> None:
    examples = gold_examples()
    assert 5 <= len(examples) <= 8
    for example in examples:
        (heads,) = attention_of_text(translator, LookRequest(**example))["heads"]
        assert heads[0]["aer"] is not None
        assert " ." not in example["text"]


def test_the_routes(translator_folder: Path) -> None:
    settings = ServerSettings([translator_folder], studio=True)
    with TestClient(create_app(settings), base_url="http://127.0.0.1:8080") as client:
        assert len(client.get("/api/studio/look-examples").json()) > 4
        answer = {"source": SOURCE, "target": TARGET}
        evidence = client.post("/api/studio/evidence", json=answer).json()["content"]["traces"][0][0]
        assert [each["name"] for each in evidence["evidence"]] == ["leave one out", "gradient"]
        assert [each[0] for each in evidence["altered"]] == ["as it is", "uniform attention", "shuffled attention"]
        outside = client.post("/api/studio/force", json=answer | {"source_word": 99})
        assert outside.status_code == 422 and "expected places among 7 source and" in outside.json()["error"]
        long = client.post("/api/studio/look", json={"text": "x" * 2001})
        assert long.status_code == 422 and long.json()["error"].startswith("text: ")
