"""Every command over every kind of classifier, on a GPU."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tests.gpu.commands import settings, works
from tests.training.toy_labels import TEXTS

SMALL: dict[str, object] = {
    "model__width": 16,
    "model__hidden": 8,
    "model__attention": 8,
    "model__feedforward": 16,
    "training__epochs": 6,
    "training__validations": 2,
}
KINDS: dict[str, dict[str, object]] = {
    "default": {"training__epochs": 4},
    "embeddings": SMALL | {"model__states": "embeddings"},
    "convolution": SMALL | {"model__states": "convolution"},
    "counts": SMALL | {"model__states": "embeddings + counts"},
    "tfidf": SMALL | {"model__states": "embeddings + tfidf"},
    "gru": SMALL | {"model__states": "rnn"},
    "two layers of gru": SMALL | {"model__states": "rnn", "model__layers": 2},
    "self-attention": SMALL | {"model__states": "attention", "model__heads": 2},
    "window and global": SMALL
    | {"model__states": "attention", "model__heads": 2, "encoder__pattern": "window(4) | global(0)"},
    "hierarchical": SMALL | {"model__states": "rnn", "model__hierarchical": "true"},
    "several queries, balanced": SMALL | {"model__queries": 3, "training__balance": 0.5, "model__states": "embeddings"},
}


@pytest.fixture(scope="module")
def data(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("data") / "labels.tsv"
    path.write_text("".join(f"{text}\t{label}\n" for text, label in TEXTS), encoding="utf-8")
    return path


@pytest.fixture(scope="module", params=list(KINDS), ids=lambda name: name.replace(" ", "_"))
def model(request: pytest.FixtureRequest, data: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("model") / "model"
    works(
        "train",
        data,
        "--task",
        "classify",
        "--out",
        folder,
        *settings(**KINDS[request.param]),
        "--device",
        "cuda",
        "-q",
    )
    return folder


@pytest.mark.parametrize("precision", ["auto", "fp32", "bf16"])
def test_classify(model: Path, precision: str) -> None:
    texts = [text for text, _ in TEXTS[:10]]
    ended = works("classify", model, *texts, "--json", "--calibrated", "--device", "cuda", "--precision", precision)
    assert len([json.loads(line) for line in ended.out.splitlines()]) == 10


def test_one_gpu_classifies_as_the_cpu(model: Path) -> None:
    texts = [text for text, _ in TEXTS[:30]]
    result = [
        works("classify", model, *texts, "--device", where, "--precision", "fp32").out for where in ("cuda", "cpu")
    ]
    assert sum(a == b for a, b in zip(*(each.splitlines() for each in result), strict=True)) >= 29


def test_look_and_evidence(model: Path, tmp_path: Path) -> None:
    files = [tmp_path / f"look.{kind}" for kind in ("html", "svg", "json")]
    looks = [word for file in files for word in ("--look", file)]
    works("classify", model, TEXTS[0][0], *looks, "--look", "terminal", "--evidence", "--device", "cuda")
    assert all(file.stat().st_size > 500 for file in files)


def test_evaluate(model: Path, data: Path) -> None:
    assert "accuracy" in works("evaluate", model, data, "--device", "cuda").out


def test_a_run_is_resumed(data: Path, tmp_path: Path) -> None:
    common = ("train", data, "--task", "classify", "--out", tmp_path / "model", *settings(**SMALL), "--device", "cuda")
    works(*common, "-q")
    assert "ended" in works(*common, "--resume").err


def test_the_best(data: Path, tmp_path: Path) -> None:
    common = ("train", data, "--task", "classify", "--out", tmp_path / "model", *settings(**SMALL), "--device", "cuda")
    works(*common, "--best", "-q")
    works("classify", tmp_path / "model", "How far is it?", "--device", "cuda")
