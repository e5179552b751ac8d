"""Markdown: paragraphs, headings, items, quotations and cells are translated; code, addresses and marks stay.

markdown-it finds the blocks (CommonMark, with tables) and the lines they stand on. A paragraph is one unit; between
hard line breaks its translation is one line. Blocks of HTML are read as HTML.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Sequence
from functools import partial
from typing import Any

import regex
from markdown_it import MarkdownIt
from markdown_it.token import Token

from regard.text.formats import html
from regard.text.formats.document import LINE_END, ParsedFile, Unit, has_letters, line_of
from regard.text.keep import Keep
from regard.text.placeables import Part, Placeable, merged

_LINE = regex.compile(r"[^\r\n]*+(?:\r\n|\n|\r|\Z)")
_FRONT_MATTER = regex.compile(r"\ufeff?---[ \t]*\r?\n(?:.*\n)*?(?:---|\.\.\.)[ \t]*(?:\r?\n|\Z)")
_DEFINITION = regex.compile(r"^[ >]*\[(?!\^)([^\[\]\n]+)\]:", regex.MULTILINE)
_MARKER = regex.compile(r"\[(?:[ xX]|\^[^\[\]\s]+)\]:?[ \t]+")  # [x] of a task, [^1]: of a footnote
_HARD_BREAK = regex.compile(r"(?: {2,}|\\)$")
_ESCAPE = regex.compile(r"\\([!-/:-@\[-`{-~])")
_SPECIAL = regex.compile(r"[\\`*\[\]|~]|<(?=[A-Za-z/!?])|&(?=#?\w+;)|(?<!\w)_|_(?!\w)")
_SPECIAL_START = regex.compile(r"^(?|()([#>+=-])|(\d{1,9})([.)]))")  # of headings, quotations and items
_REFERENCE = r"<[A-Za-z][A-Za-z0-9+.-]+:[^\s<>]*>|<[^\s@<>]+@[^\s<>]+>|\[\^[^\[\]\s]+\]"  # autolinks, footnotes

HARD_BREAK = "\ufdef"  # a noncharacter, which no text contains
Content = tuple[int, int, bool]  # start and end of a line's content, and whether a hard line break follows


def read(text: str) -> ParsedFile:
    """Return the document of a Markdown file."""
    labels = sorted({match[1] for match in _DEFINITION.finditer(text)})
    references = (rf"(?<!\])\[{regex.escape(label)}\](?![\[(])" for label in labels)
    keep = Keep(("markup",), ("|".join((_REFERENCE, *references)),), inside_words=True)
    if HARD_BREAK in text:
        raise ValueError(f"line {line_of(text, text.index(HARD_BREAK))}: expected no noncharacters, got U+FDEF")
    front = _FRONT_MATTER.match(text)
    hidden = "\n" * text.count("\n", 0, front.end()) + text[front.end() :] if front else text
    lines = [match.span() for match in _LINE.finditer(text) if match[0]]
    units: list[Unit] = []
    cursor = 0  # where the last cell of a table ends
    parser, environment = MarkdownIt("commonmark").enable(["table", "strikethrough"]), dict[str, Any]()
    tokens = parser.parse(hidden, environment)

    def written(source: str, translation: Sequence[Part]) -> str | None:
        """Return a translation as Markdown; None if other marks come of it than the source has."""
        result = _escaped(translation)
        marks = [_marks(parser.parseInline(text, environment)) for text in (source, result)]
        return result if marks[0] == marks[1] else None

    for token in tokens:
        if token.map is None:
            continue
        first, last = lines[token.map[0]][0], lines[min(token.map[1], len(lines)) - 1][1]
        if token.type == "html_block" and token.level == 0:
            units += html.units(text, first, last)
        elif token.type == "inline":
            contents = _contents(text, token, lines, max(cursor, first))
            cursor = contents[-1][1] if contents else cursor
            unit = _unit(text, contents, keep, written)
            units += [unit] if unit is not None else []
    return ParsedFile(text, tuple(units), tuple(token.type for token in tokens))


def _contents(text: str, token: Token, lines: Sequence[tuple[int, int]], cursor: int) -> list[Content]:
    """Return where the lines of a token's content are in the file; none if they are not found."""
    assert token.map is not None
    contents: list[Content] = []
    for number, content in enumerate(token.content.split("\n"), token.map[0]):
        start, end = lines[number]
        stripped = content.strip(" \t")
        place = next(
            (
                (at, at + len(form))
                for form in (stripped, stripped.replace("|", "\\|"))
                if (at := text.find(form, max(start, cursor), end)) >= 0
            ),
            None,
        )
        if place is None or not stripped:
            return []
        hard = _HARD_BREAK.search(text[place[0] : end].rstrip("\r\n")) is not None
        cursor = place[1]
        contents.append((*place, hard))
    return contents


def _unit(
    text: str, contents: Sequence[Content], keep: Keep, write: Callable[[str, Sequence[Part]], str | None]
) -> Unit | None:
    """Return the unit of a paragraph or the like. A hard line break, with the marks of the next line, is a break."""
    if not contents:
        return None
    marker = _MARKER.match(text, *contents[0][:2])
    begin = marker.end() if marker else contents[0][0]
    source, breaks = "", list[str]()
    for (start, end, hard), following in zip(contents, (*contents[1:], None), strict=True):
        hard = hard and following is not None
        content = text[max(start, begin) : end - (hard and text[end - 1] == "\\")]
        source += content + (HARD_BREAK if hard else "\n" if following else "")
        if hard and following is not None:
            breaks.append(text[max(start, begin) + len(content) : following[0]])
    parts = _parts(source, keep, breaks)
    as_written = text[begin : contents[-1][1]]
    return Unit(begin, contents[-1][1], parts, partial(write, as_written)) if has_letters(parts) else None


def _marks(tokens: Sequence[Token]) -> Counter[tuple[str, str]]:
    """Return the marks of inline tokens: emphasis, links and code, with their addresses and contents."""
    return Counter(
        (child.type, child.content if child.type == "code_inline" else str(child.attrs))
        for token in tokens
        for child in token.children or []
        if child.type not in ("text", "text_special", "softbreak", "html_inline")
    )


def _parts(content: str, keep: Keep, breaks: Sequence[str]) -> tuple[Part, ...]:
    """Return the parts of a text; characters after a backslash are text. `breaks`: what stands at its HARD_BREAKs."""
    remaining = iter(breaks)
    parts: list[Part] = []
    for part in keep.parts(content):
        if isinstance(part, Placeable):
            text = regex.sub(HARD_BREAK, lambda _: next(remaining), part.text)
            parts.append(Placeable(text, part.role, part.name))
            continue
        for piece in regex.split(f"({HARD_BREAK})", part):
            is_break = piece == HARD_BREAK
            parts.append(Placeable(next(remaining), "break", LINE_END) if is_break else _ESCAPE.sub(r"\1", piece))
    return tuple(merged(parts))


def _escaped(translation: Sequence[Part]) -> str:
    """Return a translation as Markdown: what would be a mark gets a backslash."""
    text = ""
    for part in _tight(translation):
        if isinstance(part, Placeable):
            text += part.text
        else:
            letters = _SPECIAL.sub(r"\\\g<0>", " ".join(part.split("\n")))
            text += letters if text else _SPECIAL_START.sub(r"\1\\\2", letters)
    return text


def _tight(parts: Sequence[Part]) -> list[Part]:
    """Return the parts with the white space inside of emphasis moved outside, where marks would be none."""
    result: list[Part] = []
    for part in parts:
        before = result[-1] if result else ""
        if isinstance(part, str) and isinstance(before, Placeable) and before.role == "open":
            stripped = part.lstrip()
            result[-1:] = [part[: len(part) - len(stripped)], before, stripped]
        elif isinstance(part, Placeable) and part.role == "close" and isinstance(before, str):
            stripped = before.rstrip()
            result[-1:] = [stripped, part, before[len(stripped) :]]
        else:
            result.append(part)
    return merged(result)
