"""Each format: what is translated, what stays byte for byte, and what is refused."""

from __future__ import annotations

import gzip
from pathlib import Path

import pytest

from regard.text.formats.registry import is_document, parsed, read_document, written
from regard.text.formats.segments import segments, with_segments
from regard.text.keep import DEFAULT
from regard.text.placeables import Part, joined
from tests.text.formats.drawn_files import COLUMNS, SAMPLES, run, same_skeleton, translated


def capitals(segment: list[Part]) -> list[Part]:
    return [part.upper() if isinstance(part, str) else part for part in segment]


def texts(name: str, content: str) -> list[str]:
    """The segments of a file."""
    seen: list[str] = []
    translated(name, content, lambda segment: seen.append(joined(segment)) or segment)  # type: ignore[func-returns-value]
    return seen


@pytest.mark.parametrize("name", SAMPLES)
@pytest.mark.parametrize("line_end", ["\n", "\r\n"])
@pytest.mark.parametrize("mark", ["", "\ufeff"])
def test_a_translator_that_copies_gives_the_file_byte_for_byte(name: str, line_end: str, mark: str) -> None:
    text = mark + SAMPLES[name].replace("\n", line_end)
    assert translated(name, text, list) == text


@pytest.mark.parametrize("name", SAMPLES)
def test_what_is_not_text_stays(name: str) -> None:
    text = SAMPLES[name]
    result = translated(name, text, capitals)
    assert result != text and same_skeleton(name, text, result)


def test_mutated_files_are_right_or_refused() -> None:
    outcomes = run(500)
    assert not [outcome for outcome in outcomes if outcome.startswith("unclear")]
    assert {f"{name} translated" for name in SAMPLES} <= set(outcomes)


def test_html() -> None:
    seen = texts("html", SAMPLES["html"])
    assert seen == [
        "Keys & locks",
        "All the <em>keys</em>",
        "Rahul is a <b>good</b> boy, and has\n   5 <code>keys</code> < 6.",
        """See <a href="https://example.org/?a=1&amp;b=2" title='x "y"'>the <i>other</i> page</a>.""",
        "one",
        '<img src="a.png" alt="A text"> a picture',
        "left",
        "right",
    ]


def test_letters_of_html_are_escaped() -> None:
    def translate(segment: list[Part]) -> list[Part]:
        return ["a < b & c"]

    assert translated("html", "<p>x</p>", translate) == "<p>a &lt; b &amp; c</p>"
    page = '<meta charset="iso-8859-1"><p>x</p>'
    assert translated("html", page, lambda _: ["é अ"]) == page.replace(">x<", ">&#233; &#2309;<")


@pytest.mark.parametrize(
    ("page", "expected"),
    [
        ("<p>a<br>b", ["a", "b"]),
        ("<script>a</p>b", []),
        ("<p>a <!-- b -->c", ["a <!-- b -->c"]),
        ('<a title="x>y">b</a>', ['<a title="x>y">b</a>']),
        ("a <b", ["a"]),
        ("1 < 2 is so", ["1 < 2 is so"]),
        ("<div translate=no>a <div>b</div></div>c", ["c"]),
        ("<CODE>x</CODE> and <Pre>y</prE>", ["<CODE>x</CODE> and"]),
    ],
)
def test_pages_as_people_write_them(page: str, expected: list[str]) -> None:
    assert texts("html", page) == expected


def test_markdown() -> None:
    seen = texts("md", SAMPLES["md"])
    assert "All the *keys*" in seen and "A footnote." in seen and "a task" in seen and "nested item" in seen
    assert "one item\ngoes on" in seen and "a quotation\ngoes on" in seen and "a <b>block</b> of HTML" in seen
    assert not any("not this" in text or "nor this" in text or "Not this" in text for text in seen)
    assert {"left", "right | side", "a cell", "`code` here"} <= set(seen)


@pytest.mark.parametrize("translation", ["# x", "1. x", "- x", "> x", "*x*", "`x", "[x](y)", "<b>", "x | y", "+ x"])
def test_what_would_be_a_mark_in_markdown_is_text(translation: str) -> None:
    for page in ("a\n", "- a\n", "## a\n", "> a\n", "|a|\n|-|\n|b|\n"):
        result = translated("md", page, lambda _: [translation])
        assert same_skeleton("md", page, result)


def test_subtitles() -> None:
    assert texts("srt", SAMPLES["srt"]) == [
        "<i>Rahul is a good boy,</i>\nand has 5 keys.",
        "{\\an8}Who is there?",
        "Nobody, at 10:30.",
    ]
    cue = "1\n00:00:01,000 --> 00:00:02,000\none two\nthree\n"
    assert translated("srt", cue, lambda _: ["eins zwei drei vier"]).splitlines()[2:] == ["eins zwei", "drei vier"]


def test_messages() -> None:
    assert texts("po", SAMPLES["po"]) == ['Open %s, "friend"', "Line one", "line two {name}", "%d file", "%d files"]
    result = translated("po", SAMPLES["po"], capitals)
    assert 'msgstr "OPEN %s, \\"FRIEND\\""' in result and '"LINE ONE\\n"\n"LINE TWO {name}\\n"' in result
    assert 'msgstr[1] "%d FILES"' in result and 'msgstr "झालं"' in result


def test_json() -> None:
    assert texts("json", SAMPLES["json"]) == ["All the keys", 'one "item"', "<b>two</b> é", "next line"]
    assert translated("json", '["\\u00e9"]', lambda _: ["ß"]) == '["\\u00df"]', "a file in ASCII stays so"
    assert translated("json", '["a"]', lambda _: ["ß\n"]) == '["ß"]'


def test_tables() -> None:
    assert texts("csv", SAMPLES["csv"]) == ["Rahul is a good boy", 'He has "5" keys, and', "a lock", "<b>good</b> boy"]
    assert translated("csv", "id;text\n1;a\n", lambda _: ['b; "c"']) == 'id;text\n1;"b; ""c"""\n'


@pytest.mark.parametrize(
    ("name", "content", "message"),
    [
        ("srt", "hello\n", "line 1: expected a number, then times"),
        ("srt", "1\n00:01 --> 00:02\nx\n", "line 1: expected a number, then times"),
        ("po", 'msgid "a"\nmsgid "b"\n', "line 2: expected a message of gettext"),
        ("po", 'msgid "a"\n', "line 2: expected msgstr for the last message"),
        ("json", '{"a": "b",}', "line 1: expected JSON"),
        ("json", "[" * 100_000, "expected JSON"),
        ("csv", 'id,text\n1,"a\n', "line 2: expected a quotation mark"),
        ("csv", 'id,text\n1,"a"b\n', "line 2: expected a separator"),
        ("csv", "id,words\n1,a\n", "columns: expected some of 'id', 'words', got 'text'"),
    ],
)
def test_what_cannot_be_read_is_named(name: str, content: str, message: str, tmp_path: Path) -> None:
    path = tmp_path / f"file.{name}"
    path.write_text(content, encoding="utf-8")
    with pytest.raises(ValueError, match=f"file.{name}: {message}"):
        read_document(path, COLUMNS.get(name, []))


def test_other_encodings_are_refused(tmp_path: Path) -> None:
    (tmp_path / "a.html").write_bytes("<p>café".encode("latin-1"))
    with pytest.raises(ValueError, match="expected UTF-8, and byte 6 is not"):
        read_document(tmp_path / "a.html")


def test_texts_whose_translation_would_break_the_file_stay() -> None:
    """A heading that would become a table; emphasis that would be none."""
    path = Path("a.md")
    document = parsed(path, "a\n---\n\nb _c_ d\n\ne\n", ())
    assert [joined(segment) for segment in segments(document, DEFAULT)] == ["a", "b _c_ d", "e"]
    translations = [["a |"], ["b", *segments(document, DEFAULT)[1][1:]], ["E"]]
    text, left = written(path, document, with_segments(document, DEFAULT, translations))
    assert (text, left) == ("a\n---\n\nb _c_ d\n\nE\n", ["a", "b _c_ d"])


def test_formats_are_known_by_their_ending() -> None:
    assert all(is_document(Path(name)) for name in ("a.HTML", "a.md", "b.srt", "c.po", "d.json", "e.csv", "a.html.gz"))
    assert not any(is_document(Path(name)) for name in ("a.txt", "a.tsv", "a.txt.gz", "html", "a.jsonl"))


@pytest.mark.parametrize("name", ["a.html.gz", "a.html"])
def test_a_compressed_file_is_decompressed(name: str, tmp_path: Path) -> None:
    (tmp_path / name).write_bytes(gzip.compress(b"<p>A <b>boy</b>.</p>"))
    document = read_document(tmp_path / name)
    assert [joined(unit.parts) for unit in document.units] == ["A <b>boy</b>."]
    (tmp_path / name).write_bytes(gzip.compress(b"<p>A <b>boy</b>.</p>")[:-9])
    with pytest.raises(ValueError, match="damaged gzip"):
        read_document(tmp_path / name)
