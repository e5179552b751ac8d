"""Placeholder tokens in training pairs: what stands for a number, an address or a name that is not to be translated.

    Rahul has two keys.          ⟨3⟩ has two keys.         Rahul has ⟨5⟩ two keys.
    राहुलकडे दोन चाव्या आहेत.       ⟨3⟩ दोन चाव्या आहेत.       राहुलकडे दोन चाव्या आहेत.

A source word and a target word that are linked with each other become the same placeholder, so that the model learns to
copy it as a word of the sentence. Others are inserted into the source alone, so that it learns to read over what does
not belong to the sentence; where these go in the translation, the attention says (alignment/restore.py).
"""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Sequence
from typing import NamedTuple

import regex

from regard.text.vocabulary import PLACEHOLDERS

MAX_PER_PAIR = 4  # placeholders in one training pair
REPLACED = 0.5  # the fraction of placeholders that replace a word of each side; others are inserted
VARIANTS = 8  # a pair has so many variants with placeholders; more would only cost memory
_WORD = regex.compile(r"[\p{L}\p{M}\p{N}\u200c\u200d'’]+")


class Anchor(NamedTuple):
    """Words of source and target that translate each other, as offsets (start, end) in the texts."""

    source: tuple[int, int]
    target: tuple[int, int]


def word_spans(text: str) -> list[tuple[int, int]]:
    """Return the offsets of the words of a text; punctuation belongs to none."""
    return [match.span() for match in _WORD.finditer(text)]


def equal_words(source: str, target: str) -> list[Anchor]:
    """Return an anchor for each word, number or name that occurs once on either side, spelt the same."""
    spans = [{text[start:end]: (start, end) for start, end in word_spans(text)} for text in (source, target)]
    counts = [Counter(text[start:end] for start, end in word_spans(text)) for text in (source, target)]
    return [Anchor(span, spans[1][word]) for word, span in spans[0].items() if counts[0][word] == counts[1][word] == 1]


class Edit(NamedTuple):
    """The offsets of a part of a text, and what replaces it."""

    start: int
    end: int
    text: str


def with_placeholders(source: str, target: str, anchors: Sequence[Anchor], rng: random.Random) -> tuple[str, str]:
    """Return the pair with one to MAX_PER_PAIR placeholders at places drawn at random; unchanged without words."""
    words = word_spans(source)
    if not words:
        return source, target
    replaceable = rng.sample(list(anchors), len(anchors))
    sources: list[Edit] = []
    targets: list[Edit] = []
    for name in rng.sample(PLACEHOLDERS, rng.randint(1, MAX_PER_PAIR)):
        if replaceable and rng.random() < REPLACED:
            anchor = replaceable.pop()
            sources.append(Edit(*anchor.source, name))
            targets.append(Edit(*anchor.target, name))
        else:
            start = rng.choice(words)[0]
            sources.append(Edit(start, start, f"{name} "))
    return edited(source, sources), edited(target, targets)


def edited(text: str, edits: Sequence[Edit]) -> str:
    """Return a text with some parts replaced; edits at the same place stay in their order."""
    result, begin = "", 0
    for edit in sorted(edits, key=lambda each: each[:2]):
        result += text[begin : edit.start] + edit.text
        begin = edit.end
    return result + text[begin:]
