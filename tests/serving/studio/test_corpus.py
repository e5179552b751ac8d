"""Test sets: the measures of their sentences, and how they are translated in the background."""

from __future__ import annotations

import json
import time
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

import regard
from regard.look.diagnostics import diagnose
from regard.metrics.translation import chrf
from regard.serving.settings import Limits, ServerSettings
from regard.serving.studio.corpus_rows import corpus_rows
from regard.text.pairs import Pair
from tests.serving.live import running
from tests.serving.studio.asking import get, post, send, tsv
from tests.training import toy

PAIRS = toy.PAIRS[:20]


@pytest.fixture(scope="module")
def translator(translator_folder: Path) -> regard.Translator:
    model = regard.load(translator_folder, "cpu")
    assert isinstance(model, regard.Translator)
    return model


def finished(address: str, job: dict[str, Any]) -> dict[str, Any]:
    end = time.monotonic() + 60
    while (job := get(address, f"/corpus/{job['id']}"))["state"] == "running":
        assert time.monotonic() < end
        time.sleep(0.05)
    return job


def test_rows(translator: regard.Translator) -> None:
    sources, references = [source for source, _ in PAIRS[:4]], [["other", target] for _, target in PAIRS[:4]]
    answers = translator.answers(sources, confidence=True)
    answers[1] = replace(answers[1], translations=[replace(answers[1].translations[0], text=references[1][1])])
    rows = corpus_rows(7, answers, references)
    assert [row.number for row in rows] == [7, 8, 9, 10]
    assert rows[1].exact and rows[1].score == 100.0
    for row, answer, known in zip(rows, answers, references, strict=True):
        diagnosis = diagnose(answer.translations[0].traces[0])
        assert row.score == pytest.approx(chrf([row.translation], [known]), abs=0.01)
        assert (row.missed, row.repeated) == (diagnosis.missed, diagnosis.repeated)
        assert row.entropy == pytest.approx(diagnosis.entropy, abs=1e-4)
        assert row.coverage == min(diagnosis.coverage[:-2])  # without the full stop and the end token
        assert row.confidence == pytest.approx(answer.translations[0].confidence, abs=1e-4)


def test_an_empty_source(translator: regard.Translator) -> None:
    (row,) = corpus_rows(0, translator.answers([""]), [["नाही"]])
    assert (row.translation, row.entropy, row.coverage, row.missed) == ("", None, None, [])


def test_a_test_set(work_address: str, translator: regard.Translator) -> None:
    job = send(work_address, "/corpus", [("dev.tsv", tsv([*PAIRS, (PAIRS[0][0], "दुसरे")]))], model="toy")
    job = finished(work_address, job)
    assert (job["name"], job["model"], job["state"], job["total"], job["done"]) == ("dev.tsv", "toy", "done", 20, 20)
    pairs = [Pair(*pair, line) for line, pair in enumerate([*PAIRS, (PAIRS[0][0], "दुसरे")], 1)]
    assert job["scores"] == translator.evaluate(pairs).as_dict()
    assert [row["source"] for row in job["rows"]] == [source for source, _ in PAIRS]
    assert job["rows"][0]["references"] == [PAIRS[0][1], "दुसरे"]
    assert [row["number"] for row in get(work_address, f"/corpus/{job['id']}?first=18")["rows"]] == [18, 19]
    trace = get(work_address, f"/corpus/{job['id']}/rows/3")["content"]["traces"][0][0]
    assert "".join(gap + text for gap, text in trace["source"]["units"]) == PAIRS[3][0]
    assert trace["steps"] and trace["confidence"]
    assert get(work_address, f"/corpus/{job['id']}/rows/20")[0] == 404


def test_json_lines_have_the_languages_of_the_model(work_address: str) -> None:
    line = json.dumps({"translation": {"mr": "तो घर पाहतो.", "en": "He sees a house."}})
    job = finished(work_address, send(work_address, "/corpus", [("dev.jsonl", line)], model="toy", confidence="false"))
    (row,) = job["rows"]
    assert (row["source"], row["references"], row["confidence"]) == ("He sees a house.", ["तो घर पाहतो."], None)


def test_it_can_be_cancelled_and_is_forgotten(translator_folder: Path) -> None:
    many = tsv([(f"The boy sees {number} books.", "x") for number in range(1500)])
    with running(ServerSettings([translator_folder], studio=True)) as address:
        first = send(address, "/corpus", [("a.tsv", many)])
        time.sleep(0.3)
        assert post(address, f"/corpus/{first['id']}/cancel")["state"] == "cancelled"
        job = get(address, f"/corpus/{first['id']}")
        assert job["done"] == len(job["rows"]) < 1500 and job["scores"] is None
        for _ in range(4):
            job = send(address, "/corpus", [("b.tsv", "One.\tएक.\n")])
        assert finished(address, job)["state"] == "done"
        assert get(address, f"/corpus/{first['id']}") == (
            404,
            "corpus: this test set is not there any more; load it again",
        )


def test_mistakes_are_named(work_address: str, translator_folder: Path) -> None:
    assert send(work_address, "/corpus", [("a.tsv", "one\n")])[0] == 422
    assert "is empty" in send(work_address, "/corpus", [("a.tsv", "")])[1]
    assert send(work_address, "/corpus", [("a.tsv", "a\tb\n" * 5001)]) == (
        422,
        "a.tsv: expected at most 5,000 lines, got more",
    )
    assert send(work_address, "/corpus", [("a.tsv", "a\tb\n")], model="judge")[0] == 422
    with running(ServerSettings([translator_folder], studio=True, limits=Limits(characters=5))) as address:
        assert send(address, "/corpus", [("a.tsv", "a long one\tb\n")])[0] == 413
