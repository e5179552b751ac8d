"""Reading pairs: what was written comes back, what is broken is said, and no line is lost without a word."""

import csv
import gzip
import hashlib
import io
import json
import re
from collections.abc import Iterable
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from regard.text.normal import tidy
from regard.text.pairs import Corpus, Pair, read_lines, read_pairs, read_references

BOM = b"\xef\xbb\xbf"
Rows = list[tuple[str, str]]


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("pairs")


def written(path: Path, data: bytes | str) -> Path:
    path.write_bytes(data.encode() if isinstance(data, str) else data)
    return path


def sides(pairs: Iterable[Pair]) -> Rows:
    return [(pair.source, pair.target) for pair in pairs]


def usable(rows: Rows) -> list[tuple[str, str, int]]:
    """The tidied rows with two sides, each once, and their lines."""
    result: dict[tuple[str, str], int] = {}
    for line, (source, target) in enumerate(rows, start=1):
        if tidy(source) and tidy(target):
            result.setdefault((tidy(source), tidy(target)), line)
    return [(source, target, line) for (source, target), line in result.items()]


def as_file(lines: list[str], end: str, mark: bool, last: bool, packed: bool) -> bytes:
    text = end.join(lines) + (end if last or not lines[-1] else "")
    mark = mark or text.startswith("\ufeff")  # else the text's own first character would be the mark
    data = (BOM if mark else b"") + text.encode()
    return gzip.compress(data, compresslevel=1) if packed else data


def check_both_readers(paths: list[Path], rows: Rows, reverse: bool) -> None:
    if reverse:
        rows = [(target, source) for source, target in rows]
    assert sides(read_references(paths, reverse)) == [(tidy(source), tidy(target)) for source, target in rows]
    if not usable(rows):
        with pytest.raises(ValueError, match="no pair in"):
            read_pairs(paths, reverse)
        return
    corpus = read_pairs(paths, reverse)
    assert [(pair.source, pair.target, pair.line) for pair in corpus.pairs] == usable(rows)
    check_accounts(corpus, len(rows))


def check_accounts(corpus: Corpus, lines: int) -> None:
    reported = [pair.line for pair in corpus.pairs] + [line for result in corpus.skipped.values() for line in result]
    assert sorted(reported) == list(range(1, lines + 1))
    assert corpus.lines == lines and len(corpus.report()) == len(corpus.skipped)


odd = st.sampled_from([*'\u2028\u0085\u200d\r\u00a0\u202f\0\ufeff\u001c"a', "e\u0301"])
any_text = st.lists(st.text(st.characters(exclude_categories=["Cs"]), max_size=4) | odd, max_size=5).map("".join)
any_rows = st.lists(st.tuples(any_text, any_text), min_size=1, max_size=6)
ways = {"end": st.sampled_from(["\n", "\r\n"]), "mark": st.booleans(), "last": st.booleans(), "packed": st.booleans()}
way = st.fixed_dictionaries(ways)


def without(rows: Rows, characters: str) -> Rows:
    gone = str.maketrans(dict.fromkeys(characters, " "))
    return [(source.translate(gone), target.translate(gone)) for source, target in rows]


@given(any_rows, way, st.booleans(), st.booleans())
@settings(max_examples=200, deadline=None)
def test_tables_come_back(folder: Path, rows: Rows, way: dict, third: bool, reverse: bool) -> None:
    rows = without(rows, "\n\t")
    lines = ["\t".join([*row, "CC-BY 2.0\tx"] if third else row) for row in rows]
    check_both_readers([written(folder / "a.txt", as_file(lines, **way))], rows, reverse)


@given(any_rows, way, st.booleans(), st.booleans())
@settings(max_examples=200, deadline=None)
def test_json_lines_come_back(folder: Path, rows: Rows, way: dict, escaped: bool, nested: bool) -> None:
    flattened = [{"x": [0], "target": target, "source": source} for source, target in rows]
    deep = [{"translation": {"en": source, "mr": target}, "id": 1} for source, target in rows]
    lines = [json.dumps(item, ensure_ascii=escaped) for item in (deep if nested else flattened)]
    check_both_readers([written(folder / "a.jsonl", as_file(lines, **way))], rows, reverse=False)


@given(any_rows, way, way, st.booleans())
@settings(max_examples=200, deadline=None)
def test_parallel_texts_come_back(folder: Path, rows: Rows, one: dict, other: dict, reverse: bool) -> None:
    """Each file in its own way; a TAB is text."""
    rows = without(rows, "\n")
    source = written(folder / "a.en", as_file([row[0] for row in rows], **one))
    target = written(folder / "a.mr", as_file([row[1] for row in rows], **other))
    check_both_readers([source, target], rows, reverse)


@given(any_rows, way)
@settings(max_examples=200, deadline=None)
def test_lines_come_back(folder: Path, rows: Rows, way: dict) -> None:
    lines = [source.rstrip("\r") for source, _ in without(rows, "\n")]
    data = as_file(lines, **way)
    assert list(read_lines(written(folder / "a.txt", data))) == lines
    assert way["packed"] or list(read_lines(io.BytesIO(data))) == lines


pieces = rb"""a b { } " : , [ 1 null \n \ud800 "source" {"source":"a","target":"b"} {"translation":{"en":"a","mr":"b"}}
    {"translation":{"c":"a"}} {"translation":{"\n":1,"mr":"b"}} {"translation":{"\ud800":"a","b":""}}""".split()
pieces += [b"\n", b"\n", b"\r\n", b"\t", b"\t", b" ", b"a\tb\n", b"\0", b"\xff", b"\xc3", b"\xff\xfe", BOM]
any_bytes = st.binary(max_size=40) | st.lists(st.sampled_from(pieces), max_size=12).map(b"".join)


def check_any_outcome(paths: list[Path], data: bytes) -> None:
    """A corpus that accounts for every line, or one sentence; the strict reader agrees or refuses."""
    expected = len(data.removeprefix(BOM).split(b"\n")) - data.removeprefix(BOM).endswith(b"\n")
    try:
        check_accounts(read_pairs(paths), expected)
    except ValueError as error:
        check_sentence(error)
    try:
        assert len(read_references(paths)) == expected
    except ValueError as error:
        check_sentence(error)


def check_sentence(error: ValueError) -> None:
    """One of ours, not one that slipped out of Python."""
    assert re.search(r"no pair|damaged gzip|not gzip|UTF-16|UTF-8|as many in both", str(error))
    assert str(error).isprintable() and len(str(error)) < 500


@pytest.mark.parametrize("ending", ["tsv", "jsonl", "csv"])
@given(data=any_bytes)
@settings(max_examples=400, deadline=None)
def test_any_bytes_in_one_file(folder: Path, ending: str, data: bytes) -> None:
    check_any_outcome([written(folder / f"any.{ending}", data)], data)


@given(any_bytes, any_bytes)
@settings(max_examples=400, deadline=None)
def test_any_bytes_in_two_files(folder: Path, one: bytes, other: bytes) -> None:
    check_any_outcome([written(folder / "any.en", one), written(folder / "any.mr", other)], one)


@given(any_bytes, st.integers(0, 60), st.binary(max_size=3))
@settings(max_examples=400, deadline=None)
def test_any_damage_to_gzip(folder: Path, data: bytes, place: int, put: bytes) -> None:
    packed = gzip.compress(data, compresslevel=1, mtime=0)
    damaged = packed[:place] + put + packed[place + len(put) :] if put else packed[:place]
    path = written(folder / "any.tsv.gz", damaged)
    for read in (read_pairs, read_references, lambda paths: list(read_lines(paths[0]))):
        try:
            read([path])
        except ValueError as error:
            check_sentence(error)


def test_three_columns_as_csv_reads_them(tmp_path: Path) -> None:
    lines = ["Go.\tजा.\tCC-BY 2.0 (France) #1 & #2\n", 'He said "hi.\tतो "हाय" म्हणाला.\tCC-BY\n', "Run!\tपळ!\tCC-BY"]
    path = written(tmp_path / "mar.txt", "".join(lines))
    table = csv.reader(io.StringIO("".join(lines)), delimiter="\t", quoting=csv.QUOTE_NONE)
    assert sides(read_pairs([path]).pairs) == [(row[0], row[1]) for row in table]
    assert read_pairs(path).pairs == read_pairs(str(path)).pairs == read_pairs([path]).pairs


def test_long_lines_and_a_turned_empty_side(tmp_path: Path) -> None:
    path = written(tmp_path / "pairs.tsv", "word " * 400_000 + "\tb\n\tc\n")
    assert [len(pair.source) for pair in read_pairs([path]).pairs] == [1_999_999]
    assert read_pairs([path], reverse=True).skipped == {"empty target": [2]}


def test_skipped_lines_are_counted_and_named(tmp_path: Path) -> None:
    data = b"a\tb\n\tb\na\t \nalone\n\xff\tb\n\na\tb\nA\tb\na\tc\n" + b"\n" * 6
    corpus = read_pairs([written(tmp_path / "pairs.tsv", data)])
    assert corpus.pairs == [Pair("a", "b", 1), Pair("A", "b", 8), Pair("a", "c", 9)]
    assert corpus.lines == 15
    assert corpus.report() == [
        "1 line skipped, empty source: 2",
        "1 line skipped, empty target: 3",
        "1 line skipped, no tab: 1 column: 4",
        "1 line skipped, not UTF-8: 5",
        "7 lines skipped, empty line: 6, 10, 11, 12, 13, …",
        "1 line skipped, exact duplicate: 7",
    ]


def test_card_knows_name_and_digest(tmp_path: Path) -> None:
    corpus = read_pairs([written(tmp_path / "clean.tsv", "a\tb\nc\td\n")])
    assert corpus.name == "clean.tsv" and corpus.digest == hashlib.sha256(b"a\tb\nc\td\n").hexdigest()
    two = read_pairs([written(tmp_path / "x.en", "a\nc"), written(tmp_path / "x.mr", "b\r\nd")])
    assert two.name == "x.en + x.mr" and two.digest == corpus.digest


def test_gzip_is_known_without_its_ending(tmp_path: Path) -> None:
    assert sides(read_pairs([written(tmp_path / "pairs.tsv", gzip.compress(b"a\tb"))]).pairs) == [("a", "b")]
    joined = gzip.compress(b"a\tb\nc") + gzip.compress(b"\td\n")
    assert sides(read_pairs([written(tmp_path / "PAIRS.TSV.GZ", joined)]).pairs) == [("a", "b"), ("c", "d")]


def test_json_lines_that_give_no_pair(tmp_path: Path) -> None:
    lines = ['{"source": "a", "target": "b"}', '{"source": "a"}', '{"source": "a", "target": 1}', "[1]", "{'a'}"]
    lines += ['{"source": "\\ud800", "target": "b"}', "[" * 100_000, "", '{"source": "\\ud83d\\ude00", "target": "c"}']
    corpus = read_pairs([written(tmp_path / "pairs.jsonl", "\n".join(lines))])
    assert sides(corpus.pairs) == [("a", "b"), ("😀", "c")]
    assert corpus.skipped == {
        "no source/target field": [2],
        "'target' is not text": [3],
        "not a JSON object": [4],
        "not JSON": [5, 7],
        "half a surrogate pair": [6],
        "empty line": [8],
    }


def test_translation_objects(tmp_path: Path) -> None:
    """The first one's order counts for all; named languages choose among many."""
    rows = [{"en": "a", "mr": "b"}, {"mr": "d", "en": "c"}, {"en": "e", "hi": "f"}, {"en": "g", "mr": "h", "hi": "i"}]
    path = written(tmp_path / "pairs.jsonl", "\n".join(json.dumps({"translation": row}) for row in rows))
    corpus = read_pairs([path])
    assert sides(corpus.pairs) == [("a", "b"), ("c", "d"), ("g", "h")]
    assert corpus.skipped == {"no 'mr' in translation": [3]}
    assert sides(read_pairs([path], languages=("hi", "en")).pairs) == [("f", "e"), ("i", "g")]
    assert sides(read_pairs([path], reverse=True, languages=("hi", "en")).pairs) == [("e", "f"), ("g", "i")]
    with pytest.raises(ValueError, match=r"pairs.jsonl, line 3 is no pair: no 'mr' in translation"):
        read_references([path])


def test_unequal_parallel_files_name_both_counts(tmp_path: Path) -> None:
    one, other = written(tmp_path / "a.en", "a\nb\nc\n"), written(tmp_path / "a.mr", "a\n")
    for read in (read_pairs, read_references):
        with pytest.raises(ValueError, match=r"a.en has 3 lines and .*a.mr has 1 line; expected as many"):
            read([one, other])


@pytest.mark.parametrize(
    ("name", "data", "message"),
    [
        ("a.csv", b"a,b\nc,d\n", r"no pair in .*a.csv: no tab: 1 column \(2 lines\); expected lines of source TAB"),
        ("a.tsv", b"", "no pair in .*a.tsv: it is empty"),
        ("a.tsv", BOM, "no pair in .*a.tsv: it is empty"),
        ("a.tsv.gz", gzip.compress(b"", mtime=0), "no pair in .*a.tsv.gz: it is empty"),
        ("a.tsv", b"\n\n", r"empty line \(2 lines\)"),
        ("a.tsv", "a\tb\n".encode("utf-16"), "a.tsv is UTF-16; expected UTF-8"),
        ("a.tsv.gz", b"a\tb\n", "a.tsv.gz is named .gz, but is not gzip"),
        ("a.tsv.gz", gzip.compress(b"a\tb\n", mtime=0)[:-9], "a.tsv.gz is damaged gzip"),
        ("a.tsv.gz", gzip.compress(b"a\tb\n", mtime=0)[:-8] + b"12345678", "a.tsv.gz is damaged gzip: CRC"),
    ],
)
def test_files_without_pairs_say_why(tmp_path: Path, name: str, data: bytes, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        read_pairs([written(tmp_path / name, data)])


def test_paths_that_do_not_fit(tmp_path: Path) -> None:
    with pytest.raises(ValueError, match=r"cannot read .*none.tsv: No such file"):
        read_pairs([tmp_path / "none.tsv"])
    with pytest.raises(ValueError, match=r"cannot read .*: Is a directory"):
        read_references([tmp_path])
    with pytest.raises(ValueError, match="0 files of pairs came; expected one"):
        read_pairs([])
    with pytest.raises(ValueError, match=r"train.tsv.gz holds pairs by itself; expected it alone"):
        read_pairs(["train.tsv.gz", "dev.tsv"])


@pytest.mark.parametrize("bad", [b"alone", b"\xff\tb", b""])
def test_strict_reading_names_the_line(tmp_path: Path, bad: bytes) -> None:
    with pytest.raises(ValueError, match=r"dev.tsv, line 4 is no pair"):
        read_references([written(tmp_path / "dev.tsv", b"a\tb\na\tb\n\tc\n" + bad + b"\nd\te\n")])


def test_strict_reading_keeps_every_line(tmp_path: Path) -> None:
    path = written(tmp_path / "dev.tsv", "a\tb\na\tb\n\tc\nd\t\n\t\n")
    assert sides(read_references([path])) == [("a", "b"), ("a", "b"), ("", "c"), ("d", ""), ("", "")]
    assert [pair.line for pair in read_references([path])] == [1, 2, 3, 4, 5]


def test_lines_are_read_as_they_come() -> None:
    stream = io.BytesIO(BOM + b"a \r\n\nb\xc2\x85c\n\xff\n")
    lines = read_lines(stream)
    assert (next(lines), stream.tell()) == ("a ", 7)
    assert (next(lines), next(lines)) == ("", "b\u0085c")
    with pytest.raises(ValueError, match="the stream, line 4 is not UTF-8"):
        next(lines)
    assert list(read_lines(io.BytesIO(b""))) == list(read_lines(io.BytesIO(BOM))) == []
