"""Sources that are spelt unlike the training texts, in the spelling that the vocabulary knows best.

- A text in capitals throughout has no case: each word becomes lower case or capitalized, whichever has fewer pieces.
  The pieces of a vocabulary are the frequent spellings of its training texts, so names stay capitalized.
- Straight and typographic quotation marks and apostrophes are exchanged where that gives fewer pieces.

A respelt text has as many characters as the original, so that offsets in one are offsets in the other.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterator

from regard.text.vocabulary import SPECIAL, Vocabulary

QUOTES = "\"'‘’‛ʼ´`“”„‟«»"
_STRAIGHT = str.maketrans({mark: "'" if mark in "‘’‛ʼ´`" else '"' for mark in QUOTES[2:]})
_WORD_START = re.compile(r"(?<![\w'’])\w")


def respelled(vocabulary: Vocabulary, tidied: str) -> str:
    """Return a tidied source in the spelling that the vocabulary knows best: most texts unchanged."""
    if any(mark in tidied for mark in QUOTES):
        tidied = " ".join(min(_quoted(word), key=lambda form: _cost(vocabulary, form)) for word in tidied.split(" "))
    if not tidied.isupper():
        return tidied
    words = tidied.split(" ")
    sentence = len(words) > 1
    recased = " ".join(
        min(_recased(word, sentence and index == 0), key=lambda form: _cost(vocabulary, form))
        for index, word in enumerate(words)
    )
    # Where capitals cost no more pieces, as in a vocabulary of letters, nothing says that they are less familiar.
    return recased if _cost(vocabulary, recased) < _cost(vocabulary, tidied) else tidied


def _cost(vocabulary: Vocabulary, text: str) -> int:
    """Return the number of pieces of a text; an unknown word costs more than any known one."""
    tokens = vocabulary.encode(text)
    return len(tokens) + (tokens.count(len(SPECIAL)) * len(text) if vocabulary.words else 0)


def _quoted(word: str) -> Iterator[str]:
    """Yield the word as it is, with straight quotation marks and apostrophes, and with typographic ones."""
    yield word
    straight = word.translate(_STRAIGHT)
    yield straight
    opened = "“" + straight[1:] if straight.startswith('"') else straight
    yield opened.replace('"', "”").replace("'", "’")


def _recased(word: str, begins_sentence: bool) -> Iterator[str]:
    """Yield the forms of a word in capitals, the preferred one first: lower case, capitalized, in capitals."""
    lower = word.lower()
    if len(lower) != len(word):  # İ becomes two characters
        lower = "".join(letter.lower() if len(letter.lower()) == 1 else letter for letter in word)
    forms = [lower, _WORD_START.sub(lambda match: match[0].upper(), lower)]
    for form in reversed(forms) if begins_sentence else forms:
        if len(form) == len(word) and unicodedata.is_normalized("NFC", form):
            yield form
    yield word
