"""The text of a trace for the terminal, with the words that are probably wrong shaded."""

from __future__ import annotations

from regard.look.colours import LIGHT_AGAINST, level, shades
from regard.look.terminal import paint
from regard.look.trace import Trace

SHADES = shades(LIGHT_AGAINST)
MIN_DOUBT = 0.1  # words with less of it are not shaded


def shaded(trace: Trace) -> str:
    """Return the target with ANSI codes: the lower the confidence of a word, the darker its ground."""
    parts, reached = [], 0
    for word, confidence in zip(trace.target.text_words, trace.confidence, strict=True):
        text = trace.target.text[word.start : word.end]
        doubt = 1 - confidence
        parts += [
            trace.target.text[reached : word.start],
            paint(text, doubt_colour(doubt)) if doubt >= MIN_DOUBT else text,
        ]
        reached = word.end
    return "".join([*parts, trace.target.text[reached:]])


def doubt_colour(doubt: float) -> str:
    """Return the colour of a word that is wrong with this probability."""
    return SHADES[level(doubt)]
