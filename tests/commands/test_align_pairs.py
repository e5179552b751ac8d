"""`regard align` without a model, as a user runs it."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

import regard
import regard.samples
from regard.alignment.links import write_links
from regard.look.trace_files import read
from tests.commands.run import Inside, refused
from tests.commands.run import regard as command

SAMPLE = Path(regard.samples.__file__).parent / "english-marathi"
PAIRS = [("The dog sleeps .", "Le chien dort ."), ("The cat sleeps .", "Le chat dort ."), ("A dog", "Un chien")] * 5
ROWS = [*PAIRS[:3], ("", ""), ("The dog", ""), *PAIRS[3:]]


@pytest.fixture
def pairs(tmp_path: Path) -> Path:
    text = "".join(f"{source}\t{target}\n" for source, target in ROWS)
    (tmp_path / "pairs.tsv").write_text(text, encoding="utf-8")
    return tmp_path / "pairs.tsv"


def expected() -> list[str]:
    return [write_links(links) for links in regard.align(ROWS).links]


def test_a_line_of_links_for_every_line(pairs: Path, tmp_path: Path, inside: Inside) -> None:
    done = inside("align", pairs)
    assert (done.returncode, done.stderr) == (0, "")
    lines = done.stdout.split("\n")
    assert lines == [*expected(), ""] and lines[0] == "0-0 1-1 2-2 3-3" and lines[3:5] == ["", ""]
    for side, name in enumerate(("source.txt", "target.txt")):
        (tmp_path / name).write_text("".join(f"{row[side]}\n" for row in ROWS), encoding="utf-8")
    assert inside("align", tmp_path / "source.txt", tmp_path / "target.txt").stdout == done.stdout
    assert inside("align", pairs, "-o", tmp_path / "links", "--threads", "1").stdout == ""
    assert (tmp_path / "links").read_text(encoding="utf-8") == done.stdout
    turned = regard.align([(target, source) for source, target in ROWS]).links
    assert inside("align", pairs, "--reverse").stdout.split("\n") == [*map(write_links, turned), ""]


def test_as_a_process(pairs: Path) -> None:
    done = command("align", pairs)
    assert (done.returncode, done.stderr, done.stdout.split("\n")) == (0, "", [*expected(), ""])


def test_json_has_tokens_and_probabilities(pairs: Path, inside: Inside) -> None:
    rows = [json.loads(line) for line in inside("align", pairs, "--json").stdout.splitlines()]
    result = regard.align(ROWS)
    assert [" ".join(f"{one}-{other}" for one, other in row["links"]) for row in rows] == expected()
    for row, sides, probabilities in zip(rows, ROWS, result.probabilities, strict=True):
        assert (row["source"], row["target"]) == sides
        assert (row["source_tokens"], row["target_tokens"]) == (sides[0].split(), sides[1].split())
        for link, probability in zip(row["links"], row["probabilities"], strict=True):
            assert probability == pytest.approx(probabilities[tuple(link)], abs=1e-4) and probability >= 0.5


def test_a_smaller_probability_gives_more_links(tmp_path: Path, inside: Inside) -> None:
    (tmp_path / "pairs.tsv").write_text("a b c\td e f\nc a\te d\n", encoding="utf-8")
    few, many = (inside("align", tmp_path / "pairs.tsv", "--min-weight", each).stdout for each in ("0.99", "0.05"))
    assert len(few.split()) < len(many.split()) and few.count("\n") == many.count("\n") == 2


def test_tokenize_prints_the_text_that_is_counted(tmp_path: Path, inside: Inside) -> None:
    (tmp_path / "pairs.tsv").write_text("I drink tea.\t我喝茶。\nyou drink\t你喝\nI\t我\n" * 9, encoding="utf-8")
    done = inside("align", tmp_path / "pairs.tsv", "--tokenize")
    assert done.returncode == 0
    source, target, links = done.stdout.split("\n")[0].split("\t")
    assert (source, target) == ("I drink tea .", "我 喝 茶 。") and {"0-0", "1-1"} <= set(links.split())


def test_a_broken_line_and_one_that_is_too_long_get_no_links_and_a_notice(tmp_path: Path, inside: Inside) -> None:
    lines = ["\t".join(PAIRS[0]), "no tab", "word " * 4000 + "\tx", "\t".join(PAIRS[1])]
    (tmp_path / "pairs.tsv").write_text("\n".join(lines), encoding="utf-8")
    done = inside("align", tmp_path / "pairs.tsv")
    assert done.returncode == 0 and done.stdout.split("\n")[1:3] == ["", ""] and done.stdout.count("\n") == 4
    assert done.stderr == (
        f"regard: {tmp_path / 'pairs.tsv'}, line 2: no pair, no tab: 1 column; no links there\n"
        "regard: 1 line skipped, longer than 2,000 characters, no links there: 3\n"
    )
    assert inside("align", tmp_path / "pairs.tsv", "--quiet").stderr == ""


def test_saved_priors_align_a_single_new_pair(tmp_path: Path, inside: Inside) -> None:
    train = SAMPLE / "train.tsv"
    done = inside("align", train, "--tokenize", "--save", tmp_path / "priors", "-o", tmp_path / "links")
    assert (done.returncode, done.stdout, done.stderr) == (0, "", "")
    files = SAMPLE / "links.src", SAMPLE / "links.tgt", "--gold", SAMPLE / "links.talp", "--json"
    alone, helped = (
        json.loads(inside("align", *files, *more).stdout) for more in ([], ["--priors", tmp_path / "priors"])
    )
    assert alone["aer"] > 0.1 and helped["aer"] < 0.08
    assert helped.keys() == {"aer", "interval", "precision", "recall", "sentences", "links"}
    (tmp_path / "new.tsv").write_text("The boy eats a mango .\tमुलगा आंबा खातो .\nkiwi\tकिवी\n", encoding="utf-8")
    again = inside("align", tmp_path / "new.tsv", "--priors", tmp_path / "priors", "--save", tmp_path / "more")
    assert "4-1" in again.stdout.split() and (tmp_path / "more").stat().st_size > (tmp_path / "priors").stat().st_size


def test_gold_prints_scores(pairs: Path, tmp_path: Path, inside: Inside) -> None:
    (tmp_path / "gold").write_text("".join(f"{line}\n" for line in expected()), encoding="utf-8")
    done = inside("align", pairs, "--gold", tmp_path / "gold", "-o", tmp_path / "links")
    assert done.returncode == 0 and done.stdout.startswith("AER        0.0000") and "recall     1.0000" in done.stdout
    assert (tmp_path / "links").read_text(encoding="utf-8").split("\n") == [*expected(), ""]


def test_look(pairs: Path, tmp_path: Path, inside: Inside) -> None:
    done = inside("align", pairs, "--look", "terminal")
    assert done.returncode == 0 and done.stdout.startswith("0-0 1-1 2-2 3-3\n\n") and "chien" in done.stdout
    files = [tmp_path / f"a.{kind}" for kind in ("html", "svg", "json")]
    looks = [word for file in files for word in ("--look", file)]
    done = inside("align", pairs, *looks, "--view", "links", "-o", tmp_path / "links")
    assert done.returncode == 0 and "written: " in done.stderr
    assert [trace.target.text for trace in read(files[2])] == [target for _, target in PAIRS]
    assert files[0].stat().st_size > 500 and (tmp_path / "a-1.svg").exists()


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["NOWHERE"], "nowhere"),
        (["FOLDER"], "folder is a folder; expected pairs, and a model after --model: PAIRS --model"),
        (["FOLDER", "PAIRS"], "folder is a folder"),
        (["PAIRS", "--with", "FOLDER"], "--with: no effect here; expected --model with it"),
        (["PAIRS", "--symmetrize", "union"], "--symmetrize: no effect here"),
        (["PAIRS", "--method", "argmax", "--layer", "0"], "--method, --layer: no effect here"),
        (["PAIRS", "--next-step", "--head", "0"], "--next-step, --head: no effect here"),
        (["PAIRS", "--device", "cpu", "--precision", "fp32"], "--device, --precision: no effect here"),
        (["PAIRS", "--min-weight", "0"], "--min-weight: expected more than 0"),
        (["PAIRS", "--min-weight", "2"], "--min-weight"),
        (["PAIRS", "--priors", "NOWHERE"], "nowhere: no such file; expected a file that `regard align --save` wrote"),
        (["PAIRS", "--priors", "PAIRS"], "got something else"),
        (["PAIRS", "--save", "NOWHERE/x"], "nowhere"),
        (["PAIRS", "--save", "FOLDER"], "expected a file to write, got a folder"),
        (["PAIRS", "--save", "OUT", "-o", "OUT"], "-o and --save: expected different files"),
        (["PAIRS", "--view", "grid"], "--view: no effect here; expected --look with it"),
        (["PAIRS", "--look", "a.gif"], "look: expected terminal or a file that ends in"),
        (["PAIRS", "--look", "terminal", "--json"], "both write on standard output"),
        (["PAIRS", "--look", "terminal", "--view", "text"], "got 'text'"),
        (["PAIRS", "--gold", "PAIRS"], "expected links like"),
        (["PAIRS", "--gold", "GOLD", "--tokenize"], "without --tokenize"),
        (["PAIRS", "--from", "en"], "--from and --to go together"),
        (["PAIRS", "PAIRS", "PAIRS"], "3 files of pairs came"),
        (["EMPTY"], "no pair in"),
        (["BLANK", "--save", "OUT"], "nothing was learned"),
    ],
)
def test_a_mistake_is_one_line(arguments: list[str], message: str, pairs: Path, tmp_path: Path, inside: Inside) -> None:
    (tmp_path / "folder").mkdir()
    (tmp_path / "gold").write_text("0-0\n" * len(ROWS), encoding="utf-8")
    (tmp_path / "empty.tsv").touch()
    (tmp_path / "blank.tsv").write_text("\t\n", encoding="utf-8")
    names = {
        "PAIRS": pairs,
        "NOWHERE": tmp_path / "nowhere",
        "NOWHERE/x": tmp_path / "nowhere" / "x",
        "FOLDER": tmp_path / "folder",
        "GOLD": tmp_path / "gold",
        "OUT": tmp_path / "out",
        "EMPTY": tmp_path / "empty.tsv",
        "BLANK": tmp_path / "blank.tsv",
    }
    assert message in refused(inside("align", *(names.get(each, each) for each in arguments)))
    assert not (tmp_path / "out").exists()
