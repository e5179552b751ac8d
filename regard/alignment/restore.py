"""Putting back what was taken out of a source: each thing exactly once, at the place that the attention gives.

- A word whose placeholder is in the translation stands there. One that the model left out goes before the translation
  of the word that followed it; one that it repeated stays where it attends most to its source.
- A pair encloses the contiguous words that attend to the words it enclosed. Pairs stay nested; neighbours share no
  word, unless there are too few.
- What stood between words goes before the translation of the word that followed it, or after that of the word that it
  was attached to.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import NamedTuple

from regard.alignment.assembly import BETWEEN, CLOSES, OPENS, REPLACES, Element, Event, assembled
from regard.alignment.projection import Projection, Range
from regard.text.boundaries import is_punctuation
from regard.text.marked import MarkedPair, MarkedPoint, MarkedText, MarkedWord
from regard.text.placeables import Part
from regard.text.vocabulary import PLACEHOLDERS

MIN_SHARE = 0.3  # a placeholder that the source does not have stands for a missing word to which it attends this much
_PLACEHOLDER = re.compile("[" + "".join(PLACEHOLDERS) + "]")


class WordEdit(NamedTuple):
    """A part of the translation that is replaced."""

    start: int
    end: int
    word: MarkedWord | None  # None: it is removed


@dataclass(frozen=True)
class Restored:
    """A translation with everything in its place."""

    parts: list[Part]
    edits: list[WordEdit]  # of the model's translation, in their order; an empty one inserts its word


def restore(marked: MarkedText, translation: str, projection: Projection) -> Restored:
    """Put back what was taken out of a source, into its translation."""
    edits = sorted(_word_edits(marked, translation, projection), key=lambda edit: edit[:2])
    projection = projection.without([edit for edit in edits if edit.word is None])
    copies = [(edit.word, edit) for edit in edits if edit.word is not None and edit.start < edit.end]
    projection = projection.with_copies(((word.start, word.end), (edit.start, edit.end)) for word, edit in copies)
    events = [
        *_pair_events(marked, translation, projection),
        *(_point_event(order, point, len(translation), projection) for order, point in enumerate(marked.points)),
        *map(_word_event, range(len(edits)), edits),
    ]
    return Restored(assembled(translation, sorted(events, key=lambda event: event[:2])), edits)


# Words


def _word_edits(marked: MarkedText, translation: str, projection: Projection) -> list[WordEdit]:
    """Return where each word goes, and which of the model's placeholders are removed."""
    placed = _placeholder_places(marked, translation, projection)
    used = set(placed.values())
    edits = [WordEdit(*span, None) for span in _placeholders(translation) if span not in used]
    for number, word in enumerate(marked.words):
        span = placed.get(number)
        if span is None:
            start = _place(word.start, word.start, word.space_before, word.space_after, len(translation), projection)
            span = (start, start)
        used.add(span)
        edits.append(WordEdit(*span, word))
    return edits + [WordEdit(*span, None) for span in _copies(marked, translation, used)]


def _placeholders(translation: str) -> list[Range]:
    return [match.span() for match in _PLACEHOLDER.finditer(translation)]


def _placeholder_places(marked: MarkedText, translation: str, projection: Projection) -> dict[int, Range]:
    """Return the placeholder of the translation for each word that has one, those that attend most first."""
    candidates: list[tuple[bool, float, int, Range]] = []
    for span in _placeholders(translation):
        target = projection.target_at(span[0])
        for number, word in enumerate(marked.words):
            share = 0.0 if target is None else projection.share([target], projection.sources_in(word.start, word.end))
            same = marked.plain[word.start : word.end] == translation[slice(*span)]
            if same or share >= MIN_SHARE:
                candidates.append((not same, -share, number, span))
    placed: dict[int, Range] = {}
    for _, _, number, span in sorted(candidates):
        if number not in placed and span not in placed.values():
            placed[number] = span
    return placed


def _copies(marked: MarkedText, translation: str, used: set[Range]) -> Iterator[Range]:
    """Yield where the model wrote once more what has its place already."""
    for text in {word.placeable.text for word in marked.words}:
        for match in re.finditer(rf"(?<!\w){re.escape(text)}(?!\w)", translation):
            if not any(start < match.end() and match.start() < end for start, end in used):
                yield match.span()


def _word_event(order: int, edit: WordEdit) -> Event:
    rank = BETWEEN if edit.start == edit.end else REPLACES
    if edit.word is None:
        return Event(edit.start, (rank, order), edit.end, Element((), "gap"))
    inserted = edit.start == edit.end
    spaces = inserted or edit.word.space_before, inserted or edit.word.space_after
    return Event(edit.start, (rank, order), edit.end, Element(edit.word.parts, "word", *spaces))


# Pairs


def _pair_events(marked: MarkedText, translation: str, projection: Projection) -> Iterator[Event]:
    """Yield both ends of each pair. What closes goes before what opens at the same offset; inner pairs close first."""
    length = len(translation)
    for number, (pair, words) in enumerate(
        zip(marked.pairs, _pair_spans(marked, translation, projection), strict=True)
    ):
        if words is None:  # the translation has no words, or none is left: all in their order
            offset = _place(pair.start, pair.start, True, False, length, projection)
            yield Event(offset, (BETWEEN, number), offset, Element((*pair.opening, *pair.closing), "point", True, True))
            continue
        start, end = projection.target[words[0]][0], projection.target[words[1] - 1][1]
        if len(projection.sources_in(pair.start, pair.end)) == len(projection.source):
            start, end = 0, length
        yield Event(start, (OPENS, -end, number), start, Element(pair.opening, "open"))
        yield Event(end, (CLOSES, -start, -number), end, Element(pair.closing, "close"))


def _pair_spans(marked: MarkedText, translation: str, projection: Projection) -> list[Range | None]:
    """Return the target words of each pair: inside those of the pair around it, and disjoint from its neighbours'."""
    pairs, spans = marked.pairs, list[Range | None]()
    everywhere = [True] * len(projection.target)
    words = [_is_word(translation[slice(*span)]) for span in projection.target]
    enclosed = [projection.sources_in(pair.start, pair.end) for pair in pairs]
    ends = [_possible_ends(marked, projection, sources, words) for sources in enclosed]
    wanted = [projection.span(sources, everywhere, *own) for sources, own in zip(enclosed, ends, strict=True)]
    for number in reversed(range(len(pairs))):  # a pair reaches as far as those inside it
        for outer in range(number):
            if _encloses(pairs[outer], pairs[number]):
                wanted[outer] = _union(wanted[outer], wanted[number])
    for number, (pair, sources) in enumerate(zip(pairs, enclosed, strict=True)):
        around = [span for i, span in enumerate(spans) if span is not None and _encloses(pairs[i], pair)]
        limits = around[-1] if around else (0, len(projection.target))
        inside = [limits[0] <= index < limits[1] for index in range(len(projection.target))]
        beside = [i for i, span in enumerate(spans) if span is not None and not _encloses(pairs[i], pair)]
        free = [
            is_inside and not any(_contains(spans[i], index) for i in beside) for index, is_inside in enumerate(inside)
        ]
        span = wanted[number]
        if span is None or not all(free[slice(*span)]):
            span = projection.span(sources, free, *ends[number])
        if span is None and sources and not any(pairs[i].name == pair.name for i in beside):
            span = _single_word(projection, sources, inside, words)
        spans.append(span)
    return spans


def _possible_ends(
    marked: MarkedText, projection: Projection, sources: Sequence[int], words: Sequence[bool]
) -> tuple[Sequence[bool], Sequence[bool]]:
    """Return which target words may be the first of a pair with these source words, and which the last: no punctuation,
    unless the source of the pair begins or ends with some, as a whole sentence does."""
    if not sources:
        return words, words
    anything = [True] * len(words)
    first, last = (_is_word(marked.plain[slice(*projection.source[index])]) for index in (sources[0], sources[-1]))
    return words if first else anything, words if last else anything


def _is_word(text: str) -> bool:
    return not all(map(is_punctuation, text))


def _encloses(outer: MarkedPair, inner: MarkedPair) -> bool:
    """Return whether a pair that opens earlier encloses another one."""
    return outer.start <= inner.start and inner.end <= outer.end


def _contains(span: Range | None, index: int) -> bool:
    return span is not None and span[0] <= index < span[1]


def _union(one: Range | None, two: Range | None) -> Range | None:
    """Return the range of all words from the first to the last of two ranges."""
    if one is None or two is None:
        return one or two
    return min(one[0], two[0]), max(one[1], two[1])


def _single_word(
    projection: Projection, sources: Sequence[int], inside: Sequence[bool], ends: Sequence[bool]
) -> Range | None:
    """Return the target word that attends most to the source words, though it belongs to another pair."""
    allowed = [index for index, possible in enumerate(zip(inside, ends, strict=True)) if all(possible)]
    best = max(allowed, key=lambda index: projection.share([index], sources), default=None)
    return None if best is None else (best, best + 1)


# Points


def _point_event(order: int, point: MarkedPoint, length: int, projection: Projection) -> Event:
    offset = _place(point.start, point.before, point.space_before, point.space_after, length, projection)
    return Event(offset, (BETWEEN, order), offset, Element(point.parts, "point", point.space_before, point.space_after))


def _place(start: int, before: int, space_before: bool, space_after: bool, length: int, projection: Projection) -> int:
    """Return the offset in the translation for what stands between two words of the source: the one that ends at
    `before` and the one that begins at `start`."""
    if not any(word[0] < start for word in projection.source):
        return 0
    if not any(word[0] >= start for word in projection.source):
        return length
    attached = space_after and not space_before
    after, until = projection.end_of(before), projection.start_of(start)
    first, second = (after, until) if attached else (until, after)
    return first if first is not None else second if second is not None else length
