"""`regard evaluate`, and models that no command takes."""

from __future__ import annotations

import json
import shutil
from pathlib import Path

import pytest

from tests.commands.run import Inside, refused


@pytest.mark.parametrize("command", ["translate", "evaluate", "align"])
def test_a_model_without_validated_weights_is_refused(
    command: str, files: Path, tmp_path: Path, inside: Inside
) -> None:
    shutil.copytree(files / "model", tmp_path / "model")
    (tmp_path / "model" / "model.safetensors").unlink()
    card = json.loads((tmp_path / "model" / "card.json").read_text(encoding="utf-8"))
    begun = {key: value for key, value in card.items() if key not in ("ended", "scores")}
    (tmp_path / "model" / "card.json").write_text(json.dumps(begun), encoding="utf-8")
    model = ["--model", tmp_path / "model"] if command == "align" else [tmp_path / "model"]
    done = inside(command, *model, "text" if command == "translate" else files / "pairs.tsv")
    assert (done.returncode, done.stdout) == (2, "")
    (line,) = done.stderr.splitlines()
    assert "no model yet" in line and "--resume" in line


def test_evaluate_prints_scores_with_signatures(files: Path, inside: Inside) -> None:
    done = inside("evaluate", files / "model", files / "pairs.tsv")
    assert done.returncode == 0 and done.stderr == ""
    for part in ("BLEU", "chrF++", "TER", "exact", "tok:13a", "nw:2", "80 sources, 80 references"):
        assert part in done.stdout
    as_json = json.loads(inside("evaluate", files / "model", files / "pairs.tsv", "--json").stdout)
    assert as_json.keys() == {"bleu", "chrf", "ter", "exact", "sources", "references", "signatures"}
    assert f"{as_json['chrf']:6.2f}" in done.stdout and (as_json["sources"], as_json["references"]) == (80, 80)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["NOWHERE", "PAIRS"], "nowhere"),
        (["MODEL", "NOWHERE"], "nowhere"),
        (["MODEL", "BROKEN"], "line 2 is no pair"),
        (["MODEL", "EMPTY"], "empty"),
        (["MODEL", "PAIRS", "--from", "en"], "--from and --to go together"),
        (["MODEL", "PAIRS", "--precision", "fp8"], "precision"),
        (["MODEL", "PAIRS", "--device", "foo"], "device"),
    ],
)
def test_a_mistake_in_evaluate_is_one_line(
    arguments: list[str], message: str, files: Path, tmp_path: Path, inside: Inside
) -> None:
    (tmp_path / "broken.tsv").write_text("a\tb\nno tab\n")
    (tmp_path / "empty.tsv").write_text("")
    names = {"MODEL": files / "model", "PAIRS": files / "pairs.tsv", "NOWHERE": tmp_path / "nowhere"}
    names |= {"BROKEN": tmp_path / "broken.tsv", "EMPTY": tmp_path / "empty.tsv"}
    assert message in refused(inside("evaluate", *[names.get(each, each) for each in arguments]))
