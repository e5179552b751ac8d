"""A text assembled from a translation and from what is put into it, with the white space that each needs."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Literal, NamedTuple

from regard.text.boundaries import is_punctuation
from regard.text.placeables import Part, joined, merged

OPENING, CLOSING = frozenset("([{«“„¿¡"), frozenset(".,;:!?…)]}»”।॥،؛؟")
"""punctuation with a space before it and none after it, and the other way round; before or after any other there is
none"""
CLOSES, BETWEEN, OPENS, REPLACES = range(4)
"""what comes first at one offset: what closes there, what stands between words, what opens, what replaces a word"""


@dataclass(frozen=True)
class Element:
    """Something that is put into a text."""

    parts: tuple[Part, ...]
    kind: Literal["text", "word", "open", "close", "point", "gap"]
    space_before: bool = False  # of words: if a letter is there; of points: always, and else none
    space_after: bool = False

    @property
    def text(self) -> str:
        return joined(self.parts)


class Event(NamedTuple):
    """An element and the part of the text that it replaces."""

    start: int
    order: tuple[int, ...]  # among the events with this start
    end: int
    element: Element


def assembled(text: str, events: Iterable[Event]) -> list[Part]:
    """Return the text with the elements in it; events are sorted by their start and order."""
    elements: list[Element] = []  # every other one is a text, perhaps an empty one
    position = 0
    for event in events:
        elements += [_text(text[position : max(position, event.start)]), event.element]
        position = max(position, event.end)
    elements.append(_text(text[position:]))
    for index in range(1, len(elements), 2):
        _SPACING[elements[index].kind](elements, index)
    parts = merged(part for element in elements for part in element.parts)
    if parts and isinstance(parts[0], str):
        parts[0] = parts[0].lstrip(" ")
    if parts and isinstance(parts[-1], str):
        parts[-1] = parts[-1].rstrip(" ")
    return merged(parts)


def _text(text: str) -> Element:
    return Element((text,), "text")


def _neighbour(elements: list[Element], index: int, step: int) -> int | None:
    """Return the index of the next text or word in one direction that is not empty; None: there is none."""
    index += step
    while 0 <= index < len(elements):
        if elements[index].kind in ("text", "word") and elements[index].text:
            return index
        index += step
    return None


def _letter(elements: list[Element], index: int, step: int) -> str:
    """Return the letter that is next in one direction; a space at the end of the text."""
    neighbour = _neighbour(elements, index, step)
    return " " if neighbour is None else elements[neighbour].text[0 if step > 0 else -1]


def _add_space(elements: list[Element], index: int, step: int) -> None:
    """Add a space in one direction: beyond the tags that belong to this element, before those of the next one."""
    own = "close" if step > 0 else "open"
    other = index + step
    while elements[other].kind == own or not elements[other].text:
        other += step
    slot = other if elements[other].kind == "text" else other - step
    text = elements[slot].text
    elements[slot] = _text(" " + text if step > 0 else text + " ")


def _strip_space(elements: list[Element], index: int, step: int) -> None:
    """Remove the spaces of the next text in one direction."""
    neighbour = _neighbour(elements, index, step)
    if neighbour is not None and elements[neighbour].kind == "text":
        text = elements[neighbour].text
        elements[neighbour] = _text(text.lstrip(" ") if step > 0 else text.rstrip(" "))


def _around_word(elements: list[Element], index: int) -> None:
    for step, wanted in ((-1, elements[index].space_before), (1, elements[index].space_after)):
        letter, neighbour = _letter(elements, index, step), _neighbour(elements, index, step)
        beside_word = neighbour is not None and elements[neighbour].kind == "word"
        spaced = letter in (CLOSING if step < 0 else OPENING) or not is_punctuation(letter)
        if wanted and not letter.isspace() and (beside_word or spaced):
            _add_space(elements, index, step)


def _around_point(elements: list[Element], index: int) -> None:
    for step, wanted in ((-1, elements[index].space_before), (1, elements[index].space_after)):
        if not wanted:
            _strip_space(elements, index, step)
        elif not _letter(elements, index, step).isspace():
            _add_space(elements, index, step)


def _around_gap(elements: list[Element], index: int) -> None:
    """Leave one space where a word was removed, and none before punctuation or at the ends."""
    following = _letter(elements, index, 1)
    if following.isspace() or is_punctuation(following):
        _strip_space(elements, index, -1)


def _around_tag(elements: list[Element], index: int) -> None:
    """The white space of tags is in their own parts."""


_SPACING = {
    "open": _around_tag,
    "close": _around_tag,
    "word": _around_word,
    "point": _around_point,
    "gap": _around_gap,
}
