"""The sentences of a text."""

from __future__ import annotations

from collections.abc import Iterable

import regex

_TITLES = "mr mrs ms dr prof st sr jr sra srta mme mlle hr fr gen col capt lt sgt rev"
_SHORT = "no nr vs ca bzw usw etc approx"
ABBREVIATIONS = frozenset(f"{_TITLES} {_SHORT}".split())
"""words whose full stop mostly ends no sentence; single letters are others"""

_END = regex.compile(r"[.?!…]+[\p{Pf}\p{Pe}\"']*(?P<gap>\s+)|[।。？！]+[\p{Pf}\p{Pe}\"']*(?P<gap>\s*)(?=\S)")
_BEGINS = regex.compile(r"[\p{Pi}\p{Ps}\"'¿¡—–-]*[^\p{Ll}\p{P}\s]")  # a sentence does not begin in lower case
_WORD = regex.compile(r"[\p{L}\p{M}]+$")


def sentences(text: str) -> list[str]:
    """Return the sentences of a text, without the spaces between them.

    A sentence ends with . ? ! or …, then a space, then anything but a lower-case letter; or with । 。 ？ ！. A full
    stop after an abbreviation or a single letter ends none: rather two sentences together than one in two parts.
    """
    parts, begin = [], 0
    for end in _END.finditer(text):
        start, stop = end.span("gap")
        is_certain = end[0][0] in "।。？！"
        if is_certain or (_BEGINS.match(text, stop) and not _is_abbreviated(text[begin : end.start()], end[0])):
            parts.append(text[begin:start])
            begin = stop
    return [part for part in [*parts, text[begin:]] if part]


def _is_abbreviated(before: str, mark: str) -> bool:
    """Return whether a mark belongs to an abbreviation that ends the text before it."""
    word = _WORD.search(before)
    return mark.strip() == "." and word is not None and (len(word[0]) == 1 or word[0].lower() in ABBREVIATIONS)


def several_sentences(texts: Iterable[str]) -> float:
    """Return the fraction of texts that have more than one sentence."""
    counts = [len(sentences(text)) > 1 for text in texts]
    return sum(counts) / max(len(counts), 1)
