"""A text with its words marked by how much they counted: the view for one answer about a long text.

Words stand as the text has them, on a ground as strong as their share of the largest weight. Of a very long text only
the neighbourhoods of the strongest words are shown.
"""

from __future__ import annotations

import math
import shutil
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from rich.cells import cell_len

from regard.look.colours import colour, level
from regard.look.layout import MARGIN, SMALL, TEXT, Cell, Curve, Picture, Words, text_width
from regard.look.table import table, visible
from regard.look.terminal import bar, paint
from regard.look.trace import Trace
from regard.text.boundaries import Direction

LONG = 400
"""words; beyond, parts are left out"""
STRONGEST, AROUND = 40, 8
"""then so many of the strongest are shown, with so many words on both sides"""
TOLD = 0.25
"""the least share of the largest weight that gets a bar where there are no colours"""
LISTED = 6
"""words told by themselves"""
WIDTH = 760.0
LINE = 26.0
STRENGTH = 0.4
"""of the strongest ground: what is written on it can still be read, on light paper and on dark"""
LEFT_OUT = "…"


@dataclass(frozen=True)
class Marked:
    """A word, whether a blank comes before it, and how much it counted; None for what is left out."""

    word: str
    blank: bool
    weight: float | None


@dataclass(frozen=True)
class Passage:
    heading: str
    """what was said of the text, with probabilities"""
    words: Sequence[Marked]
    top: float
    """the largest weight"""
    strongest: Sequence[tuple[str, float]]
    direction: Direction
    title: str
    footnotes: Sequence[str]


def passage(
    trace: Trace,
    *,
    attention: str | None = None,
    layer: int | None = None,
    head: int | None = None,
    evidence: str | None = None,
) -> Passage:
    """Of a trace with one answer: which of the source's words it looked at."""
    shown = table(trace, attention=attention, layer=layer, head=head, evidence=evidence)
    if len(shown.rows) != 1:
        raise ValueError(f"view: text is for one answer about a text, as a label; this one has {len(shown.rows)} words")
    weights = shown.weights[0]
    words, reached = [], 0
    for word, weight in zip(trace.source.words, weights.tolist(), strict=True):
        words.append(Marked(visible(word.text), word.start > reached, weight))
        reached = word.end
    order = np.argsort(-weights, kind="stable")
    told = [(words[place].word, float(weights[place])) for place in order[:LISTED].tolist() if weights[place] > 0]
    return Passage(
        _heading(trace),
        _shortened(words, order[:STRONGEST].tolist()) if len(words) > LONG else words,
        max(float(weights.max(initial=0)), 1e-6),
        told,
        trace.source.direction,
        " · ".join(shown.title),
        shown.footnotes,
    )


def _heading(trace: Trace) -> str:
    if not trace.candidates:
        return visible(trace.target.text)
    return "  ".join(f"{visible(each.text)} {each.score:.2f}" for each in trace.candidates[:LISTED])


def _shortened(words: list[Marked], strongest: list[int]) -> list[Marked]:
    """The strongest words with those around them; the beginning too."""
    near = np.zeros(len(words), bool)
    near[:AROUND] = True
    for place in strongest:
        near[max(0, place - AROUND) : place + AROUND + 1] = True
    found: list[Marked] = []
    for place, word in enumerate(words):
        if near[place]:
            found.append(word)
        elif near[place - 1]:
            found.append(Marked(LEFT_OUT, True, None))
    return found


def _digits(given: Passage) -> int:
    """Where all weights are small, two would tell nothing."""
    return 4 if given.top < 0.05 else 2


# The terminal


def marked(given: Passage, width: int | None = None, colours: bool = False) -> str:
    """Running text; in colours the ground tells the weight, else a bar behind each word that counted."""
    room = width or shutil.get_terminal_size((80, 24)).columns
    lines, used = [""], 0
    for each in given.words:
        text, cells = _written(each, given.top, colours)
        if used and used + each.blank + cells > room:
            lines.append("")
            used = 0
        blank = " " if each.blank and used else ""
        lines[-1] += blank + text
        used += len(blank) + cells
    told = " · ".join(f"{word} {weight:.{_digits(given)}f}" for word, weight in given.strongest)
    return "\n".join([given.heading, "", *lines, "", f"looked at most: {told}", *map(visible, given.footnotes)])


def _written(word: Marked, top: float, colours: bool) -> tuple[str, int]:
    """(as the terminal takes it, how many cells it fills)"""
    share = max(0.0, (word.weight or 0.0) / top)
    if colours and word.weight is not None:
        return paint(word.word, colour(share)), cell_len(word.word)
    sign = bar(share).strip() if share >= TOLD else ""
    return word.word + sign, cell_len(word.word) + len(sign)


# A picture


def text_picture(given: Passage) -> Picture:
    cells: list[Cell | Words | Curve] = []
    texts: list[Cell | Words | Curve] = []
    right_to_left = given.direction == "rtl"
    top = MARGIN + LINE * 1.6
    x, y = 0.0, top
    for each in given.words:
        wide = text_width(each.word, TEXT) + 8
        x += TEXT * 0.15 if each.blank and x else 0
        if x and x + wide > WIDTH:
            x, y = 0.0, y + LINE
        left = MARGIN + (WIDTH - x - wide if right_to_left else x)
        if each.weight is not None:
            shade = level(STRENGTH * max(0.0, each.weight) / given.top)
            cells.append(
                Cell(left, y, wide, LINE - 5, shade, "", f"\u2068{each.word}\u2069: {each.weight:.{_digits(given)}f}")
            )
        texts.append(Words(each.word, left + wide / 2, y + (LINE - 5) / 2, TEXT, False, given.direction, "middle"))
        x += wide
    told = " · ".join(f"{word} {weight:.{_digits(given)}f}" for word, weight in given.strongest)
    notes = [f"looked at most: {told}", *given.footnotes]
    bottom = y + LINE + 8
    framing = [Words(given.heading, MARGIN, MARGIN + 8, TEXT), Words(given.title, MARGIN, MARGIN + 26, SMALL)]
    framing += [Words(note, MARGIN, bottom + 18 * number + 9, SMALL) for number, note in enumerate(notes)]
    spoken = f"{given.heading}; {notes[0]}"
    widest = max(WIDTH, *(text_width(words.text, words.size, math.inf) for words in framing))
    return Picture(widest + 2 * MARGIN, bottom + 18 * len(notes) + MARGIN, [*cells, *texts, *framing], spoken)
