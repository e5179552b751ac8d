"""Inline markup in a text: tags of HTML and XML, entities, Markdown's emphasis, links and code, and placeholders of
programs such as `{name}` and `%s`."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import regex

from regard.text.boundaries import is_punctuation
from regard.text.placeables import Placeable

Match = tuple[int, int, Placeable]  # start and end in the text
MARKUP = "markup"  # the kind of the words among them
VOID = frozenset(("area", "base", "br", "col", "embed", "hr", "img", "input", "link", "meta", "source", "track", "wbr"))
"""the elements of HTML that have no end"""

NOT_ESCAPED = r"(?<!(?<!\\)(?:\\\\)*\\)"  # by a backslash that is not itself escaped
ATTRIBUTES = r"""(?:[^<>"']|"[^"]*"|'[^']*')*+"""
TAG = regex.compile(rf"{NOT_ESCAPED}<(?P<close>/?)(?P<name>[A-Za-z][\w:.-]*)(?P<rest>(?:[\s/]{ATTRIBUTES})?)>")
_COMMENT = regex.compile(r"<!--.*?-->|<\?.*?\?>|<!\[CDATA\[.*?\]\]>", regex.DOTALL)
_ENTITY = regex.compile(r"&(?:#[0-9]{1,7}|#[xX][0-9a-fA-F]{1,6}|[A-Za-z][A-Za-z0-9]{1,31});")
_PLACEHOLDER = regex.compile(
    r"\{\{[^{}\n]*\}\}|\$?\{[^{}\s]*\}"  # {{ name }}, {name}, {0:>5}, ${name}
    r"|(?<!\d)%\(\w+\)[#0 +-]*[\d.]*[a-zA-Z]"  # %(name)s
    r"|(?<![\d%])%(?:\d+\$)?[#0+-]*[\d.]*(?:hh?|ll?|z)?[sdifuxXoeEgGcr@](?!\w)"  # %s, %1$s, %.2f
)
_CODE = regex.compile(NOT_ESCAPED + r"(?<!`)(`+)(?!`)(?:[^`]|(?!\1)`+)+?(?<!`)\1(?!`)")
_IMAGE = regex.compile(r"!\[[^\[\]\n]*\]\([^()\s]*(?:\s+\"[^\"\n]*\")?\)")
_LINK = regex.compile(
    NOT_ESCAPED + r"(\[)(?!\^)[^\[\]\n]*(?:\[[^\[\]\n]*\][^\[\]\n]*)*"  # [text, perhaps with an image in it
    r"(\]\((?:[^()\s]|\([^()\s]*\))*(?:\s+\"[^\"\n]*\")?\)|\]\[[^\[\]\n]*\])"  # ](address "title") or ][reference]
)
_DELIMITERS = regex.compile(NOT_ESCAPED + r"(?:\*+|_+|(?<!~)~~(?!~))")


def markup(text: str, inside_words: bool = False) -> Iterator[list[Match]]:
    """Yield the markup of a text. Both ends of a pair are one item; the ends of tags are matched later. `inside_words`:
    as for `emphasis`."""
    yield from _whole(_CODE, text, "word")
    yield from tags(text)
    yield from _whole(_ENTITY, text, "word")
    yield from _whole(_PLACEHOLDER, text, "word")
    yield from _whole(_IMAGE, text, "word")
    yield from _ends(_LINK, text)
    yield from emphasis(text, inside_words)


def tags(text: str) -> Iterator[list[Match]]:
    """Yield the tags and comments of a text."""
    yield from _whole(_COMMENT, text, "point")
    for match in TAG.finditer(text):
        yield [(*match.span(), tag_of(match))]


def tag_of(match: regex.Match[str]) -> Placeable:
    """Return the placeable of a match of TAG."""
    name = match["name"].lower()
    if name in VOID or match["rest"].endswith("/"):
        return Placeable(match[0], "point", name)
    return Placeable(match[0], "close" if match["close"] else "open", name)


def _whole(pattern: regex.Pattern[str], text: str, role: str) -> Iterator[list[Match]]:
    for match in pattern.finditer(text):
        yield [(*match.span(), Placeable(match[0], role, MARKUP))]  # type: ignore[arg-type]


def _ends(pattern: regex.Pattern[str], text: str) -> Iterator[list[Match]]:
    """Yield the ends of pairs, which are the groups of the pattern."""
    for match in pattern.finditer(text, overlapped=True):
        opening, closing = match[1], match[2]
        yield [
            (*match.span(1), Placeable(opening, "open", opening)),
            (*match.span(2), Placeable(closing, "close", opening)),
        ]


@dataclass
class _Delimiters:
    """A run of delimiters: how many are left, from `start` to `end`, and whether they can open or close."""

    mark: str
    start: int
    end: int
    opens: bool
    closes: bool


def emphasis(text: str, inside_words: bool = False) -> Iterator[list[Match]]:
    """Yield the emphasis of Markdown, by CommonMark's algorithm. `inside_words`: also inside of words, as there; in
    other texts, products such as 2*3*4 are none."""
    openers: list[_Delimiters] = []
    for match in _DELIMITERS.finditer(text):
        before, after = text[: match.start()][-1:] or " ", text[match.end() :][:1] or " "
        opens, closes = _flanks(before, after, inside_words and match[0][0] != "_")
        run = _Delimiters(match[0][0], *match.span(), opens, closes)
        while run.closes and run.start < run.end:
            depth = next((i for i in reversed(range(len(openers))) if openers[i].mark == run.mark), None)
            if depth is None:
                break
            opener = openers[depth]
            del openers[depth + 1 :]
            size = 2 if min(opener.end - opener.start, run.end - run.start) >= 2 else 1
            opening, closing = text[opener.end - size : opener.end], text[run.start : run.start + size]
            yield [
                (opener.end - size, opener.end, Placeable(opening, "open", opening)),
                (run.start, run.start + size, Placeable(closing, "close", closing)),
            ]
            opener.end, run.start = opener.end - size, run.start + size
            if opener.start == opener.end:
                openers.pop()
        if run.opens and run.start < run.end:
            openers.append(run)


def _flanks(before: str, after: str, inside_words: bool) -> tuple[bool, bool]:
    """Return whether delimiters between two letters can open emphasis, and whether they can close it."""
    blank, punctuation = ((before.isspace(), after.isspace()), (is_punctuation(before), is_punctuation(after)))
    left = not blank[1] and (not punctuation[1] or blank[0] or punctuation[0])
    right = not blank[0] and (not punctuation[0] or blank[1] or punctuation[1])
    if inside_words:
        return left, right
    return left and not before.isalnum(), right and not after.isalnum()
