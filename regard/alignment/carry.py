"""What must not be translated, carried over through links: numbers, addresses, markup and, if asked for, names.

Off by default everywhere: a Latin name in Devanagari text is wrong. A number written with other digits or separators
(5 and ५, 3.14 and 3,14) is the same number and stays as the translator wrote it.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Callable, Collection, Iterable
from typing import Literal, get_args

from regard.alignment.extract import links_of, token_weights
from regard.alignment.links import Link
from regard.alignment.tokens import tokens
from regard.look.trace import Trace
from regard.text.boundaries import is_punctuation

Kind = Literal["numbers", "addresses", "markup", "names"]
KINDS: tuple[Kind, ...] = get_args(Kind)
USUAL: tuple[Kind, ...] = ("numbers", "addresses", "markup")

_MARKUP = re.compile(r"</?\w[^<>]*>|&#?\w+;|\{\{?[\w.]*\}?\}|%\w")
"""tags, entities, and the places that templates fill: {name}, {{name}}, %s"""
_ADDRESS = re.compile(r"(https?://|ftp://|www\.)\S+|[^\s@]+@[^\s@]+\.\w+")
_NUMBER = re.compile(r"[-+]?\d[\d.,:/'’\u00a0-]*")


def carry(source: str, target: str, links: Iterable[Link], kinds: Collection[Kind] = USUAL) -> str:
    """The target with such tokens of the source in the places of what they are linked to.

    A token takes the place of one target token: of its kind if there is one, else the first that is linked to nothing
    else. If there is none, or one that says the same already, all stays. Punctuation round both stays where it is.
    """
    unknown = set(kinds) - set(KINDS)
    if unknown:
        raise ValueError(f"kinds: expected some of {', '.join(KINDS)}, got {sorted(unknown)[0]!r}")
    ours, theirs = tokens(source), tokens(target)
    owners = _owners(links, len(ours), len(theirs))
    written = list(theirs)
    for number, token in enumerate(ours):
        kind = _kind(token, number == 0, kinds)
        if kind is None:
            continue
        linked = [place for place, some in sorted(owners.items()) if number in some and written[place] == theirs[place]]
        place = _place(token, kind, linked, theirs, owners)
        if place is not None:
            written[place] = _with_core(theirs[place], _core(token, kind), kind)
    return " ".join(written) if written != theirs else target


def carry_over(trace: Trace, kinds: Collection[Kind] = USUAL) -> str:
    """The target of a trace, through the links that its own weights make."""
    source, target = trace.source.text, trace.target.text
    return carry(source, target, links_of(token_weights(trace, source, target), "mutual"), kinds)


def read_kinds(text: str | None) -> tuple[Kind, ...]:
    """`numbers,markup`"""
    given = [] if text is None else [part.strip() for part in text.split(",")]
    unknown = [part for part in given if part not in KINDS]
    if unknown:
        raise ValueError(f"carry: expected some of {', '.join(KINDS)}, parted by commas, got {unknown[0]!r}")
    return tuple(kind for kind in KINDS if kind in given)


def _owners(links: Iterable[Link], sources: int, targets: int) -> dict[int, set[int]]:
    """For each target token that has some, the source tokens that it is linked to."""
    found: dict[int, set[int]] = {}
    for source, target in links:
        if not (0 <= source < sources and 0 <= target < targets):
            raise ValueError(f"links: expected places below {sources}-{targets}, got {source}-{target}")
        found.setdefault(target, set()).add(source)
    return found


def _place(token: str, kind: Kind, linked: list[int], theirs: list[str], owners: dict[int, set[int]]) -> int | None:
    """Which target token is replaced, if any."""
    if any(_same(token, theirs[place], kind) for place in linked):
        return None
    alike = [place for place in linked if _TESTS[kind](_core(theirs[place], kind))]
    alone = [place for place in linked if len(owners[place]) == 1]
    return next(iter([*alike, *alone]), None)


def _kind(token: str, first: bool, kinds: Collection[Kind]) -> Kind | None:
    for kind in ("markup", "addresses", "numbers"):
        if _TESTS[kind](_core(token, kind)):
            return kind if kind in kinds else None
    # A word at the beginning has a capital letter whatever it is.
    return "names" if "names" in kinds and not first and _TESTS["names"](_core(token, "names")) else None


def _core(token: str, kind: Kind) -> str:
    """The token without the punctuation round it; markup is punctuation in part."""
    begin, end = _core_bounds(token, kind)
    return token[begin:end]


def _core_bounds(token: str, kind: Kind) -> tuple[int, int]:
    begin, end = 0, len(token)
    if kind == "markup":
        return begin, end
    while begin < end and is_punctuation(token[begin]) and not _signed(token[begin:end], kind):
        begin += 1
    while end > begin and is_punctuation(token[end - 1]) and not (kind == "addresses" and token[end - 1] == "/"):
        end -= 1
    return begin, end


def _signed(token: str, kind: Kind) -> bool:
    return kind == "numbers" and token[0] in "+-" and token[1:2].isdigit()


def _with_core(token: str, core: str, kind: Kind) -> str:
    begin, end = _core_bounds(token, kind)
    return token[:begin] + core + token[end:] if begin < end else core


def _same(token: str, other: str, kind: Kind) -> bool:
    one, two = _core(token, kind), _core(other, kind)
    return one == two or (kind == "numbers" and _digits(one) == _digits(two))


def _digits(text: str) -> list[int]:
    """What digits it has, in whatever script."""
    return [unicodedata.digit(character) for character in text if character.isdigit()]


_TESTS: dict[Kind, Callable[[str], bool]] = {
    "markup": lambda text: _MARKUP.fullmatch(text) is not None,
    "addresses": lambda text: _ADDRESS.fullmatch(text) is not None,
    "numbers": lambda text: _NUMBER.fullmatch(text) is not None,
    "names": lambda text: len(text) > 1 and text[0].isupper() and text.isalpha(),
}
