"""The terms of a glossary as constraints of a search, and where they stand in its output."""

from __future__ import annotations

import re
from collections.abc import Sequence

import regex
import torch
from torch import Tensor

from regard.look.trace import MarkedTerm, Side
from regard.search.constrained import MAX_TERMS
from regard.search.constraints import Constraint, Form
from regard.tasks.translation.read_source import ReadSource
from regard.text.boundaries import WITHOUT_SPACES
from regard.text.glossary import Glossary, Term
from regard.text.normal import tidy
from regard.text.vocabulary import BYTES, END, SPECIAL, UNKNOWN, WORD_BEGINS, Vocabulary

_CONTINUES = regex.compile(r"[\p{L}\p{M}\p{N}\u200c\u200d'’]")
_STOP = "。"  # punctuation, after which a vocabulary splits text without the mark of a word's beginning


def terms_of(source: Side, glossary: Glossary | None) -> list[Term]:
    """Return the terms of a source, at most `MAX_TERMS`."""
    return [] if glossary is None else glossary.terms(source.text)[:MAX_TERMS]


def lacking(terms: Sequence[Term], text: str) -> list[Term]:
    """Return the terms that a text lacks."""
    tidied = tidy(text)
    return [term for term in terms if not any(_places(form, tidied) for form in term.forms)]


def constraint(term: Term, source: ReadSource, target: Vocabulary) -> Constraint:
    """Return the tokens that spell a term, and where it stands in the source."""
    forms = [tokens for form in term.forms for tokens in _spellings(form, target)]
    capitalized = [form[:1].upper() + form[1:] for form in term.forms]
    initial = [tokens for form in capitalized for tokens in _spellings(form, target) if tokens not in forms]
    return Constraint(tuple(dict.fromkeys(forms)), tuple(dict.fromkeys(initial)), source.positions(term))


def _spellings(form: str, vocabulary: Vocabulary) -> list[Form]:
    """Return the tokens of a form; in a script without spaces, also those without a space before it."""
    tokens = vocabulary.encode(form)
    if vocabulary.words and vocabulary.tokens[UNKNOWN] in tokens:
        raise ValueError(f"glossary: {form!r} has a word that this model's vocabulary of words does not have")
    spellings = [tuple(tokens)]
    if WITHOUT_SPACES.match(form) and not vocabulary.words:
        spellings.append(tuple(vocabulary.encode(_STOP + form)[len(vocabulary.encode(_STOP)) :]))
    return spellings


def begins_word(vocabulary: Vocabulary) -> Tensor:
    """Return the tokens [V] that cannot continue the word before them: those that begin one, punctuation, and END."""
    if vocabulary.words:
        return torch.ones(len(vocabulary), dtype=torch.bool)
    names = [vocabulary.name(token) for token in range(len(vocabulary))]
    allowed = [
        name.startswith(WORD_BEGINS) or not _CONTINUES.match(name) or bool(WITHOUT_SPACES.match(name)) for name in names
    ]
    allowed[: len(SPECIAL) + len(BYTES)] = [token == END for token in range(len(SPECIAL) + len(BYTES))]
    return torch.tensor(allowed)


def marked(terms: Sequence[Term], target: str) -> list[MarkedTerm]:
    """Return where terms stand in the source and in the target, those that stand in both."""
    marks = []
    for term in terms:
        places = [place for form in term.forms for place in _places(form, target)]
        if places:
            marks.append(
                MarkedTerm((term.start, term.end), min(places, key=lambda place: (place[0] - place[1], place)))
            )
    return marks


def _places(form: str, text: str) -> list[tuple[int, int]]:
    """Return (start, end) of the places where a form stands in a text as whole words; a first capital is allowed."""
    capitalized = form[:1].upper() + form[1:]
    places = [match.span() for match in re.finditer(re.escape(form), text)]
    places += [(0, len(capitalized))] if capitalized != form and text.startswith(capitalized) else []
    return [place for place in places if _is_whole(text, *place)]


def _is_whole(text: str, start: int, end: int) -> bool:
    before, after = text[start - 1 : start] if start else "", text[end : end + 1]
    first, last = text[start : start + 1], text[end - 1 : end]
    begins = not (before.isalnum() and first.isalnum()) or bool(WITHOUT_SPACES.match(first))
    return begins and (not _CONTINUES.match(after) or bool(WITHOUT_SPACES.match(last)) or not last.isalnum())
