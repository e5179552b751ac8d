"""`regard compare`: its options, and what it prints. tests/experiments has the rest."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.commands.run import Inside, refused
from tests.experiments.compare import tiny
from tests.training import toy


def test_the_table_goes_to_standard_output(tmp_path: Path, inside: Inside) -> None:
    """Broken lines of the data are reported; with two text files, by --reverse, and quietly on another call."""
    for side, name in enumerate(("pairs.en", "pairs.mr")):
        (tmp_path / name).write_text("".join(f"{pair[side]}\n" for pair in toy.PAIRS) + "\n", encoding="utf-8")
    given = ["compare", tmp_path / "pairs.mr", tmp_path / "pairs.en", "--out", tmp_path / "new/out", "--reverse"]
    given += ["--recipe", tiny.recipe(tmp_path), "--seeds", "1", "--minutes", "0.05", "--device", "cpu"]
    done = inside(*given)
    assert done.returncode == 0, done.stderr
    head, row, empty, best, *more = done.stdout.splitlines()
    assert head.split()[:2] == ["kind", "chrF++"] and row.startswith("tiny ") and empty == ""
    assert best.startswith("Best: tiny, chrF++ ")
    assert all(line.startswith("Nothing learned yet") for line in more)  # in three seconds it may be so
    for message in ("1 line skipped, empty line: 81", "64 pairs for training", "run 1 of 1: tiny, seed 1: done in"):
        assert message in done.stderr
    assert done.stderr.endswith(f"page: {tmp_path / 'new/out/compare.html'}\n")
    again = inside(*given, "--resume", "--quiet")
    assert again.returncode == 0 and again.stdout == done.stdout and again.stderr == ""
    message = refused(inside(*given))
    assert "there already; expected --resume, to go on, or --overwrite, to begin anew" in message


@pytest.mark.parametrize(
    ("given", "message"),
    [
        (["--seeds", "0"], "invalid value for '--seeds'"),
        (["--minutes", "0"], "invalid value for '--minutes'"),
        (["--jobs", "0"], "invalid value for '--jobs'"),
        (["--recipe", "lstm"], "recipe: expected rnn, transformer, article"),
        (["--recipe", "classify"], "not for --task translate"),
        (["--vary", "model.score"], "--vary: expected KEY=VALUE, such as model.score=general, got 'model.score'"),
        (["--vary", "model.scor=dot"], "unknown key 'model.scor'; did you mean 'model.score'?"),
        (["--vary", "model.score=additive"], "--vary score=additive: no effect here"),
        (["--gold", "PAIRS"], "gold: expected a file of pairs or two parallel files, then one of links; got 1"),
        (["--gold", "PAIRS", "--gold", "PAIRS"], "line 1: expected links like 0-1 (sure) or 0p1 (possible)"),
        (["--gold", "PAIRS", "--gold", "missing"], "cannot read"),
        (["--dev", "missing.tsv"], "cannot read missing.tsv"),
        (["--resume"], "nothing to resume"),
        (["--resume", "--overwrite"], "resume and overwrite contradict each other"),
        (["--from", "en"], "--from and --to go together"),
        (["--device", "gpu"], "device"),
        (["--precision", "fp8"], "precision: expected"),
        (["--epochs", "3"], "no option '--epochs'"),
    ],
)
def test_refusals(given: list[str], message: str, tmp_path: Path, inside: Inside) -> None:
    pairs = toy.write_tsv(tmp_path / "pairs.tsv")
    options = [pairs if each == "PAIRS" else each for each in given]
    assert message in refused(inside("compare", pairs, "--out", tmp_path / "out", *options))
    assert [path.name for path in tmp_path.iterdir()] == ["pairs.tsv"]


@pytest.mark.parametrize(
    ("content", "message"), [(b"", "no pair in"), (b"a\nb\n", "no tab"), (b"\xff\xfea\x00", "UTF-16")]
)
def test_broken_data(content: bytes, message: str, tmp_path: Path, inside: Inside) -> None:
    (tmp_path / "pairs.tsv").write_bytes(content)
    assert message in refused(inside("compare", tmp_path / "pairs.tsv", "--out", tmp_path / "out"))
    assert [path.name for path in tmp_path.iterdir()] == ["pairs.tsv"]
