"""Terms of training pairs: words of the source and the target words that they alone are linked with.

Source words i … i' and target words j … j', at most MAX_WORDS each, are a term if every one of them is linked, and only
with words of the other side of the term. The links are those of the statistical aligner.
"""

from __future__ import annotations

import os.path
from collections import Counter
from collections.abc import Iterator, Sequence

from regard.alignment.links import Links
from regard.alignment.statistical import statistical_links
from regard.tasks.translation.anchors import within_cells
from regard.tasks.translation.word_pairs import usual_spellings
from regard.text.glossary import term_words
from regard.text.normal import match_key
from regard.text.pairs import Pair
from regard.text.shown_terms import MAX_FORMS, OPENING, LinkedTerm

MAX_WORDS = 3  # of a term on each side
MIN_SHARED = 2  # letters at the beginning of two forms of a word, and half of the shorter one's

Spans = Sequence[tuple[int, int]]
Words = tuple[str, ...]


def find_terms(pairs: Sequence[Pair], seed: int) -> list[list[LinkedTerm]]:
    """Return the terms of each pair. Of a large corpus only some pairs, drawn at random, are aligned."""
    spans = [(_spans(pair.source), _spans(pair.target)) for pair in pairs]
    cells = [len(source) * len(target) for source, target in spans]
    rows = [row for row in within_cells(cells, seed) if OPENING not in pairs[row].source]
    sides = [_keys(pairs[row], *spans[row]) for row in rows]
    usual = usual_spellings(
        [[pair.target[a:b] for a, b in words] for pair, (_, words) in zip(pairs, spans, strict=True)]
    )
    forms: dict[Words, Counter[str]] = {}
    terms: list[list[tuple[Words, LinkedTerm]]] = [[] for _ in pairs]
    for row, (source, _), links in zip(rows, sides, statistical_links(sides), strict=True):
        for (first, last), targets in _phrases(links, len(source)):
            term = _term(pairs[row], spans[row], (first, last), targets, usual)
            if term is not None:
                words = tuple(source[first:last])
                terms[row].append((words, term))
                forms.setdefault(words, Counter())[term.target] += 1
    others = {(words, form): _others(form, counts) for words, counts in forms.items() for form in counts}
    return [[term._replace(others=others[words, term.target]) for words, term in own] for own in terms]


def _spans(text: str) -> Spans:
    """Return the offsets of the words of a text that have a letter."""
    return [(start, end) for word, start, end in term_words(text) if any(map(str.isalpha, word))]


def _keys(pair: Pair, *spans: Spans) -> tuple[list[str], list[str]]:
    source, target = (
        [match_key(text[start:end]) for start, end in words]
        for text, words in zip((pair.source, pair.target), spans, strict=True)
    )
    return source, target


def _phrases(links: Links, size: int) -> Iterator[tuple[tuple[int, int], tuple[int, int]]]:
    """Yield the terms of a pair as ranges of source and target words; `size`: the number of source words."""
    by_source: dict[int, set[int]] = {}
    by_target: dict[int, set[int]] = {}
    for source, target in links:
        by_source.setdefault(source, set()).add(target)
        by_target.setdefault(target, set()).add(source)
    for first in range(size):
        targets: set[int] = set()
        for last in range(first + 1, min(first + MAX_WORDS, size) + 1):
            if last - 1 not in by_source:
                break
            targets |= by_source[last - 1]
            begin, end = min(targets), max(targets) + 1
            if end - begin > MAX_WORDS:
                break
            inside = set(range(first, last))
            if len(targets) == end - begin and all(by_target[target] <= inside for target in targets):
                yield (first, last), (begin, end)


def _term(
    pair: Pair, spans: tuple[Spans, Spans], source: tuple[int, int], target: tuple[int, int], usual: dict[str, str]
) -> LinkedTerm | None:
    """Return the term of these ranges of words; None if there is punctuation between them. The first word of a target
    is spelt as it mostly is elsewhere."""
    start, end = spans[0][source[0]][0], spans[0][source[1] - 1][1]
    begin, stop = spans[1][target[0]][0], spans[1][target[1] - 1][1]
    text = pair.target[begin:stop]
    if _has_punctuation(pair.source[start:end]) or _has_punctuation(text):
        return None
    if target[0] == 0:
        word = text[: spans[1][0][1] - begin]
        text = usual.get(word.lower(), word) + text[len(word) :]
    return LinkedTerm(start, end, text)


def _has_punctuation(text: str) -> bool:
    """Return whether there is punctuation between the words of a text."""
    return any(not any(map(str.isalnum, word)) for word, _, _ in term_words(text))


def _others(form: str, forms: Counter[str]) -> tuple[str, ...]:
    """Return the most frequent of the other forms that begin like this one."""
    alike = [other for other, _ in forms.most_common() if other.casefold() != form.casefold() and is_form(form, other)]
    return tuple(alike[: 2 * MAX_FORMS])


def is_form(one: str, two: str) -> bool:
    """Return whether two texts look like forms of one word."""
    shared = len(os.path.commonprefix([one, two]))  # noqa: RUF071, characters are meant
    return " " not in one + two and shared >= max(MIN_SHARED, min(len(one), len(two)) / 2)
