"""The tokens that links refer to: separated by spaces or tabs, exactly as given; and optional splitting of punctuation.

A token may be empty after tidying, or several words (with a no-break space inside): it still counts as one.
"""

from __future__ import annotations

import re

from regard.text.boundaries import is_punctuation
from regard.text.normal import tidy

_SPACES = re.compile("[ \t]+")


def tokens(line: str) -> list[str]:
    """Return the tokens, separated by spaces or tabs. A no-break space is part of its token."""
    return [token for token in _SPACES.split(line) if token]


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
