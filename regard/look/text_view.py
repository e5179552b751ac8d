"""A text with its words highlighted by their weights: the view for one answer about a long text, such as a label.

The strength of a highlight is the fraction of the largest weight. Of a very long text only the strongest words are
shown, with those around them.
"""

from __future__ import annotations

import math
import shutil
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Unpack

import numpy as np
from rich.cells import cell_len

from regard.look.colours import colour, level
from regard.look.layout import MARGIN, SMALL_SIZE, TEXT_SIZE, Cell, Item, Picture, TextLabel, text_width
from regard.look.table import TableOptions, table, visible
from regard.look.terminal import bar, paint
from regard.look.trace import Trace
from regard.text.boundaries import Direction

LONG_TEXT = 400  # words; of longer texts, parts are left out
STRONGEST_WORDS, CONTEXT_WORDS = 40, 8
"""of a long text so many of the strongest words are shown, with so many words on both sides"""
MIN_BAR_FRACTION = 0.25  # the smallest fraction of the largest weight that gets a bar where there are no colours
MAX_LISTED = 6  # words, or candidates, that are listed with their numbers
TEXT_WIDTH = 760.0
LINE_HEIGHT = 26.0
MAX_HIGHLIGHT = 0.4  # the strongest highlight, on which text can still be read, in light and dark themes
LEFT_OUT = "…"


@dataclass(frozen=True)
class Marked:
    """A word, whether a blank comes before it, and its weight; None for an ellipsis."""

    word: str
    blank: bool
    weight: float | None


@dataclass(frozen=True)
class Passage:
    """A text with the weights of its words, and what is shown around it."""

    heading: str  # the answers about the text, with their probabilities
    words: Sequence[Marked]
    top: float  # the largest weight
    strongest: Sequence[tuple[str, float]]
    direction: Direction
    title: str
    footnotes: Sequence[str]


def passage(trace: Trace, **options: Unpack[TableOptions]) -> Passage:
    """Return the source of a trace with the weights of its words; the target must be a single word."""
    options["pieces"] = False
    shown = table(trace, **options)
    if len(shown.rows) != 1:
        raise ValueError(f"view: text is for one answer about a text, as a label; this one has {len(shown.rows)} words")
    weights = shown.weights[0]
    words, reached = [], 0
    for word, weight in zip(trace.source.words, weights.tolist(), strict=True):
        words.append(Marked(visible(word.text), word.start > reached, weight))
        reached = word.end
    order = np.argsort(-weights, kind="stable")
    listed = [(words[place].word, float(weights[place])) for place in order[:MAX_LISTED].tolist() if weights[place] > 0]
    return Passage(
        "  ".join(f"{visible(each.text)} {each.score:.2f}" for each in trace.candidates[:MAX_LISTED])
        or visible(trace.target.text),
        _shortened(words, order[:STRONGEST_WORDS].tolist()) if len(words) > LONG_TEXT else words,
        max(float(weights.max(initial=0)), 1e-6),
        listed,
        trace.source.direction,
        " · ".join(shown.title),
        shown.footnotes,
    )


def _shortened(words: list[Marked], strongest: list[int]) -> list[Marked]:
    """Return the beginning, and the strongest words with those around them; ellipses for the rest."""
    near = np.zeros(len(words), bool)
    near[:CONTEXT_WORDS] = True
    for place in strongest:
        near[max(0, place - CONTEXT_WORDS) : place + CONTEXT_WORDS + 1] = True
    shown: list[Marked] = []
    for place, word in enumerate(words):
        if near[place]:
            shown.append(word)
        elif near[place - 1]:
            shown.append(Marked(LEFT_OUT, True, None))
    return shown


def _digits(given: Passage) -> int:
    """Return the decimals of weights: more where all weights are small."""
    return 4 if given.top < 0.05 else 2


def _strongest_words(given: Passage) -> str:
    return "looked at most: " + " · ".join(f"{word} {weight:.{_digits(given)}f}" for word, weight in given.strongest)


# The terminal


def marked(given: Passage, width: int | None = None, colours: bool = False) -> str:
    """Return the text for a terminal, highlighted in colours, else with a bar behind each word of large weight."""
    room = width or shutil.get_terminal_size((80, 24)).columns
    lines, used = [""], 0
    for each in given.words:
        text, cells = _marked_word(each, given.top, colours)
        if used and used + each.blank + cells > room:
            lines.append("")
            used = 0
        blank = " " if each.blank and used else ""
        lines[-1] += blank + text
        used += len(blank) + cells
    return "\n".join([given.heading, "", *lines, "", _strongest_words(given), *map(visible, given.footnotes)])


def _marked_word(word: Marked, top: float, colours: bool) -> tuple[str, int]:
    """Return (the word for the terminal, the cells that it fills)."""
    fraction = max(0.0, (word.weight or 0.0) / top)
    if colours and word.weight is not None:
        return paint(word.word, colour(fraction)), cell_len(word.word)
    suffix = bar(fraction).strip() if fraction >= MIN_BAR_FRACTION else ""
    return word.word + suffix, cell_len(word.word) + len(suffix)


# A picture


def text_picture(given: Passage) -> Picture:
    """Return the layout of the text as a picture, with a cell behind each word."""
    cells: list[Item] = []
    texts: list[Item] = []
    height = LINE_HEIGHT - 5
    x, y = 0.0, MARGIN + LINE_HEIGHT * 1.6
    for each in given.words:
        width = text_width(each.word, TEXT_SIZE) + 8
        x += TEXT_SIZE * 0.15 if each.blank and x else 0
        if x and x + width > TEXT_WIDTH:
            x, y = 0.0, y + LINE_HEIGHT
        left = MARGIN + (TEXT_WIDTH - x - width if given.direction == "rtl" else x)
        if each.weight is not None:
            shade = level(MAX_HIGHLIGHT * max(0.0, each.weight) / given.top)
            tooltip = f"\u2068{each.word}\u2069: {each.weight:.{_digits(given)}f}"
            cells.append(Cell(left, y, width, height, shade, "", tooltip))
        middle = left + width / 2, y + height / 2
        texts.append(TextLabel(each.word, *middle, TEXT_SIZE, False, given.direction, "middle"))
        x += width
    notes = [_strongest_words(given), *given.footnotes]
    bottom = y + LINE_HEIGHT + 8
    heading = TextLabel(given.heading, MARGIN, MARGIN + 8, TEXT_SIZE)
    framing = [heading, TextLabel(given.title, MARGIN, MARGIN + 26, SMALL_SIZE)]
    framing += [TextLabel(note, MARGIN, bottom + 18 * number + 9, SMALL_SIZE) for number, note in enumerate(notes)]
    description = f"{given.heading}; {notes[0]}"
    widest = max(TEXT_WIDTH, *(text_width(label.text, label.size, math.inf) for label in framing))
    return Picture(widest + 2 * MARGIN, bottom + 18 * len(notes) + MARGIN, [*cells, *texts, *framing], description)
