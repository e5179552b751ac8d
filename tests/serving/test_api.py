"""Our own routes besides LibreTranslate's."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path

import pytest
from starlette.testclient import TestClient

from regard.serving.app import create_app
from regard.serving.settings import Limits, ServerSettings
from regard.tasks.train import train
from tests.training import toy_labels


@pytest.fixture(scope="module")
def client(translator_folder: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[TestClient]:
    """A client of a server with a translator and a classifier."""
    out = tmp_path_factory.mktemp("serving") / "labels"
    train(toy_labels.TEXTS, out, task="classify", settings=toy_labels.TINY, device="cpu")
    settings = ServerSettings([translator_folder, out], limits=Limits(texts=3, characters=50))
    with TestClient(create_app(settings), base_url="http://localhost") as client:
        yield client


def test_models(client: TestClient) -> None:
    toy, labels = client.get("/api/models").json()
    assert (toy["name"], toy["task"], toy["languages"], toy["labels"]) == ("toy", "translate", ["en", "mr"], None)
    assert (labels["name"], labels["task"], labels["languages"]) == ("labels", "classify", None)
    assert set(labels["labels"]) == {label for _, label in toy_labels.TEXTS}
    assert [each["code"] for each in client.get("/languages").json()] == ["en", "mr"]


def test_classify(client: TestClient) -> None:
    answers = client.post("/api/classify", json={"q": [text for text, _ in toy_labels.TEXTS[:2]]}).json()
    for answer in answers:
        assert answer["label"] == max(answer["probabilities"], key=answer["probabilities"].get)
        assert sum(answer["probabilities"].values()) == pytest.approx(1, abs=1e-3)
    for body, status, message in (
        ({"q": []}, 422, "q: List should have at least 1 item"),
        ({"q": "text"}, 422, "q: "),
        ({"q": ["\ud800"]}, 400, "body: expected Unicode, got half of a surrogate pair"),
        ({"q": ["a"] * 4}, 413, "q: expected at most 3 texts, got 4"),
        ({"q": ["a" * 51]}, 413, "q: expected at most 50 characters, got 51"),
        ({"q": ["a"], "model": "toy"}, 422, "model: expected one for the task 'classify', got 'toy'"),
        ({"q": ["a"], "model": "other"}, 404, "model: expected one of toy, labels, got 'other'"),
    ):
        response = client.post("/api/classify", content=json.dumps(body), headers={"Content-Type": "application/json"})
        assert response.status_code == status and response.json()["error"].startswith(message), response.text
