"""The tokens that links refer to: separated by spaces or tabs, exactly as given; and optional splitting.

A token may be empty after tidying, or several words (with a no-break space inside): it still counts as one.
"""

from __future__ import annotations

import re
import unicodedata

from regard.text.boundaries import WITHOUT_SPACES, graphemes, is_punctuation
from regard.text.normal import tidy

MAX_CHARACTERS_OF_WORD = 12  # of a script without spaces: a longer token is taken for several words
_SPACES = re.compile("[ \t]+")


def tokens(line: str) -> list[str]:
    """Return the tokens, separated by spaces or tabs. A no-break space is part of its token."""
    return [token for token in _SPACES.split(line) if token]


def counted_form(token: str) -> str:
    """Return the form in which statistics count a token: in lower case, without the punctuation around it."""
    form = unicodedata.normalize("NFKC", token).lower()
    begin, end = 0, len(form)
    while begin < end and is_punctuation(form[begin]):
        begin += 1
    while end > begin and is_punctuation(form[end - 1]):
        end -= 1
    return form[begin:end] or form


def split_punctuation(line: str) -> str:
    """Return the line, tidied, with spaces around every punctuation mark and symbol, except those between two digits.

    Apostrophes and hyphens are marks like others: "l'ami" is three tokens, "3.50" is one.
    """
    text = tidy(line)
    parts = []
    for index, character in enumerate(text):
        between_digits = text[index - 1 : index].isdigit() and text[index + 1 : index + 2].isdigit()
        parts.append(f" {character} " if is_punctuation(character) and not between_digits else character)
    return tidy("".join(parts))


def split_words(line: str) -> str:
    """Return the line with punctuation split off, and with spaces around each character of a script without spaces.

    Han, Kana, Thai, Lao, Khmer and Myanmar do not mark words, so their tokens are characters as people see them.
    """
    text = split_punctuation(line)
    if WITHOUT_SPACES.search(text) is None:
        return text
    return tidy("".join(f" {each} " if WITHOUT_SPACES.search(each) else each for each in graphemes(text)))


def has_long_words(line: str) -> bool:
    """Return whether a token looks like many words of a script without spaces, not split yet."""
    if WITHOUT_SPACES.search(line) is None:
        return False
    return any(len(WITHOUT_SPACES.findall(token)) > MAX_CHARACTERS_OF_WORD for token in tokens(line))
