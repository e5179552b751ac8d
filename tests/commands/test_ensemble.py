"""`--ensemble` of translate and evaluate."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from regard.tasks.registry import load
from tests.commands.run import SETTINGS, SOURCES, Inside, refused, regard
from tests.training import toy


@pytest.fixture(scope="module")
def second(files: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    out = tmp_path_factory.mktemp("second") / "model"
    done = regard("train", files / "pairs.tsv", "--out", out, *SETTINGS, "--threads", "1", "--seed", "2")
    assert done.returncode == 0, done.stderr
    return out


def test_translate_and_evaluate_as_from_python(files: Path, second: Path, inside: Inside) -> None:
    both = load(files / "model", "cpu").ensemble(load(second, "cpu"))  # type: ignore[union-attr, arg-type]
    done = inside("translate", files / "model", "--ensemble", second, "--device", "cpu", "--json", *SOURCES[:3])
    texts = [json.loads(line)["translations"][0]["text"] for line in done.stdout.splitlines()]
    assert texts == both.translate(SOURCES[:3])
    done = inside("evaluate", files / "model", files / "pairs.tsv", "--ensemble", second, "--device", "cpu", "--json")
    assert json.loads(done.stdout)["chrf"] == pytest.approx(both.evaluate(toy.pairs()).chrf)


def test_look_and_evidence(files: Path, second: Path, inside: Inside, tmp_path: Path) -> None:
    given = ["--look", tmp_path / "a.json", "--look", tmp_path / "a.html", "--look", "terminal", "--evidence"]
    done = inside("translate", files / "model", SOURCES[0], "--ensemble", second, *given)
    assert done.returncode == 0, done.stderr
    trace = json.loads((tmp_path / "a.json").read_text())
    assert [each["name"] for each in trace["evidence"]] == ["leave one out", "gradient"]
    assert len(trace["attentions"][0]["weights"][0]) == 2, "one head for each of the two members"


def test_a_mistake_is_one_line(files: Path, second: Path, inside: Inside, tmp_path: Path) -> None:
    def message(*given: str | Path) -> str:
        return refused(inside("translate", files / "model", SOURCES[0], *given))

    assert "expected different models" in message("--ensemble", files / "model")
    assert "expected different models" in message("--ensemble", second, "--ensemble", second)
    assert "found nothing" in message("--ensemble", tmp_path / "nowhere")
    small = tmp_path / "small"
    regard("train", files / "pairs.tsv", "--out", small, *SETTINGS, "--set", "vocabulary.size=40", "--threads", "1")
    wrong = message("--ensemble", small)
    assert str(files / "model") in wrong and str(small) in wrong and "expected the same vocabularies" in wrong
