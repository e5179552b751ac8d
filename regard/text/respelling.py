"""Sources that are spelt unlike the training texts, in the spelling that the vocabulary knows best.

- A text all in capitals, or all in lower case, says nothing by its case: each word becomes lower case or capitalized,
  whichever has fewer pieces. The pieces of a vocabulary are the frequent spellings of its training texts, so names
  become capitalized, and so does the first word if training texts begin with a capital. Of a single word, all
  spellings are considered.
- Straight and typographic quotation marks and apostrophes are exchanged where that gives fewer pieces.

A respelt text has as many characters as the original, so that offsets in one are offsets in the other.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterator

from regard.text.vocabulary import BYTES, SPECIAL, Vocabulary

QUOTES = "\"'‘’‛ʼ´`“”„‟«»"
_STRAIGHT = str.maketrans({mark: "'" if mark in "‘’‛ʼ´`" else '"' for mark in QUOTES[2:]})
_QUOTE = re.compile(f"[{re.escape(QUOTES)}]")
_WORD_START = re.compile(r"(?<![\w'’])\w")


def respelled(vocabulary: Vocabulary, tidied: str) -> str:
    """Return a tidied source in the spelling that the vocabulary knows best: most texts unchanged."""
    if _QUOTE.search(tidied):
        tidied = " ".join(
            min(_quoted(word), key=lambda form: _cost(vocabulary, form)) if _QUOTE.search(word) else word
            for word in tidied.split(" ")
        )
    words = tidied.split(" ")
    if len(words) > 1 and not (tidied.isupper() or tidied.islower()):
        return tidied
    recased = " ".join(
        min(_recased(word, index if len(words) > 1 else None), key=lambda form: _cost(vocabulary, form))
        for index, word in enumerate(words)
    )
    # A vocabulary of single letters does not know which spellings are frequent.
    return recased if len(vocabulary.encode(recased)) < len(recased.replace(" ", "")) else tidied


def _cost(vocabulary: Vocabulary, text: str) -> int:
    """Return the number of pieces of a text; unknown ones, bytes or words, cost as much as all its letters."""
    tokens = vocabulary.encode(text)
    first_known = len(SPECIAL) + (1 if vocabulary.words else len(BYTES))
    return len(tokens) + len(text) * sum(token < first_known for token in tokens)


def _quoted(word: str) -> Iterator[str]:
    """Yield the word as it is, with straight quotation marks and apostrophes, and with typographic ones."""
    yield word
    straight = word.translate(_STRAIGHT)
    yield straight
    opened = "“" + straight[1:] if straight.startswith('"') else straight
    yield opened.replace('"', "”").replace("'", "’")


def _recased(word: str, index: int | None) -> Iterator[str]:
    """Yield the forms of a word, the preferred one first; `index`: its place in a sentence, None for a single word."""
    lower = word.lower()
    if len(lower) != len(word):  # İ becomes two characters
        lower = "".join(letter.lower() if len(letter.lower()) == 1 else letter for letter in word)
    capitalized = _WORD_START.sub(lambda match: match[0].upper(), lower)
    orders = {None: (word, lower, capitalized), 0: (capitalized, lower)}
    for form in (*orders.get(index, (lower, capitalized)), word, word.upper()):
        if form == word or (len(form) == len(word) and unicodedata.is_normalized("NFC", form)):
            yield form
