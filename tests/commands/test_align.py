"""`regard align --model` as a user runs it."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

import regard
from regard.alignment import AlignmentOptions, align_by_attention, error_rate, parse_links, read_gold, write_links
from regard.alignment.head_selection import HeadSelection
from tests.commands.run import Inside, refused
from tests.training import toy

TEXTS = [(source.replace(".", " ."), target.replace(".", " .")) for source, target in toy.PAIRS[:6]]


@pytest.fixture(scope="module")
def files(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A model of each direction, and pairs of blank-separated tokens, one of them empty and one half so."""
    here = tmp_path_factory.mktemp("align")
    regard.train(toy.PAIRS, here / "forward", settings=toy.TINY, device="cpu")
    regard.train([(target, source) for source, target in toy.PAIRS], here / "backward", settings=toy.TINY, device="cpu")
    rows = [*TEXTS[:3], ("", ""), ("Rahul", ""), *TEXTS[3:]]
    toy.write_tsv(here / "pairs.tsv", rows)
    for side, name in enumerate(("pairs.en", "pairs.mr")):
        (here / name).write_text("".join(f"{row[side]}\n" for row in rows), encoding="utf-8")
    return here


def expected(
    files: Path, way: AlignmentOptions | None = None, both: bool = False, texts: list[tuple[str, str]] = TEXTS
) -> list[str]:
    translators = [regard.load(files / name, "cpu") for name in ("forward", "backward")[: 1 + both]]
    result = [write_links(links) for links in align_by_attention(texts, *translators, options=way)]
    return [*result[:3], "", "", *result[3:]]


def test_a_line_of_links_for_every_line(files: Path, inside: Inside) -> None:
    done = inside("align", files / "pairs.tsv", "--model", files / "forward")
    assert (done.returncode, done.stderr) == (0, "")
    assert done.stdout.split("\n") == [*expected(files), ""]
    assert any(expected(files)), "there are links"
    assert inside("align", files / "pairs.en", files / "pairs.mr", "--model", files / "forward").stdout == done.stdout
    turned = inside("align", files / "pairs.tsv", "--model", files / "backward", "--reverse").stdout.split("\n")
    backward = regard.load(files / "backward", "cpu")
    assert turned[0] == write_links(next(align_by_attention([TEXTS[0][::-1]], backward)))


@pytest.mark.parametrize(
    ("arguments", "way"),
    [
        ([], AlignmentOptions()),
        (["--symmetrize", "intersection"], AlignmentOptions(symmetrization="intersection")),
        (
            ["--symmetrize", "union", "--next-step"],
            AlignmentOptions(symmetrization="union", selection=HeadSelection(next_step=True)),
        ),
        (["--symmetrize", "soft"], AlignmentOptions("threshold", "soft")),
        (["--symmetrize", "soft", "--method", "mutual"], AlignmentOptions("mutual", "soft")),
        (["--method", "threshold", "--min-weight", "0.1"], AlignmentOptions("threshold", min_weight=0.1)),
    ],
)
def test_two_directions(arguments: list[str], way: AlignmentOptions, files: Path, inside: Inside) -> None:
    done = inside("align", files / "pairs.tsv", "--model", files / "forward", "--with", files / "backward", *arguments)
    assert (done.returncode, done.stderr) == (0, "")
    assert done.stdout.split("\n") == [*expected(files, way, both=True), ""]


def test_a_file_appears_when_all_is_done(files: Path, tmp_path: Path, inside: Inside) -> None:
    done = inside("align", files / "pairs.tsv", "--model", files / "forward", "-o", tmp_path / "links")
    assert (done.returncode, done.stdout) == (0, "")
    assert (tmp_path / "links").read_text(encoding="utf-8").split("\n") == [*expected(files), ""]
    assert [path.name for path in tmp_path.iterdir()] == ["links"]


def test_tokens_are_as_given_and_tokenize_splits_them(files: Path, tmp_path: Path, inside: Inside) -> None:
    """As given, "mango." is one token; the table that --tokenize writes is itself a table of pairs."""
    pairs = toy.write_tsv(tmp_path / "pairs.tsv", [toy.PAIRS[0], ("", "")])
    all_pairs = ("--method", "threshold", "--min-weight", "0")
    given = inside("align", pairs, "--model", files / "forward", *all_pairs).stdout.split("\n")
    assert max(parse_links(given[0])) == (4, 2) and given[1] == ""
    done = inside("align", pairs, "--model", files / "forward", "--tokenize", "-o", tmp_path / "table.tsv")
    assert (done.returncode, done.stdout) == (0, "")
    first, second, _ = (tmp_path / "table.tsv").read_text(encoding="utf-8").split("\n")
    source, target, links = first.split("\t")
    assert (source, target) == TEXTS[0] and second == "\t\t"
    assert links == inside("align", tmp_path / "table.tsv", "--model", files / "forward").stdout.split("\n")[0]


def test_json_is_one_object_a_line(files: Path, inside: Inside) -> None:
    done = inside("align", files / "pairs.tsv", "--model", files / "forward", "--json")
    rows = [json.loads(line) for line in done.stdout.splitlines()]
    assert [" ".join(f"{i}-{j}" for i, j in row["links"]) for row in rows] == expected(files)
    assert (rows[0]["source"], rows[0]["target"]) == TEXTS[0] and rows[4]["source"] == "Rahul"


def test_a_broken_line_gets_no_links_and_a_notice(files: Path, tmp_path: Path, inside: Inside) -> None:
    """Nothing is dropped and nothing moves: line n of the links is of line n of the pairs."""
    good = "\t".join(TEXTS[0]).encode()
    whole = expected(files)[0]
    lines = [good, b"no tab", b"", b"\t", b"Rahul\t", b"\tx", b"\xff\tx", good + b"\tmore", b"no tab either", good]
    (tmp_path / "pairs.tsv").write_bytes(b"\n".join(lines) + b"\n")
    done = inside("align", tmp_path / "pairs.tsv", "--model", files / "forward")
    assert (done.returncode, done.stdout.split("\n")) == (0, [whole, *[""] * 6, whole, "", whole, ""])
    assert done.stderr == (
        f"regard: {tmp_path / 'pairs.tsv'}, 2 lines (2, 9): no pair, no tab: 1 column; no links there\n"
        f"regard: {tmp_path / 'pairs.tsv'}, line 7: no pair, not UTF-8; no links there\n"
    )
    both = inside("align", tmp_path / "pairs.tsv", "--model", files / "forward", "--with", files / "backward").stdout
    assert [number for number, line in enumerate(both.split("\n")) if line] == [0, 7, 9]


def test_broken_objects_get_no_links_and_text_that_is_white_neither(
    files: Path,
    tmp_path: Path,
    inside: Inside,
) -> None:
    good = json.dumps(dict(zip(("source", "target"), TEXTS[0], strict=True)))
    lines = [good, "{", '{"source": 5, "target": "x"}', "", '{"source": "\\u2003", "target": "x"}', good]
    (tmp_path / "pairs.jsonl").write_text("\n".join(lines), encoding="utf-8")
    done = inside("align", tmp_path / "pairs.jsonl", "--model", files / "forward")
    whole = expected(files)[0]
    assert (done.returncode, done.stdout.split("\n")) == (0, [whole, *[""] * 4, whole, ""])
    assert "line 2: no pair, not JSON" in done.stderr and "line 3: no pair, 'source' is not text" in done.stderr
    (tmp_path / "short.en").write_text("Rahul\n", encoding="utf-8")
    report = refused(inside("align", files / "pairs.en", tmp_path / "short.en", "--model", files / "forward"))
    assert "8 lines" in report and "expected as many in both" in report


def gold_file(path: Path, add: int = 0) -> Path:
    """First to first, and last to last."""
    lines = [f"{add}-{add} {len(one.split()) - 1 + add}-{len(other.split()) - 1 + add}" for one, other in TEXTS]
    path.write_text("\n".join([*lines[:3], "", "", *lines[3:]]) + "\n", encoding="utf-8")
    return path


def test_gold_gives_the_error_rate(files: Path, tmp_path: Path, inside: Inside) -> None:
    gold = gold_file(tmp_path / "gold")
    rate = error_rate([parse_links(line) for line in expected(files)], read_gold(gold))
    done = inside("align", files / "pairs.tsv", "--model", files / "forward", "--gold", gold, "-o", tmp_path / "links")
    assert (done.returncode, done.stderr) == (0, "")
    assert done.stdout == f"{rate}\n"
    assert (tmp_path / "links").read_text(encoding="utf-8").split("\n")[:-1] == expected(files)
    done = inside("align", files / "pairs.tsv", "--model", files / "forward", "--gold", gold, "--json")
    assert json.loads(done.stdout) == json.loads(json.dumps(rate.as_dict()))


def test_gold_that_counts_from_1_is_noticed(files: Path, tmp_path: Path, inside: Inside) -> None:
    report = refused(
        inside("align", files / "pairs.tsv", "--model", files / "forward", "--gold", gold_file(tmp_path / "one", 1))
    )
    assert "one, line 1: link" in report and "counts from 1" in report
    (tmp_path / "fits").write_text("\n".join(["1-1", "1-2", *[""] * 6]) + "\n", encoding="utf-8")
    done = inside("align", files / "pairs.tsv", "--model", files / "forward", "--gold", tmp_path / "fits")
    assert done.returncode == 0 and done.stdout.startswith("AER") and "if it counts from 1" in done.stderr


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["PAIRS", "--model", "NOWHERE"], "nowhere"),
        (["NOWHERE", "--model", "MODEL"], "nowhere"),
        (["PAIRS", "--model", "MODEL", "--with", "NOWHERE"], "nowhere"),
        (["PAIRS", "--model", "MODEL", "--symmetrize", "union"], "expected --with"),
        (["PAIRS", "--model", "MODEL", "--with", "MODEL"], "the other direction, got that of --model"),
        (["PAIRS", "--model", "MODEL", "--with", "BACK", "--symmetrize", "best"], "soft, got 'best'"),
        (["PAIRS", "--model", "MODEL", "--method", "best"], "mutual, got 'best'"),
        (["PAIRS", "--model", "MODEL", "--min-weight", "2"], "--min-weight"),
        (["PAIRS", "--model", "MODEL", "--gold", "NOWHERE"], "nowhere"),
        (["PAIRS", "--model", "MODEL", "--gold", "GOLD", "--tokenize"], "without --tokenize"),
        (["PAIRS", "--model", "MODEL", "--gold", "SHORT"], "for each of 8 pairs, got 1 lines"),
        (["TEXT", "--model", "MODEL"], "pairs.en, 7 lines (1, 2, 3, 5, 6, …): no pair, no tab"),
        (["PAIRS", "--model", "MODEL", "-o", "/proc/out"], "/proc/out"),
        (["PAIRS", "--model", "MODEL", "--from", "en"], "--from and --to go together"),
        (["PAIRS", "--model", "MODEL", "--priors", "PAIRS"], "--priors: no effect here; expected it without --model"),
        (["PAIRS", "--model", "MODEL", "--save", "NOWHERE"], "--save: no effect here"),
        (["PAIRS", "--model", "MODEL", "--look", "terminal"], "--look: no effect here"),
        (["MODEL", "PAIRS"], "forward is a folder; expected pairs, and a model after --model"),
    ],
)
def test_a_mistake_is_one_line(arguments: list[str], message: str, files: Path, tmp_path: Path, inside: Inside) -> None:
    (tmp_path / "short").write_text("0-0\n", encoding="utf-8")
    names = {
        "MODEL": files / "forward",
        "BACK": files / "backward",
        "PAIRS": files / "pairs.tsv",
        "TEXT": files / "pairs.en",
        "NOWHERE": tmp_path / "nowhere",
        "GOLD": gold_file(tmp_path / "gold"),
        "SHORT": tmp_path / "short",
    }
    assert message in refused(inside("align", *(names.get(each, each) for each in arguments)))
