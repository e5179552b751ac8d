"""`--confidence`, `--min-confidence` and `--fallback` of `translate`, `evaluate --confidence`, and `calibrate`."""

from __future__ import annotations

import json
import shutil
from pathlib import Path

import pytest

import regard as package
from regard.look import terminal
from tests.commands.run import SOURCES, Inside, refused


@pytest.fixture(scope="module")
def expected(files: Path) -> list[tuple[float, str]]:
    model = package.load(files / "model", "cpu")
    assert isinstance(model, package.Translator)
    answers = model.answers(SOURCES[:8], confidence=True)
    return [(answer.translations[0].confidence or 0.0, answer.text) for answer in answers]


def test_a_column_before_the_text(files: Path, inside: Inside, expected: list[tuple[float, str]]) -> None:
    done = inside("translate", files / "model", "--confidence", "-q", *SOURCES[:8], "")
    lines = done.stdout.split("\n")[:-1]
    assert done.returncode == 0 and lines[-1] == "1.00\t"
    assert lines[:-1] == [f"{value:.2f}\t{text}" for value, text in expected]


def test_with_n_best_it_is_the_third_column(files: Path, inside: Inside) -> None:
    done = inside("translate", files / "model", "--confidence", "--n-best", "3", "--beam", "4", *SOURCES[:2])
    rows = [line.split("\t") for line in done.stdout.split("\n")[:-1]]
    assert [row[0] for row in rows] == ["1", "2", "3"] * 2
    assert all(len(row) == 4 and 0 <= float(row[2]) <= 1 for row in rows)


def test_json_has_every_word(files: Path, inside: Inside, expected: list[tuple[float, str]]) -> None:
    done = inside("translate", files / "model", "--confidence", "--json", *SOURCES[:8])
    for line, (value, text) in zip(done.stdout.splitlines(), expected, strict=True):
        (translation,) = json.loads(line)["translations"]
        assert translation["text"] == text and translation["confidence"] == pytest.approx(value, abs=1e-4)
        assert "".join(word["text"] for word in translation["words"]) == text.replace(" ", "")
        assert all(0 <= word["confidence"] <= 1 for word in translation["words"])
        assert "withheld" not in translation


def test_a_terminal_shades_doubtful_words(
    files: Path, inside: Inside, monkeypatch: pytest.MonkeyPatch, expected: list[tuple[float, str]]
) -> None:
    monkeypatch.setattr(terminal, "in_colour", lambda out: True)
    done = inside("translate", files / "model", "--confidence", *SOURCES[:8])
    assert "\x1b[" in done.stdout
    plain = done.stdout
    while "\x1b[" in plain:
        before, _, rest = plain.partition("\x1b[")
        plain = before + rest.partition("m")[2]
    assert plain.split("\n")[:-1] == [f"{value:.2f}\t{text}" for value, text in expected]


@pytest.mark.parametrize("fallback", [None, "source"])
def test_an_empty_line_or_the_source_instead(
    files: Path, inside: Inside, expected: list[tuple[float, str]], fallback: str | None
) -> None:
    middle = sorted(value for value, _ in expected)[4]
    options = ["--min-confidence", str(middle - 1e-9), *(["--fallback", fallback] if fallback else [])]
    done = inside("translate", files / "model", *options, *SOURCES[:8], "")
    lines = done.stdout.split("\n")[:-1]
    wanted = [
        text if value >= middle else source if fallback else ""
        for (value, text), source in zip(expected, SOURCES[:8], strict=True)
    ]
    assert lines == [*wanted, ""] and wanted != [text for _, text in expected]


def test_json_says_what_was_withheld(files: Path, inside: Inside) -> None:
    done = inside("translate", files / "model", "--min-confidence", "1", "--json", "--n-best", "3", SOURCES[0])
    (translation,) = json.loads(done.stdout)["translations"]
    assert translation["withheld"] is True and translation["text"] == "" and translation["confidence"] < 1
    done = inside("translate", files / "model", "--min-confidence", "0", "--json", "--n-best", "3", SOURCES[0])
    translations = json.loads(done.stdout)["translations"]
    assert len(translations) == 3 and not any(each["withheld"] for each in translations)


def test_the_page_and_the_trace_have_it(files: Path, inside: Inside, tmp_path: Path) -> None:
    looks = ["--look", tmp_path / "a.json", "--look", tmp_path / "a.html"]
    assert inside("translate", files / "model", "--confidence", *looks, SOURCES[0]).returncode == 0
    trace = json.loads((tmp_path / "a.json").read_text(encoding="utf-8"))
    assert trace["confidence"] and all(0 <= value <= 1 for value in trace["confidence"])
    assert '"confidence":[0.' in (tmp_path / "a.html").read_text(encoding="utf-8")
    inside("translate", files / "model", "--look", tmp_path / "b.json", SOURCES[0])
    assert json.loads((tmp_path / "b.json").read_text(encoding="utf-8"))["confidence"] == []


@pytest.mark.parametrize(
    ("options", "complaint"),
    [
        (["--fallback", "source"], "--fallback: no effect here; expected --min-confidence with it"),
        (["--min-confidence", "0.5", "--fallback", "empty"], "--fallback: expected source, got 'empty'"),
        (["--min-confidence", "1.5"], "--min-confidence: expected a number from 0 to 1, got 1.5"),
        (["--min-confidence", "nan"], "--min-confidence: expected a number from 0 to 1, got nan"),
    ],
)
def test_mistakes(files: Path, inside: Inside, options: list[str], complaint: str) -> None:
    assert complaint in refused(inside("translate", files / "model", *options, SOURCES[0]))


@pytest.fixture(scope="module")
def uncalibrated(files: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("old") / "model"
    shutil.copytree(files / "model", folder)
    card = json.loads((folder / "card.json").read_text(encoding="utf-8"))
    del card["confidence"]
    (folder / "card.json").write_text(json.dumps(card), encoding="utf-8")
    return folder


def test_a_model_without_confidence_says_how_to_calibrate_it(files: Path, uncalibrated: Path, inside: Inside) -> None:
    for arguments in (
        ["translate", uncalibrated, "--confidence", "x"],
        ["evaluate", uncalibrated, files / "pairs.tsv", "--confidence"],
    ):
        assert f"`regard calibrate {uncalibrated} PAIRS` adds it" in refused(inside(*arguments))
    done = inside("calibrate", uncalibrated, files / "pairs.tsv", "--json")
    entry = json.loads(done.stdout)
    assert done.returncode == 0 and (entry["data"], entry["sources"]) == ("pairs.tsv", 80)
    assert inside("translate", uncalibrated, "--confidence", SOURCES[0]).returncode == 0
    done = inside("calibrate", uncalibrated, files / "pairs.tsv")
    assert "words of 80 sources" in done.stdout and "calibration error by cross-validation" in done.stdout


def test_evaluate_shows_what_abstaining_gains(files: Path, inside: Inside) -> None:
    plain = inside("evaluate", files / "model", files / "pairs.tsv")
    done = inside("evaluate", files / "model", files / "pairs.tsv", "--confidence")
    assert done.stdout.startswith(plain.stdout)
    for text in ("calibration error", "rank correlation", "answered", "  80 %"):
        assert text in done.stdout
    done = inside("evaluate", files / "model", files / "pairs.tsv", "--confidence", "--json")
    report = json.loads(done.stdout)
    assert report["confidence"]["sources"] == 80 and len(report["confidence"]["curve"]) == 6
    assert report["confidence"]["curve"][0]["chrf"] == pytest.approx(report["chrf"])
