"""HTML: the texts of a page. Its tags, comments, scripts, styles and code stay as they are.

A unit is what stands between two tags that are not inline, such as `<p>`, `<li>` or `<br>`. The scanner follows the
tokenizer of the HTML standard where it matters here: a page that browsers show is read, however it is written.
"""

from __future__ import annotations

import html
from collections.abc import Iterator, Sequence
from typing import NamedTuple

import regex

from regard.text.formats.document import ParsedFile, Unit, has_letters
from regard.text.inline_markup import VOID
from regard.text.placeables import Part, Placeable, merged

INLINE = frozenset(
    {"a", "abbr", "acronym", "b", "bdi", "bdo", "big", "cite", "data", "del", "dfn", "em", "font", "i", "img", "ins"}
    | {"label", "mark", "q", "rp", "rt", "ruby", "s", "small", "span", "strike", "strong", "sub", "sup", "time", "tt"}
    | {"u", "wbr"}
)
UNTRANSLATED = frozenset(
    ("code", "kbd", "math", "noscript", "object", "pre", "samp", "select", "svg", "template", "var", "video", "audio")
)
RAW_TEXT = frozenset(("script", "style", "textarea", "xmp", "iframe", "noembed", "noframes", "plaintext"))
"""elements whose content is not HTML: only their own end tag ends them"""
INSIDE_A_SENTENCE = frozenset(("code", "kbd", "samp", "var", "svg", "math", "script", "style", "template", "object"))

_VALUE = r"""\s*+=\s*+(?:"[^"]*+"|'[^']*+'|[^\s"'>][^\s>]*+|(?=>))"""
_TAG = regex.compile(
    r"<(?P<close>/?)(?P<name>[A-Za-z][^\s/>]*)"
    rf"(?P<attributes>(?:[\s/]+|[^\s/>][^\s/>=]*+(?:{_VALUE}|(?!\s*+=\s*+[\"'])))*+)>"
)
_OTHER = regex.compile(
    r"<!--(?:.*?-->|.*?--!>|-?>|.*\Z)|<!\[CDATA\[.*?(?:\]\]>|\Z)|<[!?][^>]*+(?:>|\Z)|</[^>]*+(?:>|\Z)", regex.DOTALL
)
"""comments, CDATA, declarations, processing instructions, and end tags without a name"""
_CHARSET = regex.compile(r"<meta[^>]+charset\s*=\s*[\"']?\s*([\w-]+)", regex.IGNORECASE)
_NO_TRANSLATION = regex.compile(
    r"\btranslate\s*=\s*[\"']?no\b|\bclass\s*=\s*[\"'][^\"']*\bnotranslate\b", regex.IGNORECASE
)


class Token(NamedTuple):
    """A part of a page: text, an inline tag, something inside a sentence that is not translated, or a boundary."""

    kind: str  # text, open, close, point, word, boundary
    start: int
    end: int
    name: str = ""


def read(text: str) -> ParsedFile:
    """Return the document of a page."""
    return ParsedFile(text, tuple(units(text)))


def units(text: str, begin: int = 0, end: int | None = None) -> Iterator[Unit]:
    """Yield the units of a page, or of a part of it."""
    charset = _CHARSET.search(text)
    ascii_only = charset is not None and charset[1].lower() not in ("utf-8", "utf8")
    run: list[Token] = []
    for token in (*_tokens(text, begin, len(text) if end is None else end), Token("boundary", 0, 0)):
        if token.kind != "boundary":
            run.append(token)
            continue
        unit = _unit(text, run, ascii_only)
        if unit is not None:
            yield unit
        run = []


def _unit(text: str, run: Sequence[Token], ascii_only: bool) -> Unit | None:
    """Return the unit of the tokens between two boundaries, without the white space around them."""
    parts: list[Part] = []
    for token in run:
        source = text[token.start : token.end]
        parts.append(html.unescape(source) if token.kind == "text" else Placeable(source, token.kind, token.name))  # type: ignore[arg-type]
    if not has_letters(parts):
        return None
    start, end = run[0].start, run[-1].end
    start += len(text[start:end]) - len(text[start:end].lstrip())
    end -= len(text[start:end]) - len(text[start:end].rstrip())
    if isinstance(parts[0], str):
        parts[0] = parts[0].lstrip()
    if isinstance(parts[-1], str):
        parts[-1] = parts[-1].rstrip()

    def write(translation: Sequence[Part]) -> str:
        return "".join(part.text if isinstance(part, Placeable) else escaped(part, ascii_only) for part in translation)

    return Unit(start, end, tuple(merged(parts)), write)


def escaped(text: str, ascii_only: bool = False) -> str:
    """Return a text as HTML; `ascii_only`: for a page whose encoding may not have all letters."""
    result = html.escape(text, quote=False)
    return result.encode("ascii", "xmlcharrefreplace").decode() if ascii_only else result


def _tokens(text: str, begin: int, end: int) -> Iterator[Token]:
    position = begin
    while position < end:
        token = _markup_at(text, position, end) if text[position] == "<" else None
        if token is None:
            following = text.find("<", position + 1, end)
            token = Token("text", position, end if following < 0 else following)
        yield token
        position = token.end


def _markup_at(text: str, position: int, end: int) -> Token | None:
    """Return the markup that begins at a `<`; None: it is a letter of the text."""
    following = text[position + 1 : position + 2]
    tag = _TAG.match(text, position, end)
    if tag is None:
        other = _OTHER.match(text, position, end)
        if other is not None:
            return Token("point" if other[0].startswith("<!--") else "boundary", position, other.end())
        # A tag that never ends: browsers show nothing of it.
        return Token("boundary", position, end) if following.isascii() and following.isalpha() else None
    name = tag["name"].lower()
    if not tag["close"] and name in RAW_TEXT:
        closing = regex.compile(rf"</{name}(?=[\s/>])[^>]*+>", regex.IGNORECASE).search(text, tag.end(), end)
        return _whole(name, position, end if closing is None or name == "plaintext" else closing.end())
    if not tag["close"] and (name in UNTRANSLATED or _NO_TRANSLATION.search(tag["attributes"])) and name not in VOID:
        last = _element_end(text, tag.end(), end, name)
        if last is not None:
            return _whole(name, position, last)
    if name not in INLINE:
        return Token("boundary", position, tag.end())
    if name in VOID or tag["attributes"].endswith("/"):
        return Token("point", position, tag.end(), name)
    return Token("close" if tag["close"] else "open", position, tag.end(), name)


def _whole(name: str, start: int, end: int) -> Token:
    """Return the token of an element that is not translated."""
    if name in ("code", "kbd", "samp", "var") or name in INLINE:
        return Token("word", start, end, "markup")
    return Token("point" if name in INSIDE_A_SENTENCE else "boundary", start, end, name)


def _element_end(text: str, begin: int, end: int, name: str) -> int | None:
    """Return where an element ends whose content begins at `begin`; None: nowhere."""
    depth = 1
    for tag in _TAG.finditer(text, begin, end):
        if tag["name"].lower() == name and not tag["attributes"].endswith("/"):
            depth += -1 if tag["close"] else 1
            if not depth:
                return int(tag.end())
    return None
