"""An option that would do nothing is refused, and labels that a model does not know are too."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.commands.run import SOURCES, Inside, refused
from tests.commands.test_classify import here  # noqa: F401, a fixture


@pytest.mark.parametrize(
    ("given", "message"),
    [
        (["--temperature", "0.5"], "--temperature: no effect here; expected --sample"),
        (["--seed", "1"], "--seed: no effect here; expected --sample"),
        (["--top-k", "3"], "--top-k: no effect here; expected --sample"),
        (["--top-k", "3", "--seed", "1"], "--top-k, --seed: no effect"),
        (["--sample", "--beam", "3"], "--beam: no effect"),
        (["--sample", "--length-penalty", "0.5"], "--length-penalty: no effect"),
        (["--sample", "--mbr", "4"], "--mbr: no effect here; expected neither with --sample"),
        (["--mbr", "4", "--length-penalty", "0.5"], "--length-penalty: no effect here; expected it without --mbr"),
        (["--mbr", "4", "--top-p", "0.5"], "--top-p: no effect here; expected --sample"),
        (["--mbr", "0", "--seed", "1"], "--seed: no effect here; expected --sample"),
        (["--mbr", "4", "--n-best", "9"], "n_best: expected at most"),
        (["--beam", "1", "--length-penalty", "0.5"], "--length-penalty: no effect"),
        (["--n-best", "4", "--beam", "3"], "n_best: expected at most the beam's 3"),
        (["--view", "grid"], "--view: no effect here; expected --look"),
        (["--view", "grid", "--look", "a.html"], "no effect on a page or JSON"),
        (["--view", "links", "--look", "terminal"], "a terminal shows no links"),
        (["--view", "text", "--look", "terminal"], "expected grid or links"),
        (["--evidence"], "--evidence: no effect here; expected --look"),
        (["--look", "a.json", "-o", "a.json"], "expected different files"),
    ],
)
def test_translate(given: list[str], message: str, files: Path, inside: Inside, tmp_path: Path) -> None:
    given = [str(tmp_path / each) if each.startswith("a.") else each for each in given]
    assert message in refused(inside("translate", files / "model", SOURCES[0], *given))
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize(
    ("given", "message"),
    [
        (["--calibrated"], "--calibrated: no effect here"),
        (["--probabilities", "--json"], "--probabilities: no effect here"),
        (["--view", "text"], "--view: no effect here; expected --look"),
        (["--evidence"], "--evidence: no effect here; expected --look"),
    ],
)
def test_classify(given: list[str], message: str, here: Path, inside: Inside) -> None:  # noqa: F811
    assert message in refused(inside("classify", here / "model", "x", *given))


def test_calibrated_changes_what_is_looked_at(here: Path, inside: Inside) -> None:  # noqa: F811
    asked = ["classify", here / "model", "The film is gripping.", "--look", "terminal"]
    assert inside(*asked).stdout != inside(*asked, "--calibrated").stdout


@pytest.mark.parametrize(
    ("given", "message"),
    [
        (["--show", "3"], "--show: no effect here; expected --diagnose"),
        (["--show", "3", "--diagnose", "missed", "--json"], "--show: no effect here; --json has all"),
        (["--calibrated"], "--calibrated is for classifiers"),
        (["--from", "en", "--to", "mr"], "--from, --to: no effect here; expected a .jsonl"),
    ],
)
def test_evaluate(given: list[str], message: str, files: Path, inside: Inside) -> None:
    assert message in refused(inside("evaluate", files / "model", files / "pairs.tsv", *given))


def test_evaluate_names_labels_that_the_model_does_not_know(here: Path, tmp_path: Path, inside: Inside) -> None:  # noqa: F811
    (tmp_path / "gold.tsv").write_text("It is good.\tgood\nIt is odd.\todd\nIt is so.\tso-so\n")
    message = refused(inside("evaluate", here / "model", tmp_path / "gold.tsv"))
    assert "gold.tsv: labels: expected those of the model (bad, good), got odd, so-so in 2 of 3 texts" in message


@pytest.mark.parametrize(
    ("given", "message"),
    [
        (["--symmetrize", "union"], "--symmetrize takes two directions"),
        (["--from", "en", "--to", "mr"], "--from, --to: no effect here"),
        (["--tokenize", "--gold", "PAIRS"], "without --tokenize"),
    ],
)
def test_align(given: list[str], message: str, files: Path, inside: Inside) -> None:
    given = [str(files / "pairs.tsv") if each == "PAIRS" else each for each in given]
    assert message in refused(inside("align", files / "pairs.tsv", "--model", files / "model", *given))


@pytest.mark.parametrize("command", ["align", "evaluate"])
def test_an_empty_file_is_an_error(command: str, files: Path, tmp_path: Path, inside: Inside) -> None:
    (tmp_path / "empty.tsv").touch()
    model = [] if command == "align" else [files / "model"]
    assert "no pair in" in refused(inside(command, *model, tmp_path / "empty.tsv"))


@pytest.mark.parametrize(
    ("given", "message"),
    [
        (["TRACE", "-o", "a.html", "--layer", "0"], "--layer: no effect here"),
        (["TRACE", "-o", "a.json", "--pieces", "--view", "grid"], "--view, --pieces: no effect here"),
        (["TRACE", "--view", "links"], "a terminal shows no links"),
        (["TRACE", "--view", "text", "--pieces"], "--pieces: no effect here"),
        (["MODEL", "--history", "-o", "a.html", "--head", "0"], "--head: no effect here; --history shows"),
        (["MODEL", "--history", "-o", "a.html", "--attention", "cross"], "--attention: no effect"),
    ],
)
def test_look(given: list[str], message: str, files: Path, tmp_path: Path, inside: Inside) -> None:
    trace = tmp_path / "trace.json"
    inside("translate", files / "model", SOURCES[0], "--look", trace)
    names = {"TRACE": trace, "MODEL": files / "model", "a.html": tmp_path / "a.html", "a.json": tmp_path / "a.json"}
    assert message in refused(inside("look", *(str(names.get(each, each)) for each in given)))
    assert list(tmp_path.iterdir()) == [trace]


def test_a_page_that_is_there_is_not_replaced_unasked(
    files: Path,
    tmp_path: Path,
    inside: Inside,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.chdir(tmp_path)
    assert inside("look", files / "model", "--history").returncode == 0
    (tmp_path / "history.html").write_text("mine")
    assert "history.html: there already; expected -o" in refused(inside("look", files / "model", "--history"))
    assert (tmp_path / "history.html").read_text() == "mine"
