"""The table, the words below it, and CSV."""

from __future__ import annotations

import csv
import io
import json
from pathlib import Path

import pytest

from regard.experiments.compare.comparison import Comparison
from regard.experiments.compare.kinds import chosen_kinds
from regard.experiments.compare.results import KindResult, RunResult, compared
from regard.experiments.compare.table import csv_text

RIGHT = ["the boy sees a mango", "some water near that house", "my friend buys the book", "Sita wants a house"]
REFERENCES = [[text] for text in RIGHT]


def run(seed: int, hypotheses: list[str], chrf: float, **more: object) -> RunResult:
    values = {"bleu": 10.0 + seed, "exact": 25.0, "minutes": 3.0, "sentences_per_second": 80.0, "parameters": 1234567}
    return RunResult(seed, Path("model"), chrf=chrf, hypotheses=hypotheses, signature="sig", **values, **more)  # type: ignore[arg-type]


def failed(seed: int) -> RunResult:
    return RunResult(seed, Path("model"), failure="no pair is left")


@pytest.fixture
def comparison() -> Comparison:
    additive, general, local, *_ = chosen_kinds()
    worse = [text[:4] for text in RIGHT]
    kinds = [
        (local, [failed(1), failed(2)]),
        (general, [run(1, worse, 20.0), failed(2)]),
        (additive, [run(1, RIGHT, 100.0, aer=0.25), run(2, RIGHT, 99.0, aer=0.35)]),
    ]
    facts = {"seeds": [1, 2], "minutes": 3.0, "dev": {"sources": 4}, "data": {"name": "pairs.tsv"}}
    return Comparison(Path("out"), compared(kinds, REFERENCES), facts)


def test_best_first_and_failed_last(comparison: Comparison) -> None:
    assert [kind.name for kind in comparison.kinds] == ["rnn additive", "rnn general", "rnn local"]
    assert comparison.best.p_value is None and comparison.kinds[2].p_value is None
    assert comparison.kinds[1].p_value == 1 / 1001 and comparison.kinds[1].is_significant
    assert [kind.name for kind in comparison.trained] == ["rnn additive", "rnn general"]


def test_the_text(comparison: Comparison) -> None:
    lines = str(comparison).split("\n")
    assert lines[0].split() == [
        *("kind", "chrF++", "seeds", "p", "BLEU", "exact", "AER", "minutes", "sent/s", "parameters")
    ]
    assert lines[1].split() == [
        *(
            "rnn",
            "additive",
            "99.5",
            "99.0",
            "…",
            "100.0",
            "best",
            "11.5",
            "25.0",
            "%",
            "0.300",
            "3.0",
            "80",
            "1,234,567",
        )
    ]
    assert "0.001" in lines[2] and " – " in lines[2]
    assert lines[3] == "rnn local     failed: no pair is left"
    assert lines[5:] == [
        "Best: rnn additive, chrF++ 99.5 on 4 dev sentences, over 2 seeds.",
        "Significantly worse (p < 0.05): rnn general.",
        "p: paired bootstrap resampling of the dev sentences (1,000 samples) on chrF++.",
        "rnn general: 1 of 2 runs failed: no pair is left",
    ]
    assert len({len(line) for line in lines[:3]}) == 1, "columns are aligned"


def test_kinds_that_do_not_differ_are_named() -> None:
    additive, general, *_ = chosen_kinds()
    kinds = compared([(additive, [run(1, RIGHT, 50.0)]), (general, [run(1, RIGHT, 50.0)])], REFERENCES)
    text = str(Comparison(Path("out"), kinds, {"dev": {"sources": 4}}))
    assert "No significant difference to the best: rnn general (p = 1.00)." in text
    assert "Significantly" not in text and "seeds" not in text.split("\n")[0] and "AER" not in text


def test_kinds_that_learned_nothing_are_named() -> None:
    additive, general, *_ = chosen_kinds()
    runs = [run(1, ["a house"] * 4, 20.0)], [run(1, ["a house"] * 4, 10.0), run(2, RIGHT, 90.0)]
    kinds = compared([(additive, runs[0]), (general, runs[1])], REFERENCES)
    text = str(Comparison(Path("out"), kinds, {"dev": {"sources": 4}}))
    assert "every sentence gets the same translation: rnn additive. More minutes may help." in text


def test_csv_and_json(comparison: Comparison) -> None:
    rows = list(csv.DictReader(io.StringIO(csv_text(comparison.kinds))))
    assert [row["kind"] for row in rows] == ["rnn additive", "rnn general", "rnn local"]
    assert (rows[0]["chrf"], rows[0]["chrf_low"], rows[0]["chrf_high"], rows[0]["aer"]) == (
        "99.5",
        "99.0",
        "100.0",
        "0.3",
    )
    assert rows[1]["p_value"] == "0.001" and rows[1]["settings"] == "model.score=general"
    assert (rows[2]["chrf"], rows[2]["failed"], rows[2]["failure"]) == ("", "2", "no pair is left")
    content = json.loads(json.dumps(comparison.as_dict()))
    assert content["kinds"][0]["chrf"] == {"mean": 99.5, "low": 99.0, "high": 100.0}
    assert content["kinds"][2]["chrf"] is None and content["kinds"][2]["runs"][0]["failure"] == "no pair is left"
    assert content["conclusions"] == comparison.conclusions and content["signature"] == "sig"


def test_all_failed() -> None:
    kind = chosen_kinds()[0]
    (result,) = compared([(kind, [failed(1)])], REFERENCES)
    assert isinstance(result, KindResult) and not result.trained and result.p_value is None
