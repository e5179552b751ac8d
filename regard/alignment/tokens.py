"""The tokens that links count: what blanks separate, exactly as given; and how punctuation is split off on request.

A token may be nothing once it is tidied, or several words (a no-break space inside): it still counts as one.
"""

from __future__ import annotations

import re

from regard.text.boundaries import is_punctuation
from regard.text.normal import tidy

_BLANKS = re.compile("[ \t]+")


def tokens(line: str) -> list[str]:
    """What blanks separate. A no-break space is part of its token."""
    return [token for token in _BLANKS.split(line) if token]


def split_punctuation(line: str) -> str:
    """The line, tidied, with blanks round every punctuation mark and symbol, save those between two digits.

    Apostrophes and hyphens are marks like others: "l'ami" is three tokens, "3.50" is one.
    """
    text = tidy(line)
    parts = []
    for place, character in enumerate(text):
        alone = is_punctuation(character) and not (
            text[place - 1 : place].isdigit() and text[place + 1 :][:1].isdigit()
        )
        parts.append(f" {character} " if alone else character)
    return tidy("".join(parts))
