"""Terms shown beside their words in the sources of training pairs, so that a model learns to use what it is shown.

    Rahul is a good boy.                    Rahul is a good boy⟨ मुलगा⟩.
    राहुल चांगला मुलगा आहे.                  राहुल चांगला मुलगा आहे.

The source word stays; what it must become follows it, between two reserved tokens (Dinu et al. 2019). Several forms are
separated by the first of them, and one of them stands in the target: `boy⟨ मुलाने⟨ मुलगा⟩`.
"""

from __future__ import annotations

import random
from collections.abc import Iterable, Sequence
from typing import NamedTuple

from regard.text.placeholders import Edit, edited
from regard.text.vocabulary import TERM_MARKS

MAX_SHOWN = 3  # terms in one training pair
MAX_FORMS = 3  # of a term
SEVERAL_FORMS = 0.25  # the fraction of terms that are shown in several forms, where there are any
FRACTION = 0.3  # of the pairs, if a recipe says only that terms are shown
OPENING, CLOSING = TERM_MARKS


class LinkedTerm(NamedTuple):
    """Words of a source as offsets (start, end), and the target words that are linked with them."""

    start: int
    end: int
    target: str
    others: tuple[str, ...] = ()  # further forms of the target


def annotation(forms: Iterable[str]) -> str:
    """Return the text that shows the forms of a term. It follows the term without a space; each form begins a word, so
    that it has the same pieces as in a target."""
    return "".join(f"{OPENING} {form}" for form in forms) + CLOSING


def with_marks(source: str, terms: Sequence[LinkedTerm], rng: random.Random) -> tuple[str, list[str]]:
    """Return a source with a mark after each of one to `MAX_SHOWN` terms that are drawn, and their annotations.

    `with_annotations` puts these in, after other variations of the text, which must not change them.
    """
    chosen: list[LinkedTerm] = []
    count = rng.randint(1, MAX_SHOWN)
    for term in sorted(terms, key=lambda each: rng.random() * len(source[each.start : each.end].split())):
        if len(chosen) < count and all(term.end <= each.start or each.end <= term.start for each in chosen):
            chosen.append(term)
    chosen.sort()
    return edited(source, [Edit(term.end, term.end, OPENING) for term in chosen]), [
        _drawn(each, rng) for each in chosen
    ]


def with_annotations(source: str, annotations: Sequence[str]) -> str:
    """Return a source with annotations in place of its marks."""
    parts = source.split(OPENING) if annotations else [source]
    return parts[0] + "".join(text + part for text, part in zip(annotations, parts[1:], strict=True))


def _drawn(term: LinkedTerm, rng: random.Random) -> str:
    """Return the annotation of a term, sometimes with further forms, in any order."""
    forms = [term.target]
    if term.others and rng.random() < SEVERAL_FORMS:
        forms += rng.sample(term.others, min(len(term.others), rng.randint(1, MAX_FORMS - 1)))
    return annotation(rng.sample(forms, len(forms)))
