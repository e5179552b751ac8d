"""Copying what must not be translated from source to target along links: numbers, addresses, markup, optionally names.

Copying is off by default everywhere: a Latin name in Devanagari text is wrong. A number written with other digits or
separators (5 and ५, 3.14 and 3,14) is the same number and stays as the translator wrote it.
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
DEFAULT_KINDS: tuple[Kind, ...] = ("numbers", "addresses", "markup")

_MARKUP = re.compile(r"</?\w[^<>]*>|&#?\w+;|\{\{?[\w.]*\}?\}|%\w")
"""tags, entities, and template placeholders: {name}, {{name}}, %s"""
_ADDRESS = re.compile(r"(https?://|ftp://|www\.)\S+|[^\s@]+@[^\s@]+\.\w+")
_NUMBER = re.compile(r"[-+]?\d[\d.,:/'’\u00a0-]*")


def carry(source: str, target: str, links: Iterable[Link], kinds: Collection[Kind] = DEFAULT_KINDS) -> str:
    """Return the target in which source tokens of these kinds replace the tokens that they are linked to.

    A source token replaces one of its linked target tokens: one of the same kind if there is one, else the first that
    is linked to no other token. If there is none, or if a linked token is already equal, nothing is replaced.
    Punctuation around both tokens stays where it is.
    """
    unknown = set(kinds) - set(KINDS)
    if unknown:
        raise ValueError(f"kinds: expected some of {', '.join(KINDS)}, got {sorted(unknown)[0]!r}")
    source_tokens, target_tokens = tokens(source), tokens(target)
    sources_of = _sources_of(links, len(source_tokens), len(target_tokens))
    output = list(target_tokens)
    for number, token in enumerate(source_tokens):
        kind = _kind(token, number == 0, kinds)
        if kind is None:
            continue
        linked = [index for index, sources in sorted(sources_of.items()) if number in sources]
        linked = [index for index in linked if output[index] == target_tokens[index]]
        index = _replaced(token, kind, linked, target_tokens, sources_of)
        if index is not None:
            before, core, after = _parts(target_tokens[index], kind)
            output[index] = before + _core(token, kind) + after if core else _core(token, kind)
    return " ".join(output) if output != target_tokens else target


def carry_over(trace: Trace, kinds: Collection[Kind] = DEFAULT_KINDS) -> str:
    """Return the target of a trace after copying along the links of the trace's own weights."""
    source, target = trace.source.text, trace.target.text
    return carry(source, target, links_of(token_weights(trace, source, target), "mutual"), kinds)


def read_kinds(text: str | None) -> tuple[Kind, ...]:
    """Parse kinds separated by commas, such as `numbers,markup`."""
    given = [] if text is None else [part.strip() for part in text.split(",")]
    unknown = [part for part in given if part not in KINDS]
    if unknown:
        raise ValueError(f"carry: expected some of {', '.join(KINDS)}, parted by commas, got {unknown[0]!r}")
    return tuple(kind for kind in KINDS if kind in given)


def _sources_of(links: Iterable[Link], sources: int, targets: int) -> dict[int, set[int]]:
    """Return the source tokens that each linked target token is linked to."""
    sources_of: dict[int, set[int]] = {}
    for source, target in links:
        if not (0 <= source < sources and 0 <= target < targets):
            raise ValueError(f"links: expected places below {sources}-{targets}, got {source}-{target}")
        sources_of.setdefault(target, set()).add(source)
    return sources_of


def _replaced(
    token: str, kind: Kind, linked: list[int], target_tokens: list[str], sources_of: dict[int, set[int]]
) -> int | None:
    """Return the index of the target token that is replaced, if any."""
    if any(_same(token, target_tokens[index], kind) for index in linked):
        return None
    same_kind = [index for index in linked if _TESTS[kind](_core(target_tokens[index], kind))]
    linked_once = [index for index in linked if len(sources_of[index]) == 1]
    return next(iter([*same_kind, *linked_once]), None)


def _kind(token: str, first: bool, kinds: Collection[Kind]) -> Kind | None:
    """Return the kind of a source token; None: it is not copied."""
    for kind in ("markup", "addresses", "numbers"):
        if _TESTS[kind](_core(token, kind)):
            return kind if kind in kinds else None
    # The first word has a capital letter whether or not it is a name.
    return "names" if "names" in kinds and not first and _TESTS["names"](_core(token, "names")) else None


def _core(token: str, kind: Kind) -> str:
    """Return the token without the punctuation around it."""
    return _parts(token, kind)[1]


def _parts(token: str, kind: Kind) -> tuple[str, str, str]:
    """Return the token and the punctuation around it; markup, which is partly punctuation, stays whole."""
    begin, end = 0, len(token)
    if kind == "markup":
        return "", token, ""
    while begin < end and is_punctuation(token[begin]):
        if kind == "numbers" and token[begin] in "+-" and token[begin + 1 : end][:1].isdigit():
            break  # the sign
        begin += 1
    while end > begin and is_punctuation(token[end - 1]) and not (kind == "addresses" and token[end - 1] == "/"):
        end -= 1
    return token[:begin], token[begin:end], token[end:]


def _same(token: str, other: str, kind: Kind) -> bool:
    """Return whether the cores are equal or, for numbers, have the same digits."""
    cores = [_core(each, kind) for each in (token, other)]
    one, two = ([unicodedata.digit(each) for each in core if each.isdigit()] for core in cores)  # in any script
    return cores[0] == cores[1] or (kind == "numbers" and one == two)


_TESTS: dict[Kind, Callable[[str], bool]] = {
    "markup": lambda text: _MARKUP.fullmatch(text) is not None,
    "addresses": lambda text: _ADDRESS.fullmatch(text) is not None,
    "numbers": lambda text: _NUMBER.fullmatch(text) is not None,
    "names": lambda text: len(text) > 1 and text[0].isupper() and text.isalpha(),
}
